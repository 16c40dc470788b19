"""Requests by fetch(): the browser drops the token where a redirect leads to another origin."""

from collections.abc import Mapping

import numpy as np

from py_runtime.bridge.stream import Stream, open_url

STATUS = ":status"  # as web/bridge/files.js has it


class PageConnection:
    """A Connection."""

    async def open(self, url: str, headers: Mapping[str, str]) -> "_StreamedAnswer":
        stream = open_url(
            url,
            anyStatus=True,
            headers=dict(headers),
            cache="no-store",  # our own storage keeps it, and redirects expire
            credentials="omit",
            referrerPolicy="no-referrer",
        )
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
