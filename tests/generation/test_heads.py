"""Heads that models bring along: what they foresee, and answers that stay the same with them."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gguf import GGMLQuantizationType as Kind
from torch import nn
from transformers import PreTrainedModel

from py_runtime.decoder import config_json
from tests.export.gguf_files import ARCHITECTURES, write_gguf
from tests.export.heads import add_head, foreseen
from tests.runners import CpuRunner, NativeRunner, Runner

pytestmark = pytest.mark.torch

Json = dict[str, Any]

CASES, BOTH = "tests.generation.head_cases", "tests.generation.speculation_cases"
STATES = "tests.generation.state_cases"
PROMPT = [3 + (7 * place + place * place) % 200 for place in range(60)]
NEW = [3 + 11 * place % 200 for place in range(20)]
GREEDY: Json = {"temperature": 0, "max_tokens": 60, "ignore_eos": True}
DRAWN: Json = {
    "temperature": 1.3,
    "top_p": 0.95,
    "seed": 11,
    "max_tokens": 60,
    "ignore_eos": True,
}
PENALTIES: Json = {
    "repetition_penalty": 1.1,
    "frequency_penalty": 0.1,
    "logit_bias": {"7": 2},
}
RIGHT, OFTEN_RIGHT, WRONG = 0.0, 0.003, None


def with_head(
    path: Path, agrees: float | None = None, kind: Kind = Kind.F32, **how: Any
) -> tuple[PreTrainedModel, np.ndarray]:
    change = partial(add_head, agrees=agrees)
    model = write_gguf(path, "qwen3.5", "qwen35", kind, **{"change": change, **how})
    return model, np.frombuffer(path.read_bytes(), np.uint8)


def both_ways(runner: Runner, data: np.ndarray, *steps: Json) -> list[tuple[int, int]]:
    """Return how many tokens the head proposed for each answer, and how many came true."""
    counts = []
    for found in runner.run(BOTH, "both_ways_of", data=data, steps=list(steps)):
        plain, verified = found["plain"], found["verified"]
        for same in ("tokens", "text", "finish_reason"):
            assert verified[same] == plain[same]
        assert plain["verified"] == [0, 0]
        usage = verified["usage"]
        counts.append((usage["drafted_tokens"], usage["accepted_drafted_tokens"]))
    return counts


@pytest.mark.parametrize("tied", [True, False])
def test_it_foresees_what_torch_does(tied: bool, runner: Runner, tmp_path: Path) -> None:
    model, data = with_head(tmp_path / "x.gguf", changes={"tie_word_embeddings": tied})
    sizes, more = [9, 1, 30, 3, 1, 1], 5
    length = sum(sizes)
    found = runner.run(CASES, "foreseen", data=data, text=PROMPT, sizes=sizes, more=more)
    expected = foreseen(model, PROMPT[: length + 1], more)
    ends = [*(np.cumsum(sizes) - 1), *range(length, length + more)]
    for end, (logits,) in zip(ends, found, strict=True):
        np.testing.assert_allclose(logits, expected[end].numpy(), atol=2e-4, rtol=2e-4)


@pytest.mark.parametrize("agrees", [OFTEN_RIGHT, WRONG])
def test_it_proposes_what_torch_foresees(
    agrees: float | None, cpu: CpuRunner, tmp_path: Path
) -> None:
    """After proposals that came true, in part or not at all, and in prompts that share a part."""
    model, data = with_head(tmp_path / "x.gguf", agrees)
    fields = {**GREEDY, "max_tokens": 20, "speculate": True}
    prompts = [PROMPT[:40], [*PROMPT[:40], *NEW], PROMPT[:30]]
    found = cpu.run(CASES, "proposed", data=data, prompts=prompts, fields=fields)
    assert len(found) > 10
    for text, tokens in found:
        logits = foreseen(model, text, len(tokens) - 1)[-len(tokens) :]
        assert tokens == [int(row.argmax()) for row in logits]


def test_the_same_tokens(runner: Runner, tmp_path: Path) -> None:
    _, data = with_head(tmp_path / "x.gguf", OFTEN_RIGHT)
    ((proposed, accepted),) = both_ways(runner, data, {"prompt": PROMPT, "fields": DRAWN})
    assert 10 < accepted < proposed


@pytest.mark.parametrize("kind", [Kind.Q8_0, pytest.param(Kind.F32, marks=pytest.mark.thorough)])
def test_the_same_tokens_on_the_processor(kind: Kind, cpu: CpuRunner, tmp_path: Path) -> None:
    _, data = with_head(tmp_path / "x.gguf", OFTEN_RIGHT, kind)
    steps: list[Json] = [
        {"prompt": PROMPT, "fields": {**each, **PENALTIES}} for each in (GREEDY, DRAWN)
    ]
    for proposed, accepted in both_ways(cpu, data, *steps):
        assert 5 < accepted < proposed


def test_a_head_that_is_right_draws_what_the_model_does(cpu: CpuRunner, tmp_path: Path) -> None:
    """It has the same random numbers, and its penalties follow the same text."""
    _, data = with_head(tmp_path / "x.gguf", RIGHT)
    steps: list[Json] = [{"prompt": PROMPT[:1], "fields": DRAWN}]
    steps += [{"prompt": PROMPT, "fields": {**DRAWN, **PENALTIES}}]
    for proposed, accepted in both_ways(cpu, data, *steps):
        assert accepted == proposed > 30


def test_a_prompt_of_several_chunks(
    cpu: CpuRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(config_json, "MAX_CHUNK", 16)
    _, data = with_head(tmp_path / "x.gguf", RIGHT)
    step = {"prompt": PROMPT, "fields": DRAWN, "chunk": 16}
    ((proposed, accepted),) = both_ways(cpu, data, step)
    assert accepted == proposed > 30


def test_a_head_that_is_wrong_changes_nothing(cpu: CpuRunner, tmp_path: Path) -> None:
    _, data = with_head(tmp_path / "x.gguf", WRONG)
    steps: list[Json] = [{"prompt": PROMPT, "fields": each} for each in (GREEDY, DRAWN)]
    for proposed, accepted in both_ways(cpu, data, *steps):
        assert accepted < 10 < proposed


def test_a_head_that_is_wrong_is_left_alone(cpu: CpuRunner, tmp_path: Path) -> None:
    """It takes few calls to see that it gains nothing, however quick they are."""
    _, data = with_head(tmp_path / "x.gguf", WRONG)
    fields = {**DRAWN, "max_tokens": 190}
    plain, answer = cpu.run(CASES, "by_itself", data=data, prompt=NEW, fields=fields)
    assert answer["tokens"] == plain["tokens"]
    # Of 16 tokens a call, 2,800 if it went on; 300 until nothing would be gained for free.
    assert 0 < answer["usage"]["drafted_tokens"] < 800


def test_a_context_that_fills_up(cpu: CpuRunner, tmp_path: Path) -> None:
    for length in (90, 91):
        sizes = {"max_position_embeddings": length}
        _, data = with_head(tmp_path / "x.gguf", RIGHT, changes=sizes)
        step = {"prompt": PROMPT, "fields": {**DRAWN, "max_tokens": None}}
        ((proposed, accepted),) = both_ways(cpu, data, step)
        assert accepted == proposed > 15


def test_chats_that_go_on_depart_and_stop(cpu: CpuRunner, tmp_path: Path) -> None:
    _, data = with_head(tmp_path / "x.gguf", OFTEN_RIGHT)
    plain = {**DRAWN, "max_tokens": 30, "speculate": False}
    steps: list[Json] = [
        {"prompt": PROMPT},
        {"after": 0, "more": NEW},
        {"prompt": [*PROMPT[:30], *NEW]},
        {"prompt": [PROMPT[1], *PROMPT[1:]]},
        {"after": 1, "more": NEW, "cancel_at_piece": 3},
        {"after": 4, "more": NEW},
    ]
    ways = []
    for speculate in (False, True):
        asked = [{**step, "fields": {**plain, "speculate": speculate}} for step in steps]
        ways.append(cpu.run(STATES, "turns", data=data, steps=asked))
    for number in range(4):
        assert ways[1][number]["tokens"] == ways[0][number]["tokens"]
        assert ways[1][number]["usage"]["accepted_drafted_tokens"] > 0
    stopped, goes_on = ways[1][4:]
    fresh = cpu.run(
        STATES, "turns", data=data, steps=[{"prompt": goes_on["given"], "fields": plain}]
    )
    assert stopped["finish_reason"] == "abort"
    assert goes_on["tokens"] == fresh[0]["tokens"]
    assert goes_on["usage"]["cached_tokens"] > len(stopped["given"])


@pytest.mark.thorough
def test_a_device_that_is_lost(native: NativeRunner, tmp_path: Path) -> None:
    _, data = with_head(tmp_path / "x.gguf", OFTEN_RIGHT)
    steps = [{"prompt": PROMPT, "fields": {**DRAWN, "speculate": True}}]
    found = native.run(STATES, "lose_the_device", data=data, steps=steps)
    assert found["tokens"] == found["afterwards"] == found["undisturbed"]
    assert found["buffers"] == 0


def test_its_memory_is_told(cpu: CpuRunner, tmp_path: Path) -> None:
    _, data = with_head(tmp_path / "x.gguf")
    found = cpu.run(CASES, "facts", data=data)
    assert found["head"] == {"gpu_bytes": found["peak"], "fault": None}
    assert found["told"] == found["held"]
    assert found["left"] == 0
    full = cpu.run(CASES, "facts", data=data, is_full=True)
    assert full["head"] == {"gpu_bytes": 0, "fault": "the device is full"}
    assert full["tokens"] == found["tokens"]
    assert full["left"] == 0


def test_a_draft_takes_its_place(cpu: CpuRunner, tmp_path: Path) -> None:
    _, data = with_head(tmp_path / "x.gguf")
    path = tmp_path / "draft.gguf"
    write_gguf(path, "smollm2", ARCHITECTURES["smollm2"], Kind.F32)
    draft = np.frombuffer(path.read_bytes(), np.uint8)
    fields = {**DRAWN, "speculate": True}
    found = cpu.run(CASES, "with_draft", data=data, draft=draft, fields=fields)
    assert (found["has_head"], found["facts"]) == (False, None)
    assert found["usage"]["drafted_tokens"] > 0


def changed(change: Callable[[PreTrainedModel], None]) -> Callable[[PreTrainedModel], None]:
    def both(model: PreTrainedModel) -> None:
        add_head(model)
        change(model)

    return both


def lacks_a_norm(model: PreTrainedModel) -> None:
    del model.mtp.norm


def is_wider(model: PreTrainedModel) -> None:
    model.mtp.fc = nn.Linear(192, 64, bias=False)


def has_its_own_tokens(model: PreTrainedModel) -> None:
    model.mtp.embed_tokens = nn.Embedding(320, 64)


@pytest.mark.parametrize(
    ("how", "fault"),
    [
        ({"change": changed(lacks_a_norm)}, "'blk.5.nextn.shared_head_norm.weight' is missing"),
        ({"change": changed(is_wider)}, "'blk.5.nextn.eh_proj.weight' has the shape [64, 192]"),
        (
            {"change": changed(has_its_own_tokens)},
            "'blk.5.nextn.embed_tokens.weight' is not known",
        ),
        ({"heads": 2, "change": changed(lambda model: None)}, "there are 2 of them"),
    ],
)
def test_a_model_goes_without_a_head_of_another_form(
    how: Json, fault: str, cpu: CpuRunner, tmp_path: Path
) -> None:
    _, data = with_head(tmp_path / "x.gguf", **how)
    found = cpu.run(CASES, "facts", data=data)
    assert found["head"]["gpu_bytes"] == 0
    assert fault in found["head"]["fault"]
    assert len(found["tokens"]) == 4
