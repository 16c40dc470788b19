"""The page's view of models and loads, and values as JSON: with and without each fact."""

import base64
import json
import math
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from py_runtime.app import embeddings, load_progress
from py_runtime.app.embeddings import encoded, shortened
from py_runtime.app.jsonable import dumps, jsonable
from py_runtime.app.listing import COUNTS
from py_runtime.app.load_progress import LoadMeter, Speed
from py_runtime.app.model_facts import (
    describe_offer,
    describe_stored,
    fit,
    model_messages,
    with_smaller_models,
)
from py_runtime.base.cancel import CancelToken
from py_runtime.base.errors import GpuOutOfMemoryError, RequestError
from py_runtime.base.messages import worded
from py_runtime.base.progress import DOWNLOAD, SHADERS, UPLOAD
from py_runtime.folder.manifest import NEEDED_LIMITS
from py_runtime.gpu import CPU, GPU
from py_runtime.model.requirements import CPU_MARGIN
from py_runtime.notebook.shown_value import DEEPEST, MAX_CHARACTERS, MAX_ITEMS, cut, shown_value
from tests.runners import wait

Json = dict[str, Any]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Any:
    class Clock:
        now = 100.0

        def perf_counter(self) -> float:
            return self.now

    clock = Clock()
    monkeypatch.setattr(load_progress, "time", clock)
    return clock


def test_how_far_a_load_is(clock: Any) -> None:
    told: list[Json] = []
    meter = LoadMeter(told.append)
    assert meter.downloaded is False
    meter(DOWNLOAD, 0, 1000)
    assert meter.downloaded is False
    meter(UPLOAD, 1, 1000)
    assert meter.downloaded is False
    clock.now += 0.5
    meter(UPLOAD, 250, 1000)
    assert told[-1] == {
        "phase": UPLOAD,
        "done": 250,
        "total": 1000,
        "seconds": 0.5,
        "fraction": 0.25,
        "messages": [{"code": "bytes_done", "facts": {"done": 250, "total": 1000}}],
        "text": "250 bytes of 1.0 kB",
    }
    meter(UPLOAD, 100, 1000)
    assert told[-1]["fraction"] == 0.25, "it never falls"
    meter(SHADERS, 3, 4)
    assert (told[-1]["text"], told[-1]["fraction"]) == ("3 of 4", 0.25)
    meter(UPLOAD, 0, 0)
    assert told[-1]["fraction"] == 1.0


def test_a_load_that_downloads_all_of_it_first(clock: Any) -> None:
    told: list[Json] = []
    meter = LoadMeter(told.append)
    meter.download_share = 0.8
    meter(DOWNLOAD, 500, 1000)
    assert meter.downloaded is True
    assert told[-1]["fraction"] == pytest.approx(0.4)
    clock.now += 2
    meter(DOWNLOAD, 900, 1000)
    assert told[-1]["bytes_per_second"] == 200
    assert told[-1]["seconds_left"] == 0.5
    assert told[-1]["text"] == "900 bytes of 1.0 kB · 200 bytes/s · 1 s left"
    meter(DOWNLOAD, 1000, 1000)
    assert "bytes_per_second" not in told[-1]
    meter(UPLOAD, 500, 1000)
    assert told[-1]["fraction"] == pytest.approx(0.9)


def test_a_byte_is_a_download(clock: Any) -> None:
    meter = LoadMeter(lambda told: None)
    meter(DOWNLOAD, 1, 1000)
    assert meter.downloaded is True


def test_the_speed_of_the_last_seconds() -> None:
    speed = Speed()
    assert speed.after(0.0, 1000) is None
    assert speed.after(0.9, 1900) is None
    assert speed.after(1.0, 2000) == 1000
    assert speed.after(10.0, 2000) == 100
    assert speed.after(10.5, 2000) == pytest.approx((2000 - 1900) / 9.6)
    assert speed.after(100.0, 2000) == 0, "two looks are kept, however long ago"


def test_a_model_with_a_fault() -> None:
    found = describe_offer({"error": "torn", "stored": False, "size": 5}, device_with())
    assert found["messages"] == [{"code": "model_faulty", "facts": {"fault": "torn"}}]
    assert found["facts"] == "Cannot be loaded: torn."
    assert "fits_gpu" not in found


def test_no_words_for_a_button_come_from_here() -> None:
    entry = {"stored": False, "size": 2000, "kept_bytes": 500}
    assert describe_offer(entry, device_with()).keys() == {"messages", "facts"}


