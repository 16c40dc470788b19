"""A model folder behind a URL, in the page: headers first, then weights straight to the GPU."""

from collections import defaultdict

from pyodide.ffi import JsException
from pyodide.http import FetchResponse, pyfetch

from py_runtime.constants import BuffersByName
from py_runtime.errors import NetworkError
from py_runtime.folder.layout import ModelFolder, combine_model
from py_runtime.folder.manifest import MANIFEST, parse_manifest
from py_runtime.folder.safetensors_header import (
    LENGTH_BYTES,
    TensorEntry,
    header_end,
    parse_safetensors_header,
)
from py_runtime.gpu import Device
from py_runtime.gpu.page import PageDevice, StreamRange
from py_runtime.program import Program

FIRST_BYTES = 1 << 16  # most headers are shorter


class UrlStore:
    """What Model.load opens in the page."""

    def __init__(self, where: str) -> None:
        self.url = where if where.endswith("/") else f"{where}/"

    async def open(self) -> ModelFolder:
        """Reads the manifest, the graph and the headers; the weights stay where they are."""
        manifest = parse_manifest(await fetch_bytes(self.url + MANIFEST))
        headers = {}
        for file in (*manifest.weights, *filter(None, [manifest.goldens])):
            headers[file] = await self._fetch_header(file, manifest.files[file].size)
        graph = await fetch_bytes(self.url + manifest.graph)
        return combine_model(manifest, graph, headers)

    async def read(self, model: ModelFolder, file: str) -> bytes:
        data = await fetch_bytes(self.url + file)
        model.manifest.check_file(file, data)
        return data

    def constants(self, model: ModelFolder) -> "StreamedConstants":
        return StreamedConstants(self.url, model)

    async def _fetch_header(self, file: str, file_size: int) -> list[TensorEntry]:
        start = await fetch_bytes(self.url + file, min(FIRST_BYTES, file_size))
        end = header_end(file, start[:LENGTH_BYTES], file_size)
        if end > len(start):
            start = await fetch_bytes(self.url + file, end)
        return parse_safetensors_header(file, start[:end], file_size)


class StreamedConstants:
    """A model's weights, streamed from their files into the graph's buffers."""

    def __init__(self, url: str, model: ModelFolder) -> None:
        self._url = url
        self._places = model.tensors
        self._files = model.manifest.files

    def check(self, program: Program) -> None:
        """combine_model has compared every tensor with the graph."""

    async def upload(self, device: Device, buffers: BuffersByName) -> None:
        assert isinstance(device, PageDevice), "streaming is the page's way"
        # A pass over a file fills one buffer per tensor; only what ops write in place needs more.
        for round_number in range(max(map(len, buffers.values()), default=0)):
            ranges: dict[str, list[StreamRange]] = defaultdict(list)
            for name, targets in buffers.items():
                offset = 0
                for piece in self._places[name].pieces if round_number < len(targets) else ():
                    target = StreamRange(piece.offset, piece.nbytes, targets[round_number], offset)
                    ranges[piece.file].append(target)
                    offset += piece.nbytes
            for file, wanted in ranges.items():
                await device.stream_file(self._url + file, self._files[file].size, wanted)


async def fetch_bytes(url: str, first: int | None = None) -> bytes:
    """The whole file, or its first bytes; a server that ignores ranges just sends more."""
    headers = {} if first is None else {"Range": f"bytes=0-{first - 1}"}
    try:
        response = await pyfetch(url, headers=headers)
        if not response.ok:
            raise NetworkError(f"{url} answered {response.status}")
        return await (response.bytes() if first is None else _first_bytes(response, first))
    except (OSError, JsException) as error:
        raise NetworkError(f"{url} did not arrive: {error}") from None


async def _first_bytes(response: FetchResponse, count: int) -> bytes:
    """Stops reading there: a shard must not pass through the heap for its header's sake."""
    reader = response.js_response.body.getReader()
    data = b""
    while len(data) < count and not (part := await reader.read()).done:
        data += part.value.to_bytes()
    await reader.cancel()
    return data[:count]
