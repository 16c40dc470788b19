"""Where tensors live: what needs a buffer of its own, and which intermediates can share one."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Interval:
    """Memory that is needed from op `first` to op `last`, both included."""

    key: Hashable
    nbytes: int
    first: int
    last: int


@dataclass(frozen=True)
class MemoryPlan:
    """Intermediates that are never needed at once share a slot."""

    slot_bytes: tuple[int, ...]
    slot_of: dict[Hashable, int]


@dataclass(frozen=True)
class MemoryReport:
    """Bytes on the GPU by purpose; `intermediates` is after sharing, `unshared` before."""

    constants: int
    state: int
    inputs: int
    intermediates: int
    unshared: int
    uniforms: int

    @property
    def peak(self) -> int:
        """Everything is allocated at load, so this is what the graph holds from then on."""
        return self.constants + self.state + self.inputs + self.intermediates + self.uniforms


def share(intervals: Sequence[Interval]) -> MemoryPlan:
    """Largest first into the first slot that is free for the whole interval.

    Slots are whole buffers: WebGPU tracks reads and writes per buffer, so two tensors of one
    dispatch can never be two ranges of the same one.
    """
    slot_bytes: list[int] = []
    tenants: list[list[Interval]] = []
    slot_of: dict[Hashable, int] = {}
    for interval in sorted(intervals, key=lambda item: -item.nbytes):
        free = (
            slot
            for slot, others in enumerate(tenants)
            if all(o.last < interval.first or interval.last < o.first for o in others)
        )
        slot = next(free, len(tenants))
        if slot == len(tenants):
            tenants.append([])
            slot_bytes.append(interval.nbytes)
        tenants[slot].append(interval)
        slot_of[interval.key] = slot
    return MemoryPlan(tuple(slot_bytes), slot_of)
