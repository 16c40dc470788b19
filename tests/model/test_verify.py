"""verify(): a sound model is told to be so, a spoilt one by the layer where it goes wrong."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from py_runtime.app.jsonable import dumps
from py_runtime.base.cancel import CancelToken
from py_runtime.base.errors import AbortedError
from py_runtime.base.model_errors import ModelTensorsError
from py_runtime.base.sizes import percent
from py_runtime.folder.layout import ModelFolder
from py_runtime.gpu import request_device
from py_runtime.model import Model
from py_runtime.model.goldens import NoGoldensError, read_goldens
from py_runtime.model.verify import CLEAR_MARGIN, VerifyReport, difference, verify
from tests.runners import NativeRunner, PlacedToy, wait

PROMPT = [5, 6, 7, 8, 9, 10, 11, 12]
LAYERS = ["embedding", "layers.0", "layers.1", "norm"]
# What is spoilt → the first layer that must differ. All of them are float32.
SPOILT = {
    "layers.0.self_attn.o_proj.scales": "layers.0",
    "layers.1.mlp.down_proj.scales": "layers.1",
    "norm.weight": "norm",
}

# Runner → who computes.
WHO = {
    "cpu": "This processor computes",
    "native": "This GPU computes",
    "page": "This browser and GPU compute",
}


@pytest.mark.thorough_in_page
def test_sound_spoilt_and_mended(toy: PlacedToy) -> None:
    check_reports(toy, near=1e-5)


def check_reports(toy: PlacedToy, near: float) -> None:
    """Check the reports of a sound model, of spoilt ones, and of the mended one."""
    answer = toy.runner.run(
        "tests.model.verify_cases",
        "verify_while_spoilt",
        where=toy.where,
        constants=list(SPOILT),
    )
    reports = answer["reports"]
    who = toy.runner.name
    check_sound(reports["sound"], who, near, lengths=[1, 7, 64, 300], texts=5, steps=64)
    check_sound(reports["mended"], who, near, lengths=[1, 7, 64], texts=1, steps=16)
    for constant, layer in SPOILT.items():
        check_spoilt(reports[constant], who, layer)
    check_progress(answer["steps"])


def check_sound(
    report: dict[str, Any],
    runner: str,
    near: float,  # relative RMS
    lengths: list[int],
    texts: int,
    steps: int,
) -> None:
    assert report["ok"], report["summary"]
    assert report["summary"].startswith(
        f"{WHO[runner]} this model as PyTorch does: the largest difference in any layer is 0.0"
    )
    assert report["summary"].endswith(
        "of 1 answer are the same." if texts == 1 else f"of {texts} answers are the same."
    )
    assert [check["layer"] for check in report["layers"]] == LAYERS
    assert [check["tokens"] for check in report["lengths"]] == lengths
    assert all(check["relative_rms"] < near for check in report["layers"] + report["lengths"])
    assert all(check["worst"] < 10 * near for check in report["layers"] + report["lengths"])
    assert len(report["texts"]) == texts
    for check in report["texts"]:
        assert check["identical"]
        assert check["first_difference"] is None
        assert 0 < check["tokens"] <= steps
        assert check["prompt"]
    assert report["worst_layer"] in LAYERS
    assert report["first_wrong_layer"] is None
    assert report["not_checked"] == []
    assert report["adapter"]


def check_spoilt(report: dict[str, Any], runner: str, layer: str) -> None:
    assert not report["ok"]
    assert report["first_wrong_layer"] == layer
    before = LAYERS.index(layer)
    assert [check["ok"] for check in report["layers"]] == [True] * before + [False] * (4 - before)
    words = {"layers.0": "layer 1 of 2", "layers.1": "layer 2 of 2", "norm": "the last norm"}
    assert report["summary"].startswith(
        f"Something computes wrongly here: {words[layer]} differs by "
    )
    advice = "Report it as a bug" if runner == "cpu" else "update the graphics driver"
    assert advice in report["summary"]
    assert not any(check["ok"] for check in report["lengths"])


def check_progress(steps: list[tuple[str, int, int]]) -> None:
    assert list(dict.fromkeys(what for what, _, _ in steps)) == ["layers", "logits", "text"]
    done = [done for _, done, _ in steps]
    assert done == sorted(done)
    assert done[-1] == steps[-1][2]
    assert len({total for _, _, total in steps}) == 1


# Natively alone: other goldens and other ends ---------------------------------------------------


class EditedStore:
    """The model's files, with other goldens."""

    def __init__(self, store: Any, edit: Callable[[bytearray], None]) -> None:
        self._store = store
        self._edit = edit

    async def read(self, model: ModelFolder, file: str) -> bytes:
        data = bytearray(await self._store.read(model, file))
        self._edit(data)
        return bytes(data)


@pytest.fixture
def model(native: NativeRunner, toy_model: Path) -> Iterator[Model]:
    loaded = wait(Model.load(native.device, str(toy_model)))
    yield loaded
    loaded.unload()


def set_golden(model: Model, name: str, place: int, value: float) -> Callable[[bytearray], None]:
    where = model.folder.goldens[name]
    start = where.pieces[0].offset + place * where.dtype.host.itemsize

    def edit(data: bytearray) -> None:
        raw = np.array([value], where.dtype.host).tobytes()
        data[start : start + len(raw)] = raw

    return edit


def report_with(model: Model, *edits: Callable[[bytearray], None]) -> VerifyReport:
    store = model.store
    for edit in edits:
        model.store = EditedStore(model.store, edit)  # type: ignore[assignment]
    try:
        return wait(verify(model))
    finally:
        model.store = store


