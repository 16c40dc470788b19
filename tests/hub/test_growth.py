"""Lists of strangers, from repositories, folders and requests: the work grows with their length."""

import unicodedata
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from inpage.listing import in_folder
from py_runtime.app.hub_calls import MAX_OFFERED, HubCalls
from py_runtime.base.file_facts import FileFacts
from py_runtime.chat.request import ChatRequest
from py_runtime.chat.seams import Seams, unmark
from py_runtime.folder.manifest import Manifest, Requirements, Source, _check_files
from py_runtime.gpu import GPU
from py_runtime.hub import requests
from py_runtime.hub.address import HubAddress
from py_runtime.hub.choice import choose, variants_of
from py_runtime.hub.errors import HubError
from py_runtime.hub.listing import HubFile, Repository, next_page
from py_runtime.tokens import Tokenizer
from py_runtime.tokens.normalizers import LONG_RUN, unicode_form
from tests.growth import assert_linear
from tests.runners import wait
from tools.models import Models

SHA = "a" * 64
NAMES: dict[str, Callable[[int], str]] = {
    "first parts": lambda at: f"m{at}-00001-of-65535.gguf",
    "parts of one": lambda at: f"m-{at + 1:05}-of-65535.gguf",
    "parts of one in all numbers": lambda at: f"m-00001-of-{at + 1:05}.gguf",
    "last parts": lambda at: f"m{at}-65535-of-65535.gguf",
    "quantisations": lambda at: f"m{at}{'-Q4_K_M' * 20}.gguf",
}


def hub_files(count: int, name: Callable[[int], str]) -> list[HubFile]:
    return [HubFile(name(at), 5, SHA) for at in range(count)]


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_file_names_of_a_repository(name: Callable[[int], str]) -> None:
    def offer(files: list[HubFile]) -> None:
        variants = variants_of(files)
        if variants:
            choose("o/n", variants, variants[-1].files[0].path)

    assert_linear(lambda count: hub_files(count, name), offer, 20)


@pytest.mark.parametrize("name", [NAMES["first parts"], NAMES["parts of one"]])
@pytest.mark.parametrize("listing", [in_folder, lambda where: Models(Path(where)).listing()])
def test_file_names_of_a_folder(
    tmp_path: Path, name: Callable[[int], str], listing: Callable[[str], Any]
) -> None:
    def folder(count: int) -> str:
        made = tmp_path / str(count)
        made.mkdir()
        for file in hub_files(count, name):
            (made / file.path).write_bytes(b"GGUF")
        return str(made)

    assert_linear(folder, listing, 8)


class Shelf:
    """An empty one; it counts how often it is asked for room."""

    asked = 0

    def has(self, facts: FileFacts) -> bool:
        return False

    def begun_bytes(self, facts: FileFacts) -> int:
        return 0

    async def room_for(self, url: str, files: Any) -> int:
        self.asked += 1
        return 0


def test_a_page_is_offered_a_bounded_number_of_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of them asks the browser's storage, so that thousands would take long."""
    files = tuple(hub_files(3000, lambda at: f"m{at:05}.gguf"))
    shelf = Shelf()
    hub: Any = type("Hub", (), {"shelf": shelf})()

    async def repository(address: HubAddress) -> Repository:
        return Repository("o/n", "0" * 40, "mit", False, files)

    async def opened(calls: HubCalls, permission: Any) -> Any:
        hub.list_repository = repository
        return hub

    async def look(hub: Any, model: Any, device: Any) -> tuple[int, str]:
        return 1, ""

    monkeypatch.setattr(HubCalls, "_open", opened)
    monkeypatch.setattr("py_runtime.app.hub_calls._look_at", look)
    device: Any = SimpleNamespace(kind=GPU, limits={"max_storage_buffer_binding_size": 1})
    named = wait(HubCalls(None).files("hf:o/n/m02999.gguf", {}, device))
    assert len(named["files"]) == shelf.asked == MAX_OFFERED
    assert named["default"] in [row["address"] for row in named["files"]]


def test_a_header_full_of_beginnings_is_read_once() -> None:
    """Each would begin a search of the rest: hours, for so many."""
    assert next_page({"link": "<" * 1_000_000}) is None
    assert next_page({"link": '<a>; rel="prev", <b>; rel="next"'}) == "b"


