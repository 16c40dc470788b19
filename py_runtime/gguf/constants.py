"""The tensors of GGUF files on their way into GPU buffers: half a megabyte is held at a time."""

from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field

import numpy as np

from py_runtime.base.errors import GraphError
from py_runtime.base.progress import Meter
from py_runtime.decoder.tensors import WeightKind
from py_runtime.gguf.reader import StoredTensor
from py_runtime.gguf.stored_weights import in_halves, parts_of_blocks
from py_runtime.gpu import Device
from py_runtime.program import Program
from py_runtime.weights.byte_source import ByteSource
from py_runtime.weights.constants import Place, PlacesByName
from py_runtime.weights.ranges import JOINED_GAP
from py_runtime.weights.uploads import UploadMeter, UploadQueue, UploadRange

HELD_BYTES = 1 << 19  # of a tensor, while they are converted
UNIT_BLOCKS = 16  # so many make a multiple of 16 bytes, whatever the type


@dataclass(frozen=True)
class WantedTensor:
    """A tensor, and the constants that its parts become."""

    stored: StoredTensor
    constants: Mapping[str, str]  # part → the constant's name
    kind: WeightKind | None = None  # of a matrix; norms and biases are f32
    head_dim: int | None = None  # where rotary pairs lie side by side: rows of a head are reordered
    # The constants of the second tensor, where rows of two take turns, so many of each.
    turns: int | None = None
    second: Mapping[str, str] = field(default_factory=dict)

    @property
    def unit(self) -> int:
        """Bytes that are converted together."""
        info = self.stored.info
        together = self.turns or self.head_dim
        if together is not None:  # of tensors that take turns, `dims` counts the rows of one
            return together * (info.nbytes // info.dims[0])
        return UNIT_BLOCKS * info.kind.nbytes

    def convert(self, data: np.ndarray) -> dict[str, np.ndarray]:
        """Whole units, or the tensor's end: bytes by the names of the constants."""
        info = self.stored.info
        if self.head_dim is not None:
            data = in_halves(data.reshape(-1, info.nbytes // info.dims[0]), self.head_dim)
        data = data.reshape(-1)
        self.stored.check_finite(data)
        return self.split(data)

    def split(self, data: np.ndarray) -> dict[str, np.ndarray]:
        """Whole units, or whatever can be halved, as bytes by the names of the constants."""
        found: dict[str, np.ndarray] = {}
        shares = [data] if self.turns is None else self._shares(data)
        for share, constants in zip(shares, (self.constants, self.second), strict=False):
            parts = parts_of_blocks(self.stored.info.kind, self.kind, share)
            found |= {name: parts[part].view(np.uint8) for part, name in constants.items()}
        return found

    def _shares(self, data: np.ndarray) -> list[np.ndarray]:
        runs = data.reshape(-1, 2, min(self.unit, len(data)) // 2)
        return [np.ascontiguousarray(runs[:, which]).reshape(-1) for which in range(2)]

    @property
    def least(self) -> int:
        """Bytes that every constant gets something of."""
        return self.stored.info.kind.nbytes * (1 if self.turns is None else 2)


class GgufConstants:
    """The constants for Graph.load: tensors that stream, and the tables that no file has."""

    def __init__(
        self, tensors: Mapping[str, WantedTensor], tables: Mapping[str, np.ndarray]
    ) -> None:
        self._tensors = tensors  # by each constant they give
        self._tables = tables

    def check(self, program: Program) -> None:
        for value_id, value, name in program.constants():
            label = program.label(value_id)
            if name in self._tables:
                if self._tables[name].shape != value.dims:
                    raise GraphError(f"{label} is {list(value.dims)}, but its table is not")
            elif name not in self._tensors:
                raise GraphError(f"{label} needs the constant '{name}', which is missing")
            elif (found := _nbytes(self._tensors[name], name)) != value.gpu_bytes:
                raise GraphError(
                    f"{label} takes {value.gpu_bytes} bytes, but its tensor gives {found}"
                )

    async def upload(self, device: Device, places: PlacesByName, meter: Meter) -> None:
        by_source: dict[ByteSource, dict[str, WantedTensor]] = defaultdict(dict)
        for name, wanted in places.items():
            if name in self._tables:
                for place in wanted:
                    device.write_buffer(place.buffer, self._tables[name], place.offset)
            else:
                tensor = self._tensors[name]
                by_source[tensor.stored.source][tensor.stored.info.name] = tensor
        uploads = [
            _TensorsUpload(source, list(tensors.values()), places, meter)
            for source, tensors in by_source.items()
        ]
        queue = UploadQueue(device)
        for upload in uploads:
            await upload.run(queue)
        await queue.finish()


def _nbytes(tensor: WantedTensor, name: str) -> int:
    """Return the bytes of a constant, in proportion to what one block yields."""
    info = tensor.stored.info
    return tensor_parts(tensor)[name] * (info.nbytes // tensor.least)


def tensor_parts(tensor: WantedTensor) -> dict[str, int]:
    """Return how many bytes each constant gets from the least amount that yields some for all."""
    blank = tensor.split(np.zeros(tensor.least, np.uint8))
    return {name: part.nbytes for name, part in blank.items()}


class _TensorsUpload:
    """An upload of one file's tensors, in as few passes as they allow."""

    def __init__(
        self, source: ByteSource, tensors: list[WantedTensor], places: PlacesByName, meter: Meter
    ) -> None:
        self._source = source
        self._tensors = sorted(tensors, key=lambda tensor: tensor.stored.info.offset)
        self._places = places
        total = sum(tensor.stored.info.nbytes for tensor in tensors)
        self._meter = UploadMeter(source, total, meter)

    async def run(self, queue: UploadQueue) -> None:
        for tensors in self._runs():
            async for tensor, at, data in self._converted(tensors):
                await self._write(queue, tensor, at, data)

    def _runs(self) -> Iterator[list[WantedTensor]]:
        """Tensors that are read in one go: they lie next to each other, or nearly so."""
        run: list[WantedTensor] = []
        for tensor in self._tensors:
            if run and tensor.stored.info.offset > _end(run[-1]) + JOINED_GAP:
                yield run
                run = []
            run.append(tensor)
        yield run

    async def _converted(
        self, run: list[WantedTensor]
    ) -> AsyncIterator[tuple[WantedTensor, int, np.ndarray]]:
        """(tensor, place in it, whole units of it), in order; good until the next is asked for."""
        cuts = sorted({cut for t in run for cut in (t.stored.info.offset, _end(t))})
        ahead = iter(run)
        tensor = next(ahead)
        held = _Held(tensor)
        async with aclosing(self._source.pieces(cuts)) as pieces:
            async for position, piece in pieces:
                if position >= _end(tensor):
                    tensor = next(ahead)
                    held = _Held(tensor)
                if position < tensor.stored.info.offset:
                    continue  # what pads the tensor before
                rest = piece
                while len(rest):
                    rest = held.fill(rest)
                    if held.is_full:
                        at, data = held.give()
                        yield tensor, at, data

    async def _write(
        self, queue: UploadQueue, tensor: WantedTensor, at: int, data: np.ndarray
    ) -> None:
        before = tensor_parts(tensor)
        blocks = at // tensor.least
        for name, part in tensor.convert(data).items():
            start = before[name] * blocks
            found = [_upload_range(place, start, part) for place in self._places.get(name, ())]
            await queue.add(start, part, filter(None, found))
        self._meter.add(len(data))


class _Held:
    """A buffer for as many units of a tensor as are held together, filled again and again."""

    def __init__(self, tensor: WantedTensor) -> None:
        units = max(HELD_BYTES // tensor.unit, 1)
        self._left = tensor.stored.info.nbytes  # that has not been given away
        self._memory = np.empty(min(units * tensor.unit, self._left), np.uint8)
        self._filled = 0
        self._given = 0

    @property
    def is_full(self) -> bool:
        return self._filled == min(len(self._memory), self._left)

    def fill(self, piece: np.ndarray) -> np.ndarray:
        """Fill the buffer and return what it has no room for."""
        room = min(len(self._memory), self._left) - self._filled
        taken = piece[:room]
        self._memory[self._filled : self._filled + len(taken)] = taken
        self._filled += len(taken)
        return piece[len(taken) :]

    def give(self) -> tuple[int, np.ndarray]:
        at, data = self._given, self._memory[: self._filled]
        self._given += self._filled
        self._left -= self._filled
        self._filled = 0
        return at, data


def _end(tensor: WantedTensor) -> int:
    return tensor.stored.info.offset + tensor.stored.info.nbytes


def _upload_range(place: Place, start: int, part: np.ndarray) -> UploadRange | None:
    found = place.of(start, part.nbytes)
    if found is None:
        return None
    skipped, taken, at = found
    return UploadRange(start + skipped, taken, place.buffer, at)
