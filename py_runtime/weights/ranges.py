"""Constants that are byte ranges of files and stream into GPU buffers piece by piece."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass

from py_runtime.base.dtypes import BOOL
from py_runtime.base.errors import GraphError
from py_runtime.base.model_errors import ModelFileError
from py_runtime.base.progress import Meter
from py_runtime.base.shapes import numel
from py_runtime.gpu import Device
from py_runtime.program import Program
from py_runtime.weights.byte_source import ByteSource
from py_runtime.weights.constants import PlacesByName
from py_runtime.weights.uploads import UploadMeter, UploadQueue, UploadRange

JOINED_GAP = 1 << 16  # bytes between two ranges that are rather read than asked for anew


@dataclass(frozen=True)
class StoredRange:
    """A byte range of a file, not read yet."""

    source: ByteSource
    offset: int
    nbytes: int


class RangeConstants:
    """Constants stored as the GPU holds them, or bools in a byte, for Graph.load."""

    def __init__(self, ranges: Mapping[str, StoredRange]) -> None:
        self._ranges = ranges
        self._widened: set[str] = set()

    def check(self, program: Program) -> None:
        for value_id, value, name in program.constants():
            label = program.label(value_id)
            if name not in self._ranges:
                raise GraphError(f"{label} needs the constant '{name}', which is missing")
            found = self._ranges[name]
            if value.dtype is BOOL and found.nbytes == numel(value.dims):
                self._widened.add(name)
            elif found.nbytes != value.gpu_bytes:
                raise GraphError(
                    f"{label} is {value.dtype.name} {list(value.dims)}, but {found.source.name} "
                    f"has {found.nbytes} bytes for it"
                )

    async def upload(self, device: Device, places: PlacesByName, meter: Meter) -> None:
        ranges: dict[ByteSource, list[UploadRange]] = defaultdict(list)
        for name, wanted in places.items():
            found, widen = self._ranges[name], name in self._widened
            for place in wanted:
                if (part := place.of(0, found.nbytes)) is not None:
                    skipped, taken, at = part
                    upload = UploadRange(found.offset + skipped, taken, place.buffer, at, widen)
                    ranges[found.source].append(upload)
        files = [_RangesUpload(source, found, meter) for source, found in ranges.items()]
        queue = UploadQueue(device)
        for file in files:
            await file.run(queue)
        await queue.finish()


class _RangesUpload:
    """The upload of one file's ranges, in as few passes as possible."""

    def __init__(self, source: ByteSource, uploads: Iterable[UploadRange], meter: Meter) -> None:
        self._source = source
        self._by_range: dict[tuple[int, int], list[UploadRange]] = defaultdict(list)  # start, end
        for upload in uploads:
            self._by_range[upload.file_offset, upload.file_offset + upload.nbytes].append(upload)
        self._runs = self._find_runs()
        total = sum(run[-1][1] - run[0][0] for run in self._runs)
        self._meter = UploadMeter(source, total, meter)

    def _find_runs(self) -> list[list[tuple[int, int]]]:
        """Return groups of ranges that are adjacent, or nearly so, and are read in one pass."""
        runs: list[list[tuple[int, int]]] = []
        end = 0
        for found in sorted(self._by_range):
            if found[0] < end:
                raise ModelFileError(f"{self._source.name} has constants that overlap")
            if runs and found[0] <= end + JOINED_GAP:
                runs[-1].append(found)
            else:
                runs.append([found])
            end = found[1]
        return runs

    async def run(self, queue: UploadQueue) -> None:
        for run in self._runs:
            ahead = iter(run)
            current = next(ahead)
            cuts = sorted({cut for found in run for cut in found})
            async with aclosing(self._source.pieces(cuts)) as pieces:
                async for position, piece in pieces:
                    if position >= current[1]:
                        current = next(ahead)
                    if position >= current[0]:  # else it lies between two ranges
                        await queue.add(position, piece, self._by_range[current])
                    self._meter.add(len(piece))
