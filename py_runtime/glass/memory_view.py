"""The memory of a device: every buffer of a graph with its owner and lifetime, and all others.

held = memory_view(model)
held.totals                        # what graph.memory says, by purpose
held.slots[0].tenants              # intermediates that take turns in one buffer
"""

from collections.abc import Hashable
from dataclasses import dataclass

from py_runtime.base.html import as_html
from py_runtime.base.sizes import in_words
from py_runtime.glass.places import places_of
from py_runtime.graph import Graph
from py_runtime.graph.buffers import COPY, UNIFORMS, BufferPlan
from py_runtime.live.launch import Scratch
from py_runtime.model import Model
from py_runtime.program import TensorValue, as_constant

PURPOSES = ("constants", "state", "inputs", "intermediates", "uniforms")


@dataclass(frozen=True)
class Tenant:
    """A tensor, or an op's scratch memory, that lies in a shared buffer for a while."""

    label: str
    nbytes: int  # at the largest shape
    live_bytes: int  # at the last call's
    first: int  # op of the running program
    last: int  # likewise; the number of ops where it is an output


@dataclass(frozen=True)
class Held:
    """A buffer on the device."""

    label: str
    purpose: str  # one of PURPOSES
    section: str  # "layer 3", or "" of what several share
    nbytes: int
    parts: tuple[str, ...] = ()  # constants that lie in it one after the other
    tenants: tuple[Tenant, ...] = ()  # of a shared buffer; all others live as long as the graph
    is_lent: bool = False  # by the graph that this one stands on, and counted there


@dataclass(frozen=True)
class Others:
    """Buffers of the device that belong to something else than the graph."""

    owner: str
    count: int
    nbytes: int


@dataclass(frozen=True)
class MemoryView:
    """The buffers of a graph, and who else is on its device."""

    name: str
    ops: int
    buffers: tuple[Held, ...]
    unshared: int  # bytes that intermediates would take without sharing
    others: tuple[Others, ...]

    @property
    def totals(self) -> dict[str, int]:
        """Return the bytes by purpose."""
        return {
            purpose: sum(each.nbytes for each in self._own if each.purpose == purpose)
            for purpose in PURPOSES
        }

    @property
    def nbytes(self) -> int:
        return sum(each.nbytes for each in self._own)

    @property
    def _own(self) -> list[Held]:
        return [each for each in self.buffers if not each.is_lent]

    @property
    def slots(self) -> list[Held]:
        """Return the shared buffers."""
        return [each for each in self.buffers if each.tenants]

    def _repr_html_(self) -> str:
        facts = [in_words(self.nbytes), f"{len(self.buffers)} buffers"]
        facts += [f"{each.owner}: {in_words(each.nbytes)}" for each in self.others]
        rows = [(purpose, in_words(nbytes)) for purpose, nbytes in self.totals.items()]
        return as_html(f"Memory of {self.name}", facts, ("purpose", "size"), *rows)


def memory_view(target: Model | Graph) -> MemoryView:
    """Return what is on the device; nothing runs for it."""
    graph = target.graph if isinstance(target, Model) else target
    plan, look = graph.placed.plan, _Look(graph)
    tenants = look.tenants(plan)
    lent = {key: found.buffer for key, found in plan.lent.items()}
    buffers = tuple(
        Held(
            buffer.label,
            look.purpose(key),
            look.section(key),
            buffer.size,
            look.parts(key),
            tuple(tenants.get(key, ())),
            key in lent,
        )
        for key, buffer in (plan.specs | lent).items()
    )
    name, ops = graph.program.name, len(graph.program.ops)
    return MemoryView(name, ops, buffers, plan.report.unshared, _others(graph))


class _Look:
    """A look at a graph's values: who makes them, who reads them, which share a name."""

    def __init__(self, graph: Graph) -> None:
        self.program, self.builder = graph.program, graph.builder
        self.makers: dict[int, str] = {}  # by value id
        self.sections: dict[int, set[str]] = {}  # whose ops read a value
        for call, place in zip(self.program.ops, places_of(graph).after, strict=True):
            for value_id in self.program.writes(call):
                self.makers[value_id] = f"{place.section}: {call.name}".removeprefix(": ")
            for value_id in self.program.reads(call):
                self.sections.setdefault(value_id, set()).add(place.section)
        self.named: dict[str, list[int]] = {}
        for value_id, _, name in self.program.constants():
            self.named.setdefault(name, []).append(value_id)

    def tenants(self, plan: BufferPlan) -> dict[Hashable, list[Tenant]]:
        """Return what lies in each shared buffer, in order."""
        found: dict[Hashable, list[Tenant]] = {}
        for interval in sorted(self.builder.intervals(), key=lambda each: each.first):
            what = interval.key
            if isinstance(what, Scratch):
                label, live = what.label, what.nbytes
            else:
                assert isinstance(what, int), "it is the id of a tensor"
                tensor = self.builder.tensors[what]
                label = self._name(what) or self.makers.get(what, tensor.label)
                live = tensor.live_bytes
            tenant = Tenant(label, interval.nbytes, live, interval.first, interval.last)
            found.setdefault(plan.key_of[what], []).append(tenant)
        return found

    def purpose(self, key: Hashable) -> str:
        match key:
            case ("joined" | "slice" | "constant", _):
                return "constants"
            case (str(kind), _) if kind == COPY:
                return "state"
            case ("slot", _):
                return "intermediates"
            case ("own", int(value_id)):
                value = self.program.values[value_id]
                assert isinstance(value, TensorValue)
                if value.state:
                    return "state"
                return "inputs" if as_constant(value) is None else "constants"
        assert key == UNIFORMS, "every buffer has a purpose"
        return "uniforms"

    def section(self, key: Hashable) -> str:
        """Return the only section whose ops read a buffer; "" where there are several."""
        reading = [self.sections.get(value_id, set()) for value_id in self._ids(key)]
        sections = set().union(*reading)
        return sections.pop() if len(sections) == 1 else ""

    def parts(self, key: Hashable) -> tuple[str, ...]:
        names = (self._name(value_id) for value_id in self._ids(key))
        return tuple(dict.fromkeys(filter(None, names)))

    def _ids(self, key: Hashable) -> list[int]:
        """Return the constants, states or inputs in a buffer."""
        match key:
            case ("joined", tuple(ids)):
                return list(ids)
            case ("own", int(value_id)):
                return [value_id]
            case ("constant", str(name)):
                return self.named[name]
            case ("slice", (str(name), _, _)):
                return self.named[name]
        return []

    def _name(self, value_id: int) -> str:
        value = self.program.values[value_id]
        assert isinstance(value, TensorValue)
        return value.constant or value.name


def _others(graph: Graph) -> tuple[Others, ...]:
    own = set(graph.placed.owned)
    found: dict[str, list[int]] = {}
    for buffer, owner in graph.device.owners.items():
        if buffer not in own:
            found.setdefault(owner or buffer.label, []).append(buffer.size)
    return tuple(Others(owner, len(sizes), sum(sizes)) for owner, sizes in found.items())