def test_facts_in_a_line() -> None:
    whole = {
        "parameters": 135_000_000,
        "size": 101_000_000,
        "context": 2048,
        "gpu_bytes": 200_000_000,
        "quantisation": "Q8_0",
    }
    assert worded(model_messages(whole)) == (
        "135.0 million parameters · 101 MB · context of 2048 tokens · 200 MB of memory · Q8_0"
    )
    assert model_messages({"parameters": 0, "quantisation": ""}) == []


@pytest.mark.parametrize(
    ("complete", "told"), [(True, "Toy · 2.0 kB"), (False, "Toy · 2.0 kB · partly downloaded")]
)
def test_a_stored_model_in_a_line(complete: bool, told: str) -> None:
    entry = {"name": "Toy", "bytes": 2000, "complete": complete}
    found = describe_stored(entry)
    assert found["facts"] == told
    assert found | entry == found


def test_whether_a_model_fits() -> None:
    device = device_with(GPU, **{name: 1000 + at for at, name in enumerate(NEEDED_LIMITS)})
    assert fit({}, device) == {}
    assert fit({"largest_buffer": 1000}, device) == {"fits_gpu": True}
    assert fit({"largest_buffer": 1001}, device) == {
        "fits_gpu": False,
        "unfit": {"code": "too_large_for_gpu", "facts": {"needed": 1001, "limit": 1000}},
        "fit": "Too large for this GPU: it needs a buffer of 1.0 kB, and the limit here is 1.0 kB.",
    }


def test_whether_a_model_fits_on_the_cpu() -> None:
    """All of it counts there, and not its largest buffer; where nobody counted it, its files."""
    limit = CPU_MARGIN + 1000
    device = device_with(CPU, **dict.fromkeys(NEEDED_LIMITS, limit))
    for held in ({"gpu_bytes": 1000, "size": 2000}, {"size": 1000}):
        assert fit({**held, "largest_buffer": 9 * limit}, device) == {"fits_gpu": True}
    assert fit({"largest_buffer": 1, "gpu_bytes": 1001}, device) == {
        "fits_gpu": False,
        "unfit": {
            "code": "too_large_for_processor",
            "facts": {"needed": limit + 1, "limit": limit},
        },
        "fit": "Too large for the processor: it needs 67.1 MB of memory, and the limit here is "
        "67.1 MB.",
    }


def device_with(kind: str = GPU, **limits: int) -> Any:
    return SimpleNamespace(kind=kind, limits=limits)


def test_smaller_models_are_named() -> None:
    listed: list[Json] = [
        {"name": "a", "gpu_bytes": 1000},
        {"name": "b", "gpu_bytes": 2000},
        {"name": "c"},
        {"name": "d", "gpu_bytes": 3000},
    ]

    def advice(url: str) -> str:
        error = GpuOutOfMemoryError("full")
        return str(with_smaller_models(error, listed, url, lambda entry: str(entry["name"])))

    assert advice("b") == "full. Smaller models here: a (1.0 kB)"
    assert advice("a") == "full"
    assert advice("c") == "full. Smaller models here: a (1.0 kB), b (2.0 kB), d (3.0 kB)"
    assert advice("x") == advice("c")


def test_counts_of_a_list_are_known_by_name() -> None:
    assert {"size", "context"} <= set(COUNTS)


# Values -------------------------------------------------------------------------------------------


@dataclass
class Point:
    x: float
    y: Any


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        *((None, None), (True, True), (5, 5), ("x", "x"), (1.5, 1.5)),
        *((math.nan, "NaN"), (math.inf, "Infinity"), (-math.inf, "-Infinity")),
        (np.float32(0.5), 0.5),
        (np.array([[1, 2]], np.int32), {"dtype": "int32", "shape": [1, 2], "data": [[1, 2]]}),
        (np.array([math.nan]), {"dtype": "float64", "shape": [1], "data": ["NaN"]}),
        (b"ab", {"base64": base64.b64encode(b"ab").decode()}),
        (bytearray(b"ab"), {"base64": base64.b64encode(b"ab").decode()}),
        ({1: (2, {3})}, {"1": [2, [3]]}),
        (Point(1.0, [b""]), {"x": 1.0, "y": [{"base64": ""}]}),
        (Point, {"repr": repr(Point)}),
    ],
)
def test_any_value_as_json(value: Any, wanted: Any) -> None:
    assert jsonable(value) == wanted
    assert json.loads(dumps(value)) == wanted


