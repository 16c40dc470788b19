"""Requests to the Hub: the list of a repository's files, and the files themselves."""

from urllib.parse import urlencode, urljoin, urlsplit

from py_runtime.base.sizes import in_words
from py_runtime.download.connection import Answer, Connection, read_all
from py_runtime.download.remote_file import OK, PARTIAL_CONTENT, RemoteFile
from py_runtime.hub.address import MAIN, HubAddress, quote_path
from py_runtime.hub.errors import HubError, refusal
from py_runtime.hub.listing import (
    FoundRepository,
    HubFile,
    Repository,
    next_page,
    parse_about,
    parse_found,
    parse_tree,
)

MAX_ANSWER = 16 << 20
MAX_FOUND = 20  # repositories of a search
FOUND_FIELDS = ("downloads", "gated", "gguf", "tags")
MAX_PAGES = 50  # of a listing, which the Hub cuts into pages of 1,000 files
MAX_LISTING = 32 << 20  # bytes of all pages: 1,000 files take about 400 kB


class HubRequests:
    """A Host: the Hub. The token of a user who gave one is a header, never part of an address."""

    def __init__(self, endpoint: str, connection: Connection, token: str | None) -> None:
        self.endpoint = endpoint.rstrip("/")
        self._connection = connection
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    async def list_repository(self, address: HubAddress) -> Repository:
        """List a repository at the commit that its revision stands for now."""
        name, revision = address.repository, address.revision or MAIN
        what = f"{name}@{revision}" if address.revision else name
        about = f"{self.endpoint}/api/models/{name}/revision/{quote_path(revision)}"
        commit, licence, gated = parse_about(name, (await self._read(about, what))[0])
        files: list[HubFile] = []
        page: str | None = f"{self.endpoint}/api/models/{name}/tree/{commit}?recursive=true"
        listed = 0
        for _ in range(MAX_PAGES):
            if page is None:
                break
            data, headers = await self._read(page, what)
            listed += len(data)
            if listed > MAX_LISTING:
                raise _too_long(what, MAX_LISTING)
            files += parse_tree(name, data)
            page = self._check_page(next_page(headers))
        return Repository(name, commit, licence, gated, tuple(files))

    async def search(self, words: str) -> list[FoundRepository]:
        """Find repositories with GGUF files, those that are downloaded most first."""
        query = [("search", words), ("filter", "gguf"), ("sort", "downloads"), ("direction", "-1")]
        query += [("limit", str(MAX_FOUND)), *(("expand[]", field) for field in FOUND_FIELDS)]
        data, _ = await self._read(f"{self.endpoint}/api/models?{urlencode(query)}", words)
        return parse_found(words, data)

    def file(self, repository: str, commit: str, path: str) -> RemoteFile:
        url = f"{self.endpoint}/{repository}/resolve/{commit}/{quote_path(path)}"
        return RemoteFile(self, url, f"{repository}/{path}")

    async def ask(self, url: str, what: str, more: dict[str, str]) -> Answer:
        """Send a request; raise HubError unless the Hub grants it."""
        answer = await self._connection.open(url, {**self._headers, **more})
        if answer.status in (OK, PARTIAL_CONTENT):
            return answer
        answer.close()
        raise refusal(answer.status, what, answer.headers, bool(self._headers))

    async def _read(self, url: str, what: str) -> tuple[bytes, dict[str, str]]:
        answer = await self.ask(url, what, {})
        data = await read_all(answer, MAX_ANSWER)
        if len(data) > MAX_ANSWER:
            raise _too_long(what, MAX_ANSWER)
        return data, answer.headers

    def _check_page(self, url: str | None) -> str | None:
        """Check that the next page of a list is the Hub's, too: nobody else gets the token."""
        whole = urljoin(f"{self.endpoint}/", url) if url else None
        if whole and urlsplit(whole)[:2] != urlsplit(self.endpoint)[:2]:
            raise HubError(f"the Hub's list goes on at {urlsplit(whole).netloc}, which is not it")
        return whole


def _too_long(what: str, most: int) -> HubError:
    return HubError(f"the Hub says too much of {what}: more than {in_words(most)}")
