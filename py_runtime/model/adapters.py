"""The low-rank adapters (LoRA) of a loaded model: applied as it runs, each with a strength."""

import asyncio
import math
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from py_runtime.adapters.adapter import Adapter, renamed
from py_runtime.adapters.errors import AdapterError
from py_runtime.adapters.files import files_of, read_adapter
from py_runtime.base.errors import RequestError
from py_runtime.base.html import as_html
from py_runtime.base.progress import Meter
from py_runtime.base.short_texts import short
from py_runtime.folder.file_names import CONFIG
from py_runtime.folder.layout import ModelFolder
from py_runtime.generation.session import Session
from py_runtime.gpu import Device
from py_runtime.graph import Graph
from py_runtime.model.config import read_json
from py_runtime.model.stores import Store
from py_runtime.passes import DEFAULT_PASSES, JOINING, Pass
from py_runtime.passes.add_low_rank import AddLowRank, Update, linears_of
from py_runtime.program import Program
from py_runtime.program.decoder_form import head_dim_of, is_tiled
from py_runtime.weights.constants import PlacesByName

HEAD, EMBEDDING = "lm_head", "embed_tokens"
DELTA_NET = ".linear_attn."
MAX_STRENGTH = 100.0


@dataclass
class Applied:
    """An adapter that a model has."""

    adapter: Adapter
    strength: float


class AdaptedModel(Protocol):
    """The parts of a model that its adapters need."""

    store: Store
    folder: ModelFolder
    graph: Graph
    session: Session

    def idle(self) -> asyncio.Lock: ...

    def while_loaded(self) -> AbstractContextManager[None]: ...


