"""The models of an engine and of a repository, without a page, a network or a GPU.

The tests show which is asked, what is at work for whom, and what fits.
"""

import asyncio
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest

from py_runtime.app import hub_calls
from py_runtime.app.hub_calls import BUFFER_LIMIT, HubCalls, _is_token, _row
from py_runtime.app.loaded_models import LoadedModels
from py_runtime.base import notices
from py_runtime.base.cancel import CancelToken
from py_runtime.base.errors import (
    InpageError,
    NetworkError,
    NoModelError,
    RequestError,
    StorageError,
)
from py_runtime.gpu import CPU, GPU
from py_runtime.hub.errors import HubError
from py_runtime.hub.listing import HubFile
from py_runtime.model.requirements import CPU_MARGIN
from tests.runners import wait


class FakeModel:
    def __init__(self, name: str, fault: Exception | None = None) -> None:
        self.manifest = SimpleNamespace(name=name)
        self.warmed = self.unloaded = 0
        self._fault = fault

    async def warm_up(self, cancel: CancelToken, with_template: bool) -> None:
        self.warmed += 1
        if self._fault:
            raise self._fault

    @asynccontextmanager
    async def idle(self) -> Any:
        yield

    def unload(self) -> None:
        self.unloaded += 1


async def with_models(*names: str) -> tuple[LoadedModels, list[FakeModel]]:
    loaded, models = LoadedModels(), [FakeModel(name) for name in names]
    for model in models:
        loaded.add(cast(Any, model), {"path": f"/{model.manifest.name}"})
    await asyncio.gather(*(each.warming for each in loaded))
    return loaded, models


def test_the_model_that_is_asked() -> None:
    loaded, _ = wait(with_models("a", "b"))
    assert [each.name for each in loaded] == ["a", "b"]
    assert [loaded.find(name).name for name in (None, "a", "b")] == ["b", "a", "b"]
    assert loaded.last is loaded.find("b")
    with pytest.raises(RequestError, match="the loaded models are a, b, not 'c'"):
        loaded.find("c")
    one, _ = wait(with_models("a"))
    with pytest.raises(RequestError, match="the loaded model is a, not 'c'"):
        one.find("c")
    assert LoadedModels().last is None
    for name in (None, "a"):
        with pytest.raises(NoModelError):
            LoadedModels().find(name)


def test_what_is_at_work_can_be_stopped() -> None:
    loaded, (a, b) = wait(with_models("a", "b"))
    assert (a.warmed, b.warmed) == (1, 1)
    assert loaded.running == {}
    mine, other, coming = CancelToken(), CancelToken(), CancelToken()
    with loaded.asked("a", mine) as asked, loaded.at_work(other, cast(Any, b)):
        assert asked.name == "a"
        with loaded.at_work(coming):
            loaded.stop(cast(Any, a))
            assert [is_cancelled(each) for each in (mine, other, coming)] == [True, False, False]
            loaded.stop_all()
        assert set(loaded.running) == {mine, other}
    assert [is_cancelled(each) for each in (other, coming)] == [True, True]
    assert loaded.running == {}


def is_cancelled(token: CancelToken) -> bool:
    try:
        token.check()
    except InpageError:
        return True
    return False


def test_a_model_that_leaves_is_told_of() -> None:
    told: list[Any] = []
    stop = notices.listen(told.append)

    async def come_and_go() -> FakeModel:
        loaded, (a, _) = await with_models("a", "b")
        await loaded.remove([loaded.find("a")])
        await loaded.remove([loaded.find("b")])
        return a

    a = wait(come_and_go())
    stop()
    assert a.unloaded == 1
    assert [notice["kind"] for notice in told] == ["model"] * 4
    assert [notice["paths"] for notice in told] == [
        *({"a": "/a"}, {"a": "/a", "b": "/b"}, {"b": "/b"}, {}),
    ]
    assert [notice["loaded"] and notice["loaded"]["path"] for notice in told] == [
        *("/a", "/b", "/b", None),
    ]
    assert told[-1]["text"] == "b is no longer loaded."
    assert (told[-1]["code"], told[-1]["facts"]) == ("model_unloaded", {"name": "b"})


