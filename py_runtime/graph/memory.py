"""The memory of tensors: which need a buffer of their own, and which intermediates share one."""

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
    """Slots shared by intermediates that are never needed at the same time."""

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
        """Return the peak, which is the sum: everything is allocated at load."""
        return self.constants + self.state + self.inputs + self.intermediates + self.uniforms


def share(intervals: Sequence[Interval]) -> MemoryPlan:
    """Assign intervals, largest first, to the first slot that is free for the whole interval.

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
