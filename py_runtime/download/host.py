"""Requests to any host but the Hub: natively to every host, in the page to this site's."""

from urllib.parse import urlsplit

from py_runtime.base.errors import NetworkError, NotFoundError, RefusedError
from py_runtime.base.platform import IN_PAGE
from py_runtime.download.connection import Answer, Connection, open_connection
from py_runtime.download.remote_file import OK, PARTIAL_CONTENT, RemoteFile

UNAUTHORISED, FORBIDDEN, MISSING, GONE, BEYOND_THE_END = 401, 403, 404, 410, 416


class HostRequests:
    """A Host whose refusals are told in words."""

    def __init__(self, connection: Connection | None = None) -> None:
        self._connection = connection or open_connection()

    def file(self, url: str) -> RemoteFile:
        return RemoteFile(self, url, url)

    async def ask(self, url: str, what: str, more: dict[str, str]) -> Answer:
        # A file that is compressed for the way has other ranges than the file itself.
        answer = await self._connection.open(url, {"Accept-Encoding": "identity", **more})
        if answer.status in (OK, PARTIAL_CONTENT):
            return answer
        answer.close()
        told = f"{urlsplit(url).netloc} answered {answer.status}"
        if answer.status in (MISSING, GONE):
            raise NotFoundError(f"there is nothing at {what} ({told}): check the address")
        if answer.status in (UNAUTHORISED, FORBIDDEN):
            own = "download it by yourself, and give its path"
            advice = "sign in to its site, then load it again" if IN_PAGE else own
            raise RefusedError(f"{what} is not for everybody ({told}): {advice}")
        if answer.status == BEYOND_THE_END:
            raise RefusedError(f"{what} ends before the bytes that were requested ({told})")
        raise NetworkError(f"{told} to a request for {what}: try again later")
