"""The page's connection, by fetch(): browsers drop a token where a redirect leaves the origin."""

from collections.abc import Mapping

import numpy as np

from py_runtime.bridge.stream import Stream, open_url

STATUS = ":status"  # as web/bridge/files.js has it


class PageConnection:
    """A Connection, with options of fetch() for all its requests."""

    def __init__(self, **options: str) -> None:
        self._options = options

    async def open(self, url: str, headers: Mapping[str, str]) -> "_StreamedAnswer":
        stream = open_url(url, anyStatus=True, headers=dict(headers), **self._options)
        try:
            return _StreamedAnswer(stream, await stream.headers())
        except BaseException:
            stream.close()
            raise


class _StreamedAnswer:
    def __init__(self, stream: Stream, headers: dict[str, str]) -> None:
        self.status = int(headers[STATUS])
        self.headers = headers
        self._stream = stream

    async def next_block(self, memory: np.ndarray) -> np.ndarray:
        return await self._stream.next_block(memory)

    def close(self) -> None:
        self._stream.close()