def test_another_token_counts_where_torch_was_sure(model: Model) -> None:
    text = wait(read_goldens(model.folder, model.store)).texts[0]
    other = set_golden(model, "continuation_0", 5, (text.continuation[5] + 1) % model.vocabulary)
    sure = report_with(model, other, set_golden(model, "margins_0", 5, CLEAR_MARGIN * 2))
    assert not sure.ok
    assert (sure.texts[0].first_difference, sure.texts[0].identical) == (5, False)
    assert "an answer differs from PyTorch's at token 6" in sure.summary
    unsure = report_with(model, other, set_golden(model, "margins_0", 5, CLEAR_MARGIN / 2))
    assert unsure.ok
    assert (unsure.texts[0].tokens, unsure.texts[0].first_difference) == (5, None)
    assert "the first 5 tokens of 1 answer are the same" in unsure.summary


def test_one_wrong_number_among_many_is_seen(model: Model) -> None:
    report = report_with(model, set_golden(model, "logits_64", 3, 1.0))
    assert [check.ok for check in report.lengths] == [True, True, False]
    assert "the results after 64 tokens differ by" in report.summary
    wanted = np.random.default_rng(0).standard_normal(50_000)
    got = wanted.copy()
    got[7] += 0.05
    found = difference("logits", got, wanted)
    assert found.relative_rms < 1e-3
    assert not found.ok


def test_no_numbers_are_a_difference(model: Model) -> None:
    report = report_with(model, set_golden(model, "hidden.layers.1", 0, np.nan))
    assert report.first_wrong_layer == report.worst_layer == "layers.1"
    assert "layer 2 of 2 has values that are NaN or infinite" in report.summary
    dumps(report)  # JSON has no infinity of its own


def test_a_golden_that_the_graph_does_not_name_is_told(model: Model) -> None:
    renamed = {
        name.replace("hidden.layers.1", "hidden.layers.9"): place
        for name, place in model.folder.goldens.items()
    }
    model.folder = replace(model.folder, goldens=renamed)
    report = wait(verify(model))
    assert report.ok
    assert report.not_checked == ["layers.9"]
    assert [check.layer for check in report.layers] == ["embedding", "layers.0", "norm"]
    assert report.summary.endswith("Not checked, since the graph does not name them: layers.9.")


def test_goldens_without_layers(model: Model) -> None:
    kept = {n: place for n, place in model.folder.goldens.items() if not n.startswith("hidden")}
    model.folder = replace(model.folder, goldens=kept)
    report = wait(verify(model))
    assert report.ok
    assert (report.layers, report.worst_layer) == ([], None)
    assert "the largest difference in the results is 0.0" in report.summary


def test_no_goldens_is_an_error_of_its_own(model: Model) -> None:
    manifest = replace(model.folder.manifest, goldens=None)
    model.folder = replace(model.folder, goldens={}, manifest=manifest)
    with pytest.raises(NoGoldensError, match="Toy comes without goldens") as raised:
        wait(verify(model))
    assert raised.value.code == "no_goldens"


@pytest.mark.parametrize(
    ("name", "other", "words"),
    [
        ("hidden_tokens", None, "the golden 'hidden_tokens' is missing; it should be i32"),
        ("tokens_7", "logits_7", r"the golden 'tokens_7' is f32 \[320\]; it should be i32"),
        ("margins_0", "logits_7", "the golden 'margins_0' has 320 numbers for 64 tokens"),
        ("hidden.layers.1", "logits_1", r"the golden of layers.1 has the shape \[320\], but"),
    ],
)
def test_goldens_that_make_no_sense(model: Model, name: str, other: str | None, words: str) -> None:
    places = dict(model.folder.goldens)
    place = places.get(other or "")
    del places[name]
    if place is not None:
        places[name] = place
    model.folder = replace(model.folder, goldens=places)
    with pytest.raises(ModelTensorsError, match=words):
        wait(verify(model))


def test_a_device_lost_before_is_opened_anew(toy_model: Path, native: NativeRunner) -> None:
    async def lose_and_verify() -> VerifyReport:
        model = await Model.load(await request_device(), str(toy_model))
        model.graph.device.destroy()
        report = await verify(model)
        model.unload()
        return report

    assert wait(lose_and_verify()).ok


@pytest.mark.parametrize("phase", ["layers", "logits", "text"])
def test_it_can_be_cancelled_and_the_model_goes_on(model: Model, phase: str) -> None:
    cancel = CancelToken()

    def stop(what: str, done: int, total: int) -> None:
        if what == phase:
            cancel.cancel()

    before = wait(greedy_tokens(model))
    with pytest.raises(AbortedError):
        wait(verify(model, stop, cancel))
    assert wait(greedy_tokens(model)) == before
    assert wait(verify(model)).ok


def test_verify_waits_for_an_answer_in_the_making(model: Model) -> None:
    """Both want the cache."""
    steps: list[int] = []

    async def both() -> tuple[list[int], VerifyReport]:
        answer = model.greedy(PROMPT, 24)
        tokens = [await anext(answer)]
        verifying = asyncio.create_task(verify(model, lambda what, done, total: steps.append(done)))
        for _ in range(20):
            await asyncio.sleep(0)
        assert steps == []
        tokens += [token async for token in answer]
        return tokens, await verifying

    alone = wait(greedy_tokens(model))
    tokens, report = wait(both())
    assert tokens == alone
    assert report.ok
    assert steps[-1] > 0


async def greedy_tokens(model: Model) -> list[int]:
    return [token async for token in model.greedy(PROMPT, 24)]


@pytest.mark.parametrize(
    ("share", "words"),
    [(0.0, "0 %"), (4e-6, "0.00040 %"), (0.0314, "3.1 %"), (0.5, "50 %"), (12.0, "1200 %")],
)
def test_percent(share: float, words: str) -> None:
    assert percent(share) == words
