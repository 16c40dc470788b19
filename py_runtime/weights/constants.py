"""Sources of a graph's constants: arrays, or files that stream into GPU buffers."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

import numpy as np

from py_runtime.base.concurrency import together
from py_runtime.base.errors import GraphError
from py_runtime.base.progress import UPLOAD, Meter
from py_runtime.base.shapes import numel
from py_runtime.gpu import Buffer, Device
from py_runtime.live.host_arrays import check_int32
from py_runtime.program import Program

T = TypeVar("T")


@dataclass(frozen=True)
class Place:
    """The destination of a constant's bytes: a buffer and an offset."""

    buffer: Buffer
    offset: int = 0
    start: int = 0  # the first of its bytes that go there
    nbytes: int | None = None  # and how many; None: all that come after

    def of(self, start: int, nbytes: int) -> tuple[int, int, int] | None:
        """Return (bytes to skip, bytes to take, offset in the buffer) for a range."""
        first = max(start, self.start)
        end = start + nbytes
        if self.nbytes is not None:
            end = min(end, self.start + self.nbytes)
        if first >= end:
            return None
        return first - start, end - first, self.offset + first - self.start


# Several places where ops write a constant in place, or read it joined with others and alone.
PlacesByName = Mapping[str, Sequence[Place]]


@runtime_checkable
class ConstantSource(Protocol):
    """A source that Graph.load takes; it is checked before any buffer is made."""

    def check(self, program: Program) -> None:
        """Raise if a constant of the program is missing or has another shape or dtype."""

    async def upload(self, device: Device, places: PlacesByName, meter: Meter) -> None:
        """Fill the places; it can be cancelled at any await, and writes nothing afterwards."""


class ArrayConstants:
    """Constants as numpy arrays, or as objects with a shape and dtype that convert to one."""

    def __init__(self, arrays: Mapping[str, np.ndarray]) -> None:
        self._arrays = arrays

    def check(self, program: Program) -> None:
        for value_id, value, name in program.constants():
            label = program.label(value_id)
            if name not in self._arrays:
                raise GraphError(f"{label} needs the constant '{name}', which is missing")
            data = self._arrays[name]
            fitting = (value.dtype.host, value.dtype.gpu)
            if tuple(data.shape) != value.dims or data.dtype not in fitting:
                raise GraphError(
                    f"{label} is {value.dtype.name} {list(value.dims)}, but its constant "
                    f"'{name}' is {data.dtype} {list(data.shape)}"
                )
        self._gpu_dtypes = {name: value.dtype.gpu for _, value, name in program.constants()}

    async def upload(self, device: Device, places: PlacesByName, meter: Meter) -> None:
        nbytes = {name: self._bytes(name) * len(wanted) for name, wanted in places.items()}
        for name, total in nbytes.items():
            meter.expect(UPLOAD, name, total)
        for name, wanted in places.items():
            await asyncio.sleep(0)  # pipelines compile meanwhile, and a caller may cancel
            data = self._arrays[name]
            if data.dtype.kind in "iu":
                check_int32(f"the constant '{name}'", np.asarray(data))
            data = np.asarray(data, self._gpu_dtypes[name], order="C")
            flat = data.reshape(-1).view(np.uint8)
            for place in wanted:
                if (found := place.of(0, flat.nbytes)) is not None:
                    skipped, taken, at = found
                    device.write_buffer(place.buffer, flat[skipped : skipped + taken], at)
            meter.reach(UPLOAD, name, nbytes[name])

    def _bytes(self, name: str) -> int:
        return numel(self._arrays[name].shape) * self._gpu_dtypes[name].itemsize


class BesideConstants(Generic[T]):
    """Constants, and something else of the model that is read while they stream to the device."""

    def __init__(
        self,
        constants: ConstantSource | Mapping[str, Any],
        read: Callable[[], Coroutine[Any, Any, T]],
    ) -> None:
        self._constants: ConstantSource = (
            constants if isinstance(constants, ConstantSource) else ArrayConstants(constants)
        )
        self._read = read
        self.found: list[T] = []  # once it has been read

    def check(self, program: Program) -> None:
        self._constants.check(program)

    async def upload(self, device: Device, places: PlacesByName, meter: Meter) -> None:
        await together(self._constants.upload(device, places, meter), self._take())

    async def _take(self) -> None:
        self.found = [await self._read()]