def test_a_value_is_shown_as_far_as_people_read() -> None:
    assert shown_value(None) == ""
    assert cut("x" * MAX_CHARACTERS) == "x" * MAX_CHARACTERS
    assert cut("x" * (MAX_CHARACTERS + 1)).endswith(f"… ({MAX_CHARACTERS + 1:,} characters in all)")
    assert "more" not in shown_value(list(range(MAX_ITEMS)))
    assert "… 1 more" in shown_value(list(range(MAX_ITEMS + 1)))
    assert "more" not in shown_value(dict.fromkeys(range(MAX_ITEMS), 0))
    assert "… 1 more" in shown_value(dict.fromkeys(range(MAX_ITEMS + 1), 0))
    assert shown_value({"b": 1, "a": 2}) == "{'b': 1, 'a': 2}", "in their own order"
    for held in (lambda inner: [inner], lambda inner: {"a": inner}):
        long: Any = list(range(MAX_ITEMS + 1))
        for levels in range(1, DEEPEST + 2):
            assert ("… 1 more" in shown_value(long)) == (levels <= DEEPEST)
            long = held(long)


def test_embeddings_may_be_shortened() -> None:
    vectors = np.array([[3 / 13, 4 / 13, 12 / 13], [0, 0, 1]], np.float32)
    assert shortened(vectors, None) is vectors
    np.testing.assert_allclose(shortened(vectors, 2), [[0.6, 0.8], [0.0, 0.0]], rtol=1e-6)
    np.testing.assert_allclose(shortened(vectors, 1), [[1], [0]], rtol=1e-6)
    np.testing.assert_allclose(shortened(vectors, 3), vectors, rtol=1e-6)
    for wrong in (0, 4, True, 1.0, "2"):
        with pytest.raises(RequestError, match="from 1 to 3"):
            shortened(vectors, wrong)


def test_embeddings_as_numbers_and_as_bytes() -> None:
    vector = np.array([0.5, -1], np.float32)
    assert encoded(vector, "float") == [0.5, -1.0]
    data = base64.b64decode(str(encoded(vector, "base64")))
    assert np.frombuffer(data, "<f4").tolist() == [0.5, -1.0]


class Embedder:
    """Three numbers for each prompt: its length, 2 and 0."""

    manifest = SimpleNamespace(name="toy")

    def prompt_tokens(self, given: Any) -> list[int]:
        return [0] * len(given)


def embedded(monkeypatch: pytest.MonkeyPatch, **given: Any) -> Json:
    async def embed(model: Any, prompts: list[Any], pooling: str, cancel: Any) -> np.ndarray:
        assert pooling == given.get("pooling", "mean")
        return np.array([[len(prompt), 2, 0] for prompt in prompts], np.float32)

    monkeypatch.setattr(embeddings, "embed", embed)
    return wait(embeddings.create_embeddings(cast(Any, Embedder()), given, CancelToken()))


def test_embeddings_in_openais_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    assert embedded(monkeypatch, input=["ab", "c"], model=None) == {
        "object": "list",
        "data": [
            {"object": "embedding", "index": 0, "embedding": [2.0, 2.0, 0.0]},
            {"object": "embedding", "index": 1, "embedding": [1.0, 2.0, 0.0]},
        ],
        "model": "toy",
        "usage": {"prompt_tokens": 3, "total_tokens": 3},
    }
    asked = {"input": "ab", "model": "toy", "user": "me", "pooling": "last", "dimensions": 1}
    (row,) = embedded(monkeypatch, **asked, encoding_format="base64")["data"]
    assert np.frombuffer(base64.b64decode(row["embedding"]), "<f4").tolist() == [1.0]


@pytest.mark.parametrize(
    ("given", "param"),
    [
        ({"encoding_format": "hex"}, "encoding_format"),
        ({"model": "other"}, "model"),
        ({"user": 1}, "user"),
        ({"dimensions": 4}, "dimensions"),
        ({"temperature": 1}, "temperature"),
        ({"input": None}, "input"),
    ],
)
def test_a_wrong_field_of_embeddings_is_named(
    given: Json, param: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(RequestError) as caught:
        embedded(monkeypatch, **{"input": "ab"} | given)
    assert caught.value.param == param