class Adapters:
    """The adapters of a model, by name.

    `await model.adapters.load("folder or .gguf", 0.8)`, `model.adapters.set_strength(name, 0.5)`,
    `await model.adapters.remove(name)`. The weights stay as they are, quantised and all.
    """

    def __init__(self, model: AdaptedModel) -> None:
        self._model = model
        self._applied: dict[str, Applied] = {}
        self._plain: Graph | None = None  # the graph without them, whose weights theirs shares
        self._added: AddLowRank | None = None  # to the graph in use
        self.is_changed = False  # since the session's caches were computed

    def __iter__(self) -> Iterator[str]:
        return iter(self.strengths)

    def __len__(self) -> int:
        return len(self._applied)

    @property
    def strengths(self) -> dict[str, float]:
        """Return the strength of each, in the order they came."""
        return {name: each.strength for name, each in self._applied.items()}

    def _repr_html_(self) -> str:
        rows = [(name, f"{strength:g}") for name, strength in self.strengths.items()]
        return as_html("Adapters", [f"{len(rows)} applied"], ("adapter", "strength"), *rows)

    # What users do -----------------------------------------------------------------------------

    async def load(self, where: Any, strength: float = 1.0, name: str | None = None) -> str:
        """Apply an adapter and return its name; what it does not fit is said.

        `where`: a folder of PEFT's or its .safetensors file, a GGUF file, or such files by name.
        """
        found, files = files_of(where)
        values = read_json(CONFIG, await self._model.store.read(self._model.folder, CONFIG))
        kind, head_dim = str(values.get("model_type")), head_dim_of(self._model.folder.program)
        adapter = self._fitted(await read_adapter(files, kind, head_dim))
        free = self._free_name(name or found)
        checked = _checked(strength)
        self._updates([*self._adapters(), adapter])  # says what does not fit
        async with self._model.idle():
            with self._model.while_loaded():
                before = dict(self._applied)
                self._applied[free] = Applied(adapter, checked)
                await self._rebuild(before)
        return free

    def set_strength(self, name: str, strength: float) -> None:
        """Change a strength from the next token on; the next answer computes its prompt anew."""
        self._find(name).strength = _checked(strength)
        self.is_changed = True
        if self._added is not None:
            self._write_strengths(self._model.graph, self._added)

    async def remove(self, name: str) -> None:
        """Remove an adapter."""
        self._find(name)
        async with self._model.idle():
            with self._model.while_loaded():
                before = dict(self._applied)
                del self._applied[name]
                await self._rebuild(before)

    # What the model asks for -------------------------------------------------------------------

    async def onto(self, plain: Graph) -> Graph:
        """Return the graph with all adapters in it, for one that has just been loaded without."""
        self._plain = self._added = None
        return await self._with_adapters(plain) if self._applied else plain

    def unload(self, graph: Graph) -> None:
        """Free the model's graph, and the one that lends it its weights."""
        (self._plain or graph).unload()
        self._plain = self._added = None

    def settle(self) -> bool:
        """Forget what was computed with other strengths; tell whether there was any such."""
        was_changed, self.is_changed = self.is_changed, False
        if was_changed:
            self._model.session.forget()
        return was_changed

    # Inside ------------------------------------------------------------------------------------

    def _adapters(self) -> list[Adapter]:
        return [each.adapter for each in self._applied.values()]

    def _find(self, name: str) -> Applied:
        if name not in self._applied:
            known = ", ".join(self._applied) or "none"
            raise RequestError(f"no adapter is called {short(name)}; there are: {known}", "name")
        return self._applied[name]

    def _free_name(self, name: str) -> str:
        names = [name, *(f"{name} {number}" for number in range(2, len(self._applied) + 3))]
        return next(each for each in names if each not in self._applied)

    def _fitted(self, adapter: Adapter) -> Adapter:
        """Return the adapter by the names of this model's linears."""
        program = self._model.folder.program
        is_of_delta = any(DELTA_NET in name for names in adapter.parts for name in names)
        if is_of_delta and adapter.is_gguf != is_tiled(program):
            raise AdapterError(
                f"{adapter.file} is for linear attention, whose heads GGUF files store in another "
                "order",
                "give it in the form that the model has: GGUF with GGUF, PEFT with a folder",
            )
        linears = linears_of(program)
        is_tied = HEAD not in linears and EMBEDDING in linears
        return renamed(adapter, {HEAD: EMBEDDING} if is_tied else {})

    def _updates(self, adapters: Sequence[Adapter]) -> dict[str, list[Update]]:
        linears = linears_of(self._model.folder.program)
        head_dim = head_dim_of(self._model.folder.program)
        found: dict[str, list[Update]] = {}
        for number, adapter in enumerate(adapters):
            for owner, update in adapter.updates(number, linears, head_dim).items():
                found.setdefault(owner, []).append(update)
        return found

    async def _rebuild(self, before: dict[str, Applied]) -> None:
        """Put another graph in the place of the model's, or leave all as it was and raise."""
        model, former = self._model, self._model.graph
        plain = self._plain or former
        try:
            graph = await self._with_adapters(plain) if self._applied else plain
        except BaseException:
            self._applied = before
            raise
        if not self._applied:
            self._plain = self._added = None
        model.session.drop_loop()
        model.session.forget()
        self.is_changed = False
        model.graph = graph
        if former is not plain:
            former.unload()

    @property
    def passes(self) -> tuple[Pass, ...]:
        """Return the passes by which the graph in use was built."""
        if self._added is None:
            return DEFAULT_PASSES
        return (*DEFAULT_PASSES[:JOINING], self._added, *DEFAULT_PASSES[JOINING:])

    async def _with_adapters(self, plain: Graph) -> Graph:
        """Load the same program with the adapters; weights and states are those of the other."""
        add = AddLowRank(self._updates(self._adapters()))
        passes: tuple[Pass, ...] = (*DEFAULT_PASSES[:JOINING], add, *DEFAULT_PASSES[JOINING:])
        program, device = self._model.folder.program, plain.device
        graph = await Graph.load(device, program, _Factors(add), passes=passes, base=plain)
        self._write_strengths(graph, add)
        self._plain, self._added = plain, add
        return graph

    def _write_strengths(self, graph: Graph, added: AddLowRank) -> None:
        strengths = [*self.strengths.values(), 0.0]  # the last is that of ranks that fill up
        places = graph.constant_places()
        for name, owners in added.strengths.items():
            values = np.array([strengths[owner] for owner in owners], np.float32)
            for place in places[name]:
                graph.device.write_buffer(place.buffer, values, place.offset)


class _Factors:
    """The constants that adapters add to a graph; it has all others already."""

    def __init__(self, added: AddLowRank) -> None:
        self._added = added

    def check(self, program: Program) -> None:
        """Do nothing: `Adapter.updates` has compared each with its weight."""

    async def upload(self, device: Device, places: PlacesByName, meter: Meter) -> None:
        for name, wanted in places.items():
            if name in self._added.strengths:
                continue  # they are written whenever one changes
            await asyncio.sleep(0)  # a caller may cancel
            data = np.asarray(self._added.arrays[name], np.float32)
            for place in wanted:
                flat = data.reshape(-1).view(np.uint8)
                if (found := place.of(0, flat.nbytes)) is not None:
                    skipped, taken, at = found
                    device.write_buffer(place.buffer, flat[skipped : skipped + taken], at)


def _checked(strength: float) -> float:
    is_number = isinstance(strength, int | float) and not isinstance(strength, bool)
    if not is_number or not math.isfinite(strength) or abs(strength) > MAX_STRENGTH:
        raise RequestError(
            f"the strength must be a number from {-MAX_STRENGTH:g} to {MAX_STRENGTH:g}, got "
            f"{short(strength)}",
            "strength",
        )
    return float(strength)
