"""A file on a host, requested by ranges of its bytes."""

import re
from dataclasses import dataclass
from typing import Protocol

from py_runtime.base.model_errors import ModelFileError
from py_runtime.download.connection import Answer

OK, PARTIAL_CONTENT = 200, 206
# Where a part begins, and all bytes.
CONTENT_RANGE = re.compile(r"bytes ([0-9]{1,18})-[0-9]+/([0-9]{1,18})")


class Host(Protocol):
    """A host that files are requested from: the Hub, or any other."""

    async def ask(self, url: str, what: str, more: dict[str, str]) -> Answer:
        """Send a request with these headers more; raise NetworkError unless it is granted."""


@dataclass(frozen=True)
class FilePart:
    """An answer that holds the bytes of a file from `start` on."""

    start: int
    file_size: int | None  # None if the host does not tell it
    answer: Answer


class RemoteFile:
    """A file at an address; messages call it `what`."""

    def __init__(self, host: Host, url: str, what: str) -> None:
        self._host = host
        self._url = url
        self._what = what

    async def open(self, start: int, end: int | None = None) -> FilePart:
        """Request the bytes from `start` on; a host without ranges sends them all.

        A range of this form needs no preflight: browsers request it from other origins at once.
        """
        wanted = f"bytes={start}-{'' if end is None else end - 1}"
        more = {"Range": wanted} if start or end is not None else {}
        answer = await self._host.ask(self._url, self._what, more)
        if answer.status == OK:
            return FilePart(0, None, answer)
        told = CONTENT_RANGE.fullmatch(answer.headers.get("content-range", ""))
        if told is None:
            return FilePart(start, None, answer)
        if int(told[1]) != start:
            answer.close()
            raise ModelFileError(f"{self._what} was sent from byte {told[1]}, not from {start}")
        return FilePart(start, int(told[2]), answer)
