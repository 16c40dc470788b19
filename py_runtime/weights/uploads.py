"""Uploads of streamed file bytes into GPU buffers."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from py_runtime.base.progress import DOWNLOAD, UPLOAD, Meter
from py_runtime.gpu import Buffer, Device, Write
from py_runtime.weights.byte_source import ByteSource

UPLOAD_AHEAD = 64 << 20  # bytes after which streaming waits for the GPU


@dataclass(frozen=True)
class UploadRange:
    """A byte range of a file and its offset in a buffer."""

    file_offset: int
    nbytes: int
    buffer: Buffer
    offset: int
    widen: bool = False  # each byte becomes an int32

    def write(self, position: int, block: np.ndarray) -> Write | None:
        """Return the write for a block of the file that starts at `position`."""
        first = max(position, self.file_offset)
        last = min(position + len(block), self.file_offset + self.nbytes)
        if first >= last:
            return None
        data, at = block[first - position : last - position], first - self.file_offset
        if self.widen:
            data, at = data.astype(np.int32), 4 * at
        return Write(self.buffer, data, self.offset + at)


class UploadQueue:
    """A queue that lets uploads run ahead of the GPU within a bound on the browser's memory."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._ahead = 0

    async def add(self, position: int, block: np.ndarray, ranges: Iterable[UploadRange]) -> None:
        writes = [w for each in ranges if (w := each.write(position, block)) is not None]
        self._device.submit(None, None, writes)
        self._ahead += sum(write.data.nbytes for write in writes)
        if self._ahead > UPLOAD_AHEAD:
            self._ahead = 0
            await self._device.finish_writes()

    async def finish(self) -> None:
        await self._device.finish_writes()


class UploadMeter:
    """A progress meter of one file; one that is not stored yet downloads as it uploads."""

    def __init__(self, source: ByteSource, total: int, meter: Meter) -> None:
        self._file = source.name
        self._phases = (DOWNLOAD, UPLOAD) if source.is_remote else (UPLOAD,)
        self._meter = meter
        self._done = 0
        for phase in self._phases:
            meter.expect(phase, self._file, total)

    def add(self, nbytes: int) -> None:
        self._done += nbytes
        for phase in self._phases:
            self._meter.reach(phase, self._file, self._done)
