"""A model's weights, streamed from their files into the graph's buffers."""

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from py_runtime.concurrency import together
from py_runtime.constants import PlacesByName
from py_runtime.folder.delivery import Delivery, discard
from py_runtime.folder.errors import ModelFileError
from py_runtime.folder.layout import ModelFolder
from py_runtime.folder.progress import UPLOAD, Meter
from py_runtime.gpu import Buffer, Device, Write
from py_runtime.gpu.page import PageDevice
from py_runtime.program import Program

UPLOAD_AHEAD = 64 << 20  # bytes after which streaming waits for the GPU


class StreamedConstants:
    """What Graph.load takes in the page; `headers` are the files' as the graph was told of them."""

    def __init__(self, delivery: Delivery, model: ModelFolder, headers: dict[str, bytes]) -> None:
        self._delivery = delivery
        self._model = model
        self._headers = headers

    def check(self, program: Program) -> None:
        """combine_model has compared every tensor with the graph."""

    async def upload(self, device: Device, places: PlacesByName, meter: Meter) -> None:
        assert isinstance(device, PageDevice), "streaming is the page's way"
        manifest = self._model.manifest
        queue = _UploadQueue(device)
        targets = self._targets(places)
        sinks = {}
        for file in manifest.weights:
            meter.expect(UPLOAD, file, manifest.files[file].size)
            sinks[file] = _FileUpload(file, self._headers[file], targets[file], queue, meter)
        # Goldens are for later: they only come along to be kept.
        to_keep = self._delivery.missing(filter(None, [manifest.goldens]))
        await together(
            *(self._delivery.deliver(file, sink, meter) for file, sink in sinks.items()),
            *(self._delivery.deliver(file, discard, meter) for file in to_keep),
        )
        await device.finish_writes()

    def _targets(self, places: PlacesByName) -> dict[str, list["Target"]]:
        targets: dict[str, list[Target]] = defaultdict(list)
        for name, wanted in places.items():
            offset = 0
            for piece in self._model.tensors[name].pieces:
                for place in wanted:
                    at = place.offset + offset
                    target = Target(piece.offset, piece.nbytes, place.buffer, at)
                    targets[piece.file].append(target)
                offset += piece.nbytes
        return targets


@dataclass(frozen=True)
class Target:
    """Bytes of a file that belong at an offset of a buffer."""

    file_offset: int
    nbytes: int
    buffer: Buffer
    offset: int


class _FileUpload:
    """The sink of one file."""

    def __init__(
        self, file: str, header: bytes, targets: list[Target], queue: "_UploadQueue", meter: Meter
    ) -> None:
        self._file = file
        self._header = header
        self._targets = targets
        self._queue = queue
        self._meter = meter

    async def __call__(self, position: int, block: np.ndarray) -> None:
        end = position + len(block)
        header = self._header[position:end]
        if block[: len(header)].tobytes() != header:  # then the targets are wrong, too
            raise ModelFileError(f"{self._file} changed while it was loaded", "load it again")
        writes = []
        for target in self._targets:
            first = max(position, target.file_offset)
            last = min(end, target.file_offset + target.nbytes)
            if first < last:
                data = block[first - position : last - position]
                offset = target.offset + first - target.file_offset
                writes.append(Write(target.buffer, data, offset))
        await self._queue.add(writes)
        self._meter.reach(UPLOAD, self._file, end)


class _UploadQueue:
    """Lets uploads run ahead of the GPU, but not without end: they wait in the browser's memory."""

    def __init__(self, device: PageDevice) -> None:
        self._device = device
        self._ahead = 0

    async def add(self, writes: list[Write]) -> None:
        self._device.submit(None, None, writes)
        self._ahead += sum(write.data.nbytes for write in writes)
        if self._ahead > UPLOAD_AHEAD:
            self._ahead = 0
            await self._device.finish_writes()
