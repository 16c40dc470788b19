"""A smaller model proposes tokens: the answers are those of the larger one alone."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gguf import GGMLQuantizationType as Kind

from py_runtime.generation.speculation import (
    AUTO,
    LONGEST_REST,
    OFF,
    ON,
    REST,
    TRIES,
    Guesses,
    Speculation,
)
from py_runtime.model.requirements import CPU_MARGIN
from tests.export.gguf_files import ARCHITECTURES, write_gguf
from tests.runners import CpuRunner, NativeRunner, Runner

pytestmark = pytest.mark.torch

CASES = "tests.generation.draft_cases"
PROMPT = [3 + (7 * place + place * place) % 200 for place in range(60)]
GREEDY = {"temperature": 0, "max_tokens": 60, "ignore_eos": True}
DRAWN = {"temperature": 0.7, "top_p": 0.9, "seed": 11, "max_tokens": 60, "ignore_eos": True}
PENALTIES = {"repetition_penalty": 1.1, "frequency_penalty": 0.1, "logit_bias": {"7": 2}}


def gguf(path: Path, family: str, kind: Kind = Kind.F32, **changes: Any) -> np.ndarray:
    write_gguf(path, family, ARCHITECTURES[family], kind, changes=changes or None)
    return np.frombuffer(path.read_bytes(), np.uint8)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, np.ndarray]:
    """Write a model, and the same in fewer bits, which agrees with it as a rule."""
    path = tmp_path_factory.mktemp("drafts") / "x.gguf"
    return {"data": gguf(path, "smollm2"), "draft": gguf(path, "smollm2", Kind.Q8_0)}


def check_alike(found: dict[str, Any]) -> None:
    plain, drafted = found["plain"], found["drafted"]
    for same in ("tokens", "text", "finish_reason"):
        assert drafted[same] == plain[same]


@pytest.mark.torch
def test_the_same_tokens(runner: Runner, models: dict[str, np.ndarray]) -> None:
    steps = [{"prompt": PROMPT, "fields": each} for each in (GREEDY, DRAWN)]
    found = runner.run(CASES, "both_ways", **models, steps=steps)
    assert found["left"] == 0
    for answers in found["answers"]:
        check_alike(answers)
    proposed, accepted = found["answers"][1]["drafted"]["drafted"]
    assert 0 < accepted < proposed
    assert found["answers"][1]["plain"]["drafted"] == [0, 0]


@pytest.mark.torch
@pytest.mark.parametrize("family", ["smollm2", "lfm2"])
def test_a_draft_that_agrees_is_never_wrong(family: str, cpu: CpuRunner, tmp_path: Path) -> None:
    """It draws with the same settings and random numbers, from caches that follow the answer."""
    steps = [
        {"prompt": PROMPT, "fields": {**DRAWN, "top_p": 1.0, "temperature": 1.5}},
        {"prompt": [*PROMPT, 7], "fields": {**DRAWN, **PENALTIES}, "forget": False},
    ]
    data = gguf(tmp_path / "x.gguf", family)
    found = cpu.run(CASES, "both_ways", data=data, draft=data, steps=steps)
    for answers in found["answers"]:
        check_alike(answers)
        proposed, accepted = answers["drafted"]["drafted"]
        assert accepted == proposed > 30


@pytest.mark.torch
@pytest.mark.parametrize("family", ["gemma 3", "lfm2"])
def test_rings_and_states(family: str, cpu: CpuRunner, tmp_path: Path) -> None:
    """Proposals in vain have left nothing that the next ones see, in either model."""
    large, small = (gguf(tmp_path / "x.gguf", family, kind) for kind in (Kind.F32, Kind.Q8_0))
    steps = [{"prompt": PROMPT, "fields": {**DRAWN, "max_tokens": 90}}]
    found = cpu.run(CASES, "both_ways", data=large, draft=small, steps=steps)
    check_alike(found["answers"][0])
    proposed, accepted = found["answers"][0]["drafted"]["drafted"]
    assert 20 < accepted < proposed


@pytest.mark.torch
def test_other_sizes(cpu: CpuRunner, models: dict[str, np.ndarray], tmp_path: Path) -> None:
    """A draft may have a shorter context, other layers, and a vocabulary that is padded or cut."""
    steps = [{"prompt": PROMPT, "fields": {**DRAWN, "logit_bias": {"318": 4, "7": 3}}}]
    for more in (7, -7):
        sizes = {"num_hidden_layers": 1, "max_position_embeddings": 90, "vocab_size": 320 + more}
        draft = gguf(tmp_path / "x.gguf", "smollm2", **sizes)
        found = cpu.run(CASES, "both_ways", data=models["data"], draft=draft, steps=steps)
        check_alike(found["answers"][0])
        assert found["answers"][0]["drafted"]["drafted"][0] > 0


@pytest.mark.torch
def test_what_needs_the_host_steps_aside(cpu: CpuRunner, models: dict[str, np.ndarray]) -> None:
    steps = [{"prompt": PROMPT, "fields": {**GREEDY, "max_tokens": 20, "logprobs": True}}]
    (found,) = cpu.run(CASES, "both_ways", **models, steps=steps)["answers"]
    check_alike(found)
    assert found["drafted"]["drafted"] == [0, 0]


@pytest.mark.torch
def test_a_draft_reads_a_chat_once(cpu: CpuRunner, models: dict[str, np.ndarray]) -> None:
    fields = {**DRAWN, "max_tokens": 30, "speculate": True}
    found = cpu.run(CASES, "cached", **models, fields=fields)
    first, second = found["computed"]
    assert 60 < first < found["written"]
    assert second - first < 60, "the prompt before is still in its cache"


@pytest.mark.torch
def test_clients_hear_of_proposals(cpu: CpuRunner, models: dict[str, np.ndarray]) -> None:
    usage = cpu.run(CASES, "usage_of", **models, fields={**DRAWN, "speculate": True})
    details = usage["completion_tokens_details"]
    assert details["accepted_prediction_tokens"] > 0
    assert details["rejected_prediction_tokens"] > 0
    assert 0 < usage["extra"]["drafted_tokens"] <= sum(details.values())


@pytest.mark.torch
@pytest.mark.thorough
def test_a_device_that_is_lost(native: NativeRunner, models: dict[str, np.ndarray]) -> None:
    found = native.run(CASES, "lose_the_device", **models, fields={**DRAWN, "speculate": True})
    assert found["tokens"] == found["again"] == found["undisturbed"]
    assert found["drafted"] > 0
    assert found["buffers"] == 0


@pytest.mark.torch
def test_pairs_that_cannot_be(
    cpu: CpuRunner, models: dict[str, np.ndarray], tmp_path: Path
) -> None:
    def refusal(data: np.ndarray, draft: np.ndarray) -> str:
        found = cpu.run(CASES, "refusal", data=data, draft=draft)
        assert found["left"] == 0
        return str(found["fault"])

    few = gguf(tmp_path / "few.gguf", "smollm2", vocab_size=200)
    own, rows = models["data"], gguf(tmp_path / "rows.gguf", "gemma 4")
    assert "Small cannot be a draft for Large: only 62% of their tokens" in refusal(own, few)
    assert "Small cannot be a draft: it reads rows of tokens from outside" in refusal(own, rows)
    assert "the draft cannot be loaded: " in refusal(own, own[:100])


@pytest.mark.torch
def test_a_pair_that_is_too_large_is_refused_before_it_is_loaded(
    cpu: CpuRunner, models: dict[str, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each alone would fit."""
    monkeypatch.setattr(type(cpu.device), "bytes_left", CPU_MARGIN * 3 // 2)
    found = cpu.run(CASES, "refusal", **models)
    assert "Large and its draft Small need " in found["fault"]
    assert found["left"] == 0


def drafting(one: float, verified: float, each: float, share: float) -> Speculation:
    """Return what is known after calls with these seconds and this share of proposals."""
    speculation = Speculation()
    speculation.costs.took_one(one)
    for size in (2, 4, 8, 16) * 2:  # the first time does not count
        speculation.costs.took(size, one * (1 + verified * (size - 1)))
        speculation.draft.took(size, one * each * size)
    for _ in range(40):
        speculation.draft.verified(10, round(10 * share))
    return speculation


def test_the_size_follows_from_what_a_draft_costs() -> None:
    for verified, each, share, expected in (
        (0.02, 0.05, 0.9, 8),
        (0.02, 0.3, 0.9, 4),
        (0.02, 0.05, 0.0, 1),
        (0.5, 0.6, 0.9, 1),
    ):
        found = drafting(0.1, verified, each, share).by_draft(16)
        assert found.size == expected, (verified, each, share)


def test_a_draft_that_does_not_pay_rests_longer_each_time() -> None:
    speculation = drafting(0.1, 0.5, 0.9, 0.5)
    rests = []
    for _ in range(10):
        assert speculation.by_draft(16).size == 1
        rested = 0
        while speculation.by_draft(16).size == 1:
            speculation.draft.passed(1)
            rested += 1
        rests.append(rested)
        for _ in range(TRIES):
            assert speculation.by_draft(16).size > 1, "it may have been chance"
            speculation.draft.verified(3, 0)
    assert rests[:3] == [REST, 2 * REST, 4 * REST]
    assert rests[-1] == LONGEST_REST


def test_nothing_is_drafted_before_a_token_was_decoded_alone() -> None:
    assert Speculation().by_draft(16).size == 1
    assert drafting(0.1, 0.02, 0.05, 0.9).by_draft(1).size == 1


def test_what_stood_in_the_text_costs_nothing() -> None:
    text = [1, 2, 3, 4, 5, 6, 7, 8] * 7
    for mode, has_draft, tokens, expected in (
        (ON, True, text, "text"),
        (ON, True, list(range(60)), "draft"),
        (OFF, True, text, None),
        (ON, False, list(range(60)), None),
        (AUTO, True, text, "text"),
        (AUTO, True, list(range(60)), "draft"),
    ):
        guesses = Guesses(drafting(0.1, 0.02, 0.05, 0.9), mode, tokens[:16], has_draft)
        guesses.add(tokens[16:])
        choice = guesses.choose(16)
        found = choice and ("draft" if choice.place is None else "text")
        assert found == expected, (mode, has_draft)
