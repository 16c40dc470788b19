"""A model folder of this site, whose weights stream into the graph's buffers."""

from collections import defaultdict

import numpy as np

from py_runtime.base.concurrency import together
from py_runtime.base.model_errors import ModelFileError
from py_runtime.base.progress import UPLOAD, Meter
from py_runtime.download.download import discard
from py_runtime.folder.delivery import Delivery
from py_runtime.folder.layout import ModelFolder
from py_runtime.folder.on_site import SiteFolder
from py_runtime.folder.stored_names import FILE
from py_runtime.gpu import Device
from py_runtime.model.folder_token_rows import FolderTokenRows, split_token_rows
from py_runtime.program import Program
from py_runtime.weights.byte_source import ByteSource
from py_runtime.weights.constants import PlacesByName
from py_runtime.weights.page_source import StoredSource, UrlSource
from py_runtime.weights.uploads import UploadQueue, UploadRange


class StreamedFolder(SiteFolder):
    """A folder store for Model.load in the page."""

    _token_rows: FolderTokenRows | None = None

    async def open(self, meter: Meter | None = None) -> ModelFolder:
        folder, self._token_rows = split_token_rows(await super().open(meter), self._source)
        return folder

    def token_rows(self, model: ModelFolder) -> FolderTokenRows | None:
        return self._token_rows

    def _source(self, file: str) -> ByteSource:
        """Return the kept file, or ranges of the site's own."""
        assert self._manifest is not None, "it was opened"
        facts = self._manifest.files[file]
        if self.delivery.is_kept(file):
            return StoredSource(FILE + facts.sha256, file, facts.size)
        return UrlSource(self.url + file)

    def constants(self, model: ModelFolder) -> "StreamedConstants":
        return StreamedConstants(self.delivery, model, self.headers)


class StreamedConstants:
    """Constants for Graph.load in the page; `headers` are those that the graph was built from."""

    def __init__(self, delivery: Delivery, model: ModelFolder, headers: dict[str, bytes]) -> None:
        self._delivery = delivery
        self._model = model
        self._headers = headers

    def check(self, program: Program) -> None:
        """Do nothing: combine_model has compared every tensor with the graph."""

    async def upload(self, device: Device, places: PlacesByName, meter: Meter) -> None:
        manifest = self._model.manifest
        queue = UploadQueue(device)
        ranges = self._ranges(places)
        sinks = {}
        for file in manifest.weights:
            meter.expect(UPLOAD, file, manifest.files[file].size)
            sinks[file] = _FileSink(file, self._headers[file], ranges[file], queue, meter)
        # Goldens are for later: they only come along to be kept.
        to_keep = self._delivery.missing(filter(None, [manifest.goldens]))
        await together(
            *(self._delivery.deliver(file, sink, meter) for file, sink in sinks.items()),
            *(self._delivery.deliver(file, discard, meter) for file in to_keep),
        )
        await queue.finish()

    def _ranges(self, places: PlacesByName) -> dict[str, list[UploadRange]]:
        ranges: dict[str, list[UploadRange]] = defaultdict(list)
        for name, wanted in places.items():
            offset = 0
            for piece in self._model.tensors[name].pieces:
                for place in wanted:
                    if (found := place.of(offset, piece.nbytes)) is not None:
                        skipped, taken, at = found
                        upload = UploadRange(piece.offset + skipped, taken, place.buffer, at)
                        ranges[piece.file].append(upload)
                offset += piece.nbytes
        return ranges


class _FileSink:
    """The sink of one file."""

    def __init__(
        self, file: str, header: bytes, ranges: list[UploadRange], queue: UploadQueue, meter: Meter
    ) -> None:
        self._file = file
        self._header = header
        self._ranges = ranges
        self._starts = np.array([each.file_offset for each in ranges])
        self._ends = self._starts + np.array([each.nbytes for each in ranges])
        self._queue = queue
        self._meter = meter

    async def __call__(self, position: int, block: np.ndarray) -> None:
        end = position + len(block)
        header = self._header[position:end]
        if block[: len(header)].tobytes() != header:  # then the ranges are wrong, too
            raise ModelFileError(f"{self._file} changed while it was loaded", "load it again")
        # Blocks and ranges are hundreds each: asking every range at every block takes a while.
        touched = np.flatnonzero((self._starts < end) & (self._ends > position))
        await self._queue.add(position, block, [self._ranges[at] for at in touched])
        self._meter.reach(UPLOAD, self._file, end)