def listing_hub(
    monkeypatch: pytest.MonkeyPatch, next_page: str, page: bytes = b"[]"
) -> tuple[requests.HubRequests, list[str]]:
    """Return a Hub whose listings go on at another page for ever, and what it is asked for."""
    asked: list[str] = []

    async def read(self: Any, url: str, what: str) -> tuple[bytes, dict[str, str]]:
        asked.append(url)
        if "/tree/" not in url:
            return b'{"sha": "%s"}' % (b"0" * 40), {}
        return page, {"link": f'<{next_page}>; rel="next"'}

    monkeypatch.setattr(requests.HubRequests, "_read", read)
    connection: Any = None
    return requests.HubRequests("https://hub.example", connection, None), asked


def test_a_listing_of_long_pages_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "MAX_LISTING", 25)
    hub, asked = listing_hub(monkeypatch, "/tree/next", b"[" + b" " * 8 + b"]")
    with pytest.raises(HubError, match="says too much of o/n"):
        wait(hub.list_repository(HubAddress("o", "n")))
    assert len(asked) == 4


def test_a_listing_of_many_pages_is_read_up_to_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "MAX_LISTING", 1000)
    hub, asked = listing_hub(monkeypatch, "/tree/next")
    wait(hub.list_repository(HubAddress("o", "n")))
    assert len(asked) == 1 + requests.MAX_PAGES


@pytest.mark.parametrize("page", ["https://elsewhere.example/tree/x", "http://hub.example/tree/x"])
def test_a_listing_that_goes_on_elsewhere_is_refused(
    page: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stranger there would be told the token."""
    hub, asked = listing_hub(monkeypatch, page)
    with pytest.raises(HubError, match=r"goes on at (elsewhere|hub)\.example, which is not it"):
        wait(hub.list_repository(HubAddress("o", "n")))
    assert len(asked) == 2


class CountedText(str):
    """A text that counts how often texts of its kind are compared."""

    compared = 0

    def __eq__(self, other: object) -> bool:
        CountedText.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def comparisons(work: Callable[[], Any]) -> int:
    CountedText.compared = 0
    work()
    return CountedText.compared


def test_files_of_a_manifest() -> None:
    weights = tuple(CountedText(f"w{at}.safetensors") for at in range(300))
    names = (*weights, CountedText("graph.json"))
    files: dict[str, FileFacts] = {name: FileFacts(1, SHA) for name in names}
    manifest = Manifest(
        name="x",
        parameters=1,
        context=1,
        size=len(files),
        gpu_bytes=1,
        quantisation="q",
        graph="graph.json",
        weights=weights,
        goldens=None,
        files=files,
        requires=Requirements((), {}),
        source=Source("x", None, "mit"),
        created_by="x",
    )
    assert comparisons(lambda: _check_files(manifest)) < 10 * len(weights)


def test_tools_of_a_request() -> None:
    def take() -> None:
        names = [CountedText(f"t{at}") for at in range(300)]
        tools = [{"type": "function", "function": {"name": name}} for name in names]
        ChatRequest.take({"tools": tools})

    assert comparisons(take) < 1000


# Texts -------------------------------------------------------------------------------------------

FLAGS = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
MARKER = "<|x|>"


@pytest.mark.parametrize("flag", [None, *FLAGS])
def test_markers_that_a_message_spells(flag: str | None) -> None:
    vocabulary = {char: at for at, char in enumerate("a <|x>")}
    added = {"id": 9, "content": MARKER, "special": True, **FLAGS} | ({flag: True} if flag else {})
    tokenizer = Tokenizer.from_json(
        {"model": {"type": "BPE", "vocab": vocabulary, "merges": []}, "added_tokens": [added]}
    )
    seams = Seams(tokenizer.control_tokens)

    def encode(text: str) -> None:
        plain, literal = unmark(seams.mark_value(text))
        tokenizer.encode(plain, literal=literal)

    assert_linear(lambda count: f"a {MARKER}" * count, encode, 60)


@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC", "NFKD"])
def test_marks_behind_a_letter(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python sorts them by insertion: how far it moves them is what a long run costs."""
    text = "q" + "\u0301\u0316\u0344" * LONG_RUN + "e\u0316\u0301 \ufb01"
    normalise = unicodedata.normalize
    wanted = normalise(form, text)  # type: ignore[arg-type]
    moves = 0

    def counted(form: Any, text: str) -> str:
        nonlocal moves
        earlier: list[int] = []
        for later in map(unicodedata.combining, text):
            moves += sum(later < each for each in earlier) if later else 0
            earlier = [*earlier, later] if later else []
        return normalise(form, text)

    monkeypatch.setattr(unicodedata, "normalize", counted)
    assert unicode_form(form, text) == wanted
    assert moves < LONG_RUN