def test_a_warm_up_that_fails_leaves_the_fault_to_an_answer() -> None:
    async def load() -> LoadedModels:
        loaded = LoadedModels()
        loaded.add(cast(Any, FakeModel("a", InpageError("no"))), {"path": "/a"})
        assert len(loaded.running) == 1
        await loaded.find("a").warming
        return loaded

    assert wait(load()).running == {}


# Of a repository ----------------------------------------------------------------------------------


class FakeShelf:
    def __init__(self, free: int | None) -> None:
        self._free = free

    async def room_for(self, url: str, files: Any) -> int:
        if self._free is None:
            raise StorageError("none")
        return self._free


@pytest.mark.parametrize(
    ("free", "missing", "limit", "fits", "facts", "words"),
    [
        (1000, 1000, 150, (True, True), "1.0 kB", ""),
        (600, 400, 150, (True, True), "1.0 kB · 600 bytes already downloaded", ""),
        (600, 0, 150, (True, True), "1.0 kB · stored in this browser", ""),
        (599, 600, 150, (False, True), "", "it needs 600 bytes, and this browser has"),
        (-5, 600, 150, (False, True), "", "this browser has 0 bytes left."),
        (
            600,
            600,
            149,
            (True, False),
            "",
            "about 150 bytes, and the limit here is 149",
        ),
        (None, 600, 150, (False, True), "", "This browser does not store files"),
        (None, 0, 149, (False, False), "", "This browser does not store files"),
    ],
)
def test_whether_a_file_fits(
    free: int | None,
    missing: int,
    limit: int,
    fits: tuple[bool, bool],
    facts: str,
    words: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Half as large as the one that was looked at, whose largest tensor has 300 bytes."""
    monkeypatch.setattr(hub_calls, "missing_bytes", lambda shelf, files: missing)
    variant = SimpleNamespace(name="v", quantisation="Q4", size=1000, files=())
    model = SimpleNamespace(variant=variant, url="u", files=[])
    chosen = SimpleNamespace(variant=SimpleNamespace(size=2000))
    hub = SimpleNamespace(shelf=FakeShelf(free))
    row = wait(_row(cast(Any, hub), cast(Any, model), cast(Any, chosen), 300, device_with(limit)))
    assert (row["fits_storage"], row["fits_gpu"]) == fits
    assert words in row["fit"]
    assert bool(row["fit"]) == bool(words)
    assert (row["address"], row["size"], row["missing"]) == ("u", 1000, missing)
    assert not facts or row["facts"] == facts


@pytest.mark.parametrize(
    ("token", "is_one"),
    [
        *(("hf_abc", True), ("a b", False), ("ä", False), ("a\n", False), (5, False)),
        ("", True),
    ],
)
def test_a_token_is_one_word(token: Any, is_one: bool) -> None:
    assert _is_token(token) == is_one


def test_who_may_ask_the_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    async def shelf() -> str:
        return "shelf"

    monkeypatch.setattr(hub_calls, "open_shelf", shelf)
    monkeypatch.setattr(hub_calls, "open_connection", lambda: "connection")
    monkeypatch.setattr(hub_calls, "HubRequests", lambda *given: given)
    monkeypatch.setattr(hub_calls, "Hub", lambda shelf, requests: requests)
    allowed, closed = cast(Any, HubCalls("https://hub")), cast(Any, HubCalls(None))
    assert wait(allowed._open(None)) is None
    assert wait(closed._open(None)) is None
    assert wait(allowed._open({})) == ("https://hub", "connection", None)
    assert wait(allowed._open({"token": "hf_x"})) == ("https://hub", "connection", "hf_x")
    assert wait(allowed._open(True)) == ("https://hub", "connection", None)
    with pytest.raises(RequestError, match="one word"):
        wait(allowed._open({"token": "a b"}))
    with pytest.raises(HubError, match="does not let its page ask the Hub"):
        wait(closed._open({}))


FILES = [
    HubFile(f"m-{name}.gguf", size, "0" * 64) for name, size in (("Q4_K_M", 500), ("Q8_0", 1000))
]


def listed(
    monkeypatch: pytest.MonkeyPatch,
    where: Any,
    files: Any = FILES,
    fault: Any = None,
    kind: str = GPU,
) -> Any:
    async def repository(address: Any) -> Any:
        assert address.repository == "a/m"
        return SimpleNamespace(name="a/m", commit="c", licence="mit", gated=False, files=files)

    async def opened(self: HubCalls, permission: Any) -> Any:
        assert permission == {"token": "t"}
        return SimpleNamespace(
            list_repository=repository, shelf=FakeShelf(10_000), sources=lambda model: []
        )

    async def manifest() -> Any:
        if fault is not None:
            raise fault
        requires = SimpleNamespace(limits={BUFFER_LIMIT: 200})
        return SimpleNamespace(requires=requires, least_gpu_bytes=600, size=500)

    monkeypatch.setattr(HubCalls, "_open", opened)
    monkeypatch.setattr(hub_calls, "missing_bytes", lambda shelf, files: 5)
    monkeypatch.setattr(
        hub_calls, "GgufStore", lambda name, sources: SimpleNamespace(manifest=manifest)
    )
    return wait(HubCalls("https://hub").files(where, {"token": "t"}, device_with(300, kind)))


def test_what_there_is_to_choose_from(monkeypatch: pytest.MonkeyPatch) -> None:
    found = listed(monkeypatch, "a/m")
    facts = [found[name] for name in ("name", "commit", "licence", "gated")]
    assert facts == ["a/m", "c", "mit", False]
    assert "error" not in found
    assert [(row["quantisation"], row["size"]) for row in found["files"]] == [
        *(("Q4_K_M", 500), ("Q8_0", 1000)),
    ]
    assert found["default"] == found["files"][0]["address"]
    assert [row["fits_gpu"] for row in found["files"]] == [True, False], "its tensor has 400"
    named = listed(monkeypatch, "hf:a/m/m-Q8_0.gguf")
    assert named["default"] == named["files"][1]["address"]
    assert [row["fits_gpu"] for row in named["files"]] == [True, True]


def test_all_of_a_model_counts_on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    found = listed(monkeypatch, "a/m", kind=CPU)
    assert [row["fits_gpu"] for row in found["files"]] == [False, False]
    needed = [row["unfit"]["facts"]["needed"] for row in found["files"]]
    assert needed == [CPU_MARGIN + 600, 2 * (CPU_MARGIN + 600)]
    assert {row["unfit"]["code"] for row in found["files"]} == {"too_large_for_processor"}


def device_with(limit: int, kind: str = GPU) -> Any:
    return SimpleNamespace(kind=kind, limits={BUFFER_LIMIT: limit})


def test_what_cannot_be_chosen_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = listed(monkeypatch, "a/m", files=[])
    assert (nothing["files"], nothing["default"]) == ([], None)
    assert "no GGUF files" in nothing["error"]
    wrong = listed(monkeypatch, "a/m", fault=InpageError("torn"))
    assert wrong["error"] == "torn"
    assert len(wrong["files"]) == 2
    with pytest.raises(NetworkError):
        listed(monkeypatch, "a/m", fault=NetworkError("gone"))
    with pytest.raises(RequestError):
        listed(monkeypatch, 5)


def test_a_model_of_the_hub_is_opened_by_its_address(monkeypatch: pytest.MonkeyPatch) -> None:
    async def opened(self: HubCalls, permission: Any) -> str:
        return "hub"

    monkeypatch.setattr(HubCalls, "_open", opened)
    monkeypatch.setattr(hub_calls, "HubStore", lambda hub, address: (hub, address.repository))
    calls = cast(Any, HubCalls(None))
    assert wait(calls.store("hf:a/m", None)) == ("hub", "a/m")
