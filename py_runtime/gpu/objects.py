"""The objects a device creates and their specs: buffers, pipelines, bind groups, plans.

Names follow wgpu-py. A `Plan` is a recorded list of dispatches and copies, replayed by one call.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntFlag
from typing import Any

import numpy as np

from py_runtime.base.errors import GpuValidationError
from py_runtime.gpu.kernel_sources import KernelSource

PLAN_COLUMNS = 3  # integers per plan step, see Plan


class BufferUsage(IntFlag):
    """Buffer usages with WebGPU's own bit values."""

    MAP_READ = 0x0001
    COPY_SRC = 0x0004
    COPY_DST = 0x0008
    UNIFORM = 0x0040
    STORAGE = 0x0080
    QUERY_RESOLVE = 0x0200


TENSOR_USAGE = BufferUsage.STORAGE | BufferUsage.COPY_SRC | BufferUsage.COPY_DST
UNIFORM_USAGE = BufferUsage.UNIFORM | BufferUsage.COPY_DST
TICKS_USAGE = BufferUsage.QUERY_RESOLVE | BufferUsage.COPY_SRC


@dataclass(frozen=True)
class AdapterInfo:
    """The adapter as WebGPU describes it; fields that a browser hides are empty or 0."""

    vendor: str
    architecture: str
    device: str
    description: str
    is_fallback: bool
    subgroup_min_size: int
    subgroup_max_size: int
    # Which multiply halves with sums in f32, in matrices of 16 × 16 (shared/matrix_units.wgsl).
    has_matrix_units: bool = False


@dataclass(frozen=True)
class FoundAdapter:
    """An adapter that was looked at, and not opened."""

    adapter: AdapterInfo
    features: frozenset[str]  # those of OPTIONAL_FEATURES that it has


@dataclass(frozen=True)
class BufferSpec:
    """A buffer to be created."""

    label: str
    size: int  # bytes; storage is rounded up to a multiple of 4
    usage: BufferUsage = TENSOR_USAGE


@dataclass(frozen=True)
class PipelineSpec:
    """A pipeline to be compiled; equal specs are compiled once."""

    label: str
    source: str  # WGSL
    constants: tuple[tuple[str, float], ...] = ()  # override constants, sorted by name
    entry_point: str = "main"
    kernel: KernelSource | None = None  # what the source was joined from; a CPU goes by it


@dataclass(eq=False)
class GpuObject:
    """A live GPU object: `handle` is the implementation's own (an integer in the page)."""

    label: str
    handle: Any


@dataclass(eq=False)
class Buffer(GpuObject):
    """A buffer; its size is a multiple of 4, whatever was asked for."""

    size: int
    usage: BufferUsage


@dataclass(eq=False)
class Pipeline(GpuObject):
    """A compiled kernel."""


@dataclass(eq=False)
class BindGroup(GpuObject):
    """The buffers of one launch, in binding order."""


@dataclass(frozen=True)
class Binding:
    """A buffer range to bind at its place in the list; size None means the rest of the buffer."""

    buffer: Buffer
    offset: int = 0
    size: int | None = None


@dataclass(frozen=True)
class BindGroupSpec:
    """A bind group to be created; its layout is the pipeline's."""

    label: str
    pipeline: Pipeline
    bindings: tuple[Binding, ...]
    names: tuple[str, ...] = ()  # of the bindings in the shader; a CPU goes by them


@dataclass(frozen=True)
class Dispatch:
    """A plan step that launches a kernel; its live integers are the grid, where x = 0 skips it."""

    label: str
    pipeline: Pipeline
    bind_group: BindGroup


@dataclass(frozen=True)
class Copy:
    """A plan step that copies; its live integers are two offsets and the bytes; 0 bytes skip it."""

    label: str
    source: Buffer
    destination: Buffer


PlanStep = Dispatch | Copy


@dataclass(frozen=True)
class Write:
    """An upload that goes with a submit: a C-contiguous array's bytes, read in place."""

    buffer: Buffer
    data: np.ndarray
    offset: int = 0


@dataclass(frozen=True)
class Read:
    """A read-back that goes with a submit."""

    buffer: Buffer
    nbytes: int
    offset: int = 0


@dataclass
class Counters:
    """Counts of what crossed to the GPU since the last reset, for tests and the bench."""

    submits: int = 0
    dispatches: int = 0
    writes: int = 0
    bytes_written: int = 0
    reads: int = 0
    bytes_read: int = 0
    submitting_s: float = 0.0  # encoding commands, on this side of the GPU
    buffers_alive: int = 0
    buffer_bytes_alive: int = 0

    def reset(self) -> None:
        """Zero the flow counters; the counts of live objects stay."""
        self.submits = self.dispatches = 0
        self.writes = self.bytes_written = self.reads = self.bytes_read = 0
        self.submitting_s = 0.0


def padded_size(nbytes: int) -> int:
    """Round up to whole words, at least one: WebGPU knows no other sizes."""
    return max(4, (nbytes + 3) & ~3)


def whole_words(data: np.ndarray) -> np.ndarray:
    """Return the data padded to whole words; other lengths alone are copied."""
    if data.nbytes % 4 == 0:
        return data
    padded = np.zeros(padded_size(data.nbytes), np.uint8)
    padded[: data.nbytes] = data.reshape(-1).view(np.uint8)
    return padded


class Plan:
    """Dispatches and copies recorded once; a table [steps, 3] of integers drives each replay."""

    def __init__(self, label: str, steps: Sequence[PlanStep]) -> None:
        self.label = label
        self.steps = tuple(steps)
        self.is_dispatch = np.array([isinstance(step, Dispatch) for step in self.steps], bool)

    def check_counts(self, counts: np.ndarray) -> None:
        wanted = (len(self.steps), PLAN_COLUMNS)
        if counts.dtype != np.uint32 or counts.shape != wanted or not counts.flags.c_contiguous:
            raise GpuValidationError(
                f"plan '{self.label}' needs a C-contiguous uint32 array of shape {wanted} for its "
                f"workgroup counts, got {counts.dtype} {counts.shape}"
            )
