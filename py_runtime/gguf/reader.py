"""A model in one GGUF file, or in the parts of one: opened by ranges, its data left where it is."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from py_runtime.gguf.container import GgufHeader, HeaderWalk, TensorInfo, TooFewBytes
from py_runtime.gguf.errors import GgufError, UnsupportedGgufError, listed, shown
from py_runtime.gguf.metadata import Metadata
from py_runtime.gguf.part_names import MAX_PARTS
from py_runtime.gguf.planes import are_finite
from py_runtime.weights.byte_source import ByteSource

FIRST_BYTES = 1 << 20  # twice as many each time these are too few
COUNT_KEY, NUMBER_KEY, TENSORS_KEY = "split.count", "split.no", "split.tensors.count"


@dataclass(frozen=True)
class StoredTensor:
    """A tensor and the file it is in."""

    info: TensorInfo
    source: ByteSource

    def check_finite(self, data: np.ndarray) -> None:
        """Refuse values that are not finite; `data` are bytes of the tensor, whole blocks."""
        if not are_finite(self.info.kind, data):
            raise GgufError(
                f"{self.source.name}: the tensor {shown(self.info.name)} has values that are "
                "infinite or not numbers"
            )


@dataclass(frozen=True)
class GgufFile:
    """A file, as far as it is known before any data is read."""

    name: str  # the file's, the first part's
    size: int  # bytes, all parts together
    metadata: Metadata
    tensors: dict[str, StoredTensor]


async def open_gguf(sources: Sequence[ByteSource]) -> GgufFile:
    """Open one file, or all parts of one in any order; GgufError says what is wrong, and where."""
    headers = [(source, await read_header(source)) for source in sources]
    parts = _in_order(headers)
    first, header = parts[0]
    tensors: dict[str, StoredTensor] = {}
    for source, part in parts:
        for info in part.tensors:
            if info.name in tensors:
                other = tensors[info.name].source.name
                raise GgufError(f"the tensor {shown(info.name)} is in {other} and in {source.name}")
            tensors[info.name] = StoredTensor(info, source)
    if len(parts) > 1 and TENSORS_KEY in header.metadata:
        claimed = header.metadata.integer(TENSORS_KEY)
        if claimed != len(tensors):
            raise GgufError(
                f"{first.name} speaks of {claimed} tensors, but its parts have {len(tensors)}"
            )
    if not tensors:
        raise GgufError(f"{first.name} has no tensors", "get a file that has the model's weights")
    size = sum([await source.size() for source, _ in parts])
    return GgufFile(first.name, size, header.metadata, tensors)


async def read_header(source: ByteSource) -> GgufHeader:
    """Read as much of the file as the header needs, range by range."""
    size = await source.size()
    walk = HeaderWalk(source.name, size)
    data = b""
    wanted = FIRST_BYTES
    while True:
        wanted = min(wanted, size)
        data += await source.read(len(data), wanted - len(data))
        try:
            return walk.read(data)
        except TooFewBytes as short:
            wanted = max(short.wanted, 2 * len(data))


Parts = list[tuple[ByteSource, GgufHeader]]


def _in_order(headers: Parts) -> Parts:
    """Every part once, the one with the model's metadata first."""
    if len(headers) == 1 and _part_count(headers[0]) <= 1:
        return headers
    count = max(_part_count(part) for part in headers)
    by_number: dict[int, tuple[ByteSource, GgufHeader]] = {}
    for part in headers:
        source, header = part
        if _part_count(part) != count:
            raise GgufError(
                f"{source.name} is not part of the same model as {headers[0][0].name}",
                "give one file, or all parts of one model",
            )
        number = header.metadata.integer(NUMBER_KEY, 0, count - 1)
        if number in by_number:
            raise GgufError(
                f"{source.name} and {by_number[number][0].name} are both part {number + 1}",
                "give each part once",
            )
        by_number[number] = part
    missing = [str(number + 1) for number in range(count) if number not in by_number]
    if missing:
        raise UnsupportedGgufError(
            f"{headers[0][0].name} is of a model in {count} parts, of which these were not given: "
            f"{listed(missing)}",
            "give all of them together",
        )
    return [by_number[number] for number in range(count)]


def _part_count(part: tuple[ByteSource, GgufHeader]) -> int:
    metadata = part[1].metadata
    return metadata.integer(COUNT_KEY, 1, MAX_PARTS) if COUNT_KEY in metadata else 1
