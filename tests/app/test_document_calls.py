"""The calls about documents that are searched: what a model is given of them, and when."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from py_runtime.app import document_calls
from py_runtime.app.document_calls import DocumentCalls
from py_runtime.base.cancel import CancelToken
from py_runtime.base.errors import RequestError
from tests.runners import wait

TOPICS = ("heron", "stone")
SENTENCE = "Nothing of any note was written down on this day by anybody at all. "
TEXT = "\n\n".join(["😀 A heron. " + SENTENCE * 10, "A stone. " + SENTENCE * 10])


class Loaded:
    """Loaded models: one, whose vectors say which topics a text is about."""

    def __init__(self) -> None:
        tokenizer = SimpleNamespace(encode=lambda text, add_special_tokens: text.split())
        graph = SimpleNamespace(device=SimpleNamespace(kind="gpu"))
        self.model: Any = SimpleNamespace(tokenizer=tokenizer, graph=graph)
        self.name, self.is_encoder = "Model", True

    @contextmanager
    def asked(self, name: Any, cancel: CancelToken, for_texts: bool) -> Iterator["Loaded"]:
        yield self

    def find(self, name: Any) -> "Loaded":
        return self


async def vectors_of(
    model: Any, texts: Sequence[str], prompts: Sequence[str], cancel: CancelToken
) -> np.ndarray:
    return np.array([[topic in text for topic in TOPICS] + [1] for text in texts], np.float32)


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> Loaded:
    monkeypatch.setattr(document_calls, "_vectors", vectors_of)
    monkeypatch.setattr(document_calls, "writer", lambda model: model)
    return Loaded()


def call(calls: DocumentCalls, action: str, **fields: Any) -> Any:
    return wait(calls.call(action, {"ids": ["a"], **fields}, CancelToken()))


def opened(loaded: Loaded, **fields: Any) -> DocumentCalls:
    calls = DocumentCalls(loaded)  # type: ignore[arg-type]
    given = {"name": "days.txt", "kind": "txt", "text": TEXT, **fields}
    call(calls, "open", **given)
    return calls


def embedded(calls: DocumentCalls) -> Any:
    while "vectors" not in (found := call(calls, "embed", count=1)):
        assert found["done"] < found["total"]
    return found["vectors"]


def test_what_is_not_here_is_named(loaded: Loaded) -> None:
    calls = DocumentCalls(loaded)  # type: ignore[arg-type]
    assert call(calls, "search", question="heron", budget=500) == {"missing": ["a"]}


def test_places_are_counted_as_javascript_does(loaded: Loaded) -> None:
    found = call(opened(loaded), "search", question="Which stone?", budget=500)["passages"][0]
    read = TEXT.encode("utf-16-le")[2 * found["start"] : 2 * found["end"]].decode("utf-16-le")
    assert read.startswith("A stone.")
    assert found["label"] == f"days.txt, line {found['first']}"
    assert found["search"] == "a"


def test_vectors_are_made_in_batches_and_taken_back(loaded: Loaded) -> None:
    calls = opened(loaded)
    assert call(calls, "search", question="heron", budget=500)["model"] == ""
    vectors = embedded(calls)
    assert vectors["model"] == "Model"
    for own in (calls, opened(loaded, vectors=vectors)):
        assert call(own, "search", question="heron", budget=500)["model"] == "Model"
    loaded.name = "Another"
    assert call(calls, "search", question="heron", budget=500)["model"] == "", "it has none"
    assert embedded(calls)["model"] == "Another"


def test_a_question_waits_for_no_index_once_vectors_are_made(
    loaded: Loaded, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = opened(loaded)
    embedded(calls)
    monkeypatch.delattr(document_calls, "Search")
    found = call(calls, "search", question="heron", budget=500)
    assert found["model"] == "Model"
    assert found["passages"]


@pytest.mark.parametrize(
    ("kind", "is_encoder", "is_embedded"),
    [("cpu", False, False), ("cpu", True, True), ("gpu", False, True)],
)
def test_a_model_that_writes_embeds_on_a_gpu_only(
    loaded: Loaded, kind: str, is_encoder: bool, is_embedded: bool
) -> None:
    loaded.is_encoder, loaded.model.graph.device.kind = is_encoder, kind
    calls = opened(loaded)
    found = call(calls, "embed", count=100)
    assert ("vectors" in found, "is_too_slow" in found) == (is_embedded, not is_embedded)
    by = call(calls, "search", question="heron", budget=500)["model"]
    assert by == ("Model" if is_embedded else "")


def test_vectors_that_do_not_fit_are_left_out(loaded: Loaded) -> None:
    vectors = {**embedded(opened(loaded)), "base64": "AAAA"}
    found = call(opened(loaded, vectors=vectors), "search", question="stone", budget=500)
    assert found["model"] == ""
    assert found["passages"]


def test_parts_follow_each_other(loaded: Loaded) -> None:
    parts = call(opened(loaded), "parts", budget=100)["parts"]
    assert len(parts) > 1
    assert parts[0]["start"] == 0
    assert [each["start"] for each in parts] == sorted(each["start"] for each in parts)


@pytest.mark.parametrize(
    ("action", "fields", "param"),
    [
        ("search", {"question": 5, "budget": 9}, "question"),
        ("search", {"question": "q", "budget": "9"}, "budget"),
        ("parts", {"budget": 0}, "budget"),
        ("open", {"name": "a", "kind": "txt", "text": None}, "text"),
        ("open", {"name": "a", "kind": "txt", "text": "b", "names": ["c"]}, "names"),
        ("open", {"name": "a", "kind": "txt", "text": "b", "starts": ["c"]}, "starts"),
    ],
)
def test_odd_fields_are_refused(
    loaded: Loaded, action: str, fields: dict[str, Any], param: str
) -> None:
    with pytest.raises(RequestError) as refused:
        call(opened(loaded), action, **fields)
    assert refused.value.param == param
