"""Tokens that were proposed and verified together are those of decoding one by one.

Only what a session counts, and the time, tell the two apart.
"""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from gguf import GGMLQuantizationType as Kind

from py_runtime.generation import session
from py_runtime.generation.proposals import Lookup
from py_runtime.generation.speculation import AUTO, ENOUGH, OFF, Guesses, Speculation
from py_runtime.generation.verifier import MOST_TOKENS
from py_runtime.gpu.kernel_target import HALVES, KernelTarget
from tests.export.gguf_files import ARCHITECTURES, write_gguf
from tests.generation.conftest import Toy
from tests.runners import CpuRunner
from tools.files import ROOT

pytestmark = pytest.mark.torch

CASES = "tests.generation.speculation_cases"
OTHER = [3 + (7 * place + place * place) % 200 for place in range(60)]
REPEATING = [*OTHER[:20], *OTHER[:20], *OTHER[:20]]
GREEDY = {"temperature": 0, "max_tokens": 150, "ignore_eos": True}
DRAWN = {"temperature": 0.7, "top_p": 0.9, "seed": 11, "max_tokens": 60, "ignore_eos": True}
PASSAGE = "The ferry leaves at seven in the morning. Tickets are sold at the small blue kiosk. "
STORY = "The lighthouse keeper had not spoken to anyone for a year when"
FAMILIES = ("gemma 3", "gemma 4", "gpt-oss", "lfm2", "qwen3.5", "falcon-h1")
# Among three tokens, what was proposed often comes true by chance, and often does not.
OF_THREE = {**DRAWN, "max_tokens": 90, "logit_bias": {"7": 50, "8": 50, "9": 50}}
PENALTIES = {"repetition_penalty": 1.05, "frequency_penalty": 0.1, "logit_bias": {"7": 2}}


@pytest.fixture
def cpu_toy(cpu: CpuRunner, toy_model: Path) -> Toy:
    return Toy(cpu, str(toy_model))


def asked(toy: Toy, *steps: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = toy.runner.run(CASES, "both_ways", where=toy.where, steps=steps)
    return found


def check_alike(found: dict[str, Any]) -> None:
    """Check that an answer with proposals is the plain one, and that some came true."""
    plain, verified = found["plain"], found["verified"]
    assert verified["tokens"] == plain["tokens"]
    assert verified["text"] == plain["text"]
    assert verified["finish_reason"] == plain["finish_reason"]
    assert plain["verified"] == [0, 0]


@pytest.mark.torch
def test_the_same_tokens(cpu_toy: Toy) -> None:
    prompts = [{"prompt": prompt, "fields": GREEDY} for prompt in (OTHER, REPEATING)]
    drawn = [{"prompt": REPEATING, "fields": fields} for fields in (DRAWN, {**DRAWN, **PENALTIES})]
    found = asked(cpu_toy, *prompts, *drawn)
    for answers in found:
        check_alike(answers)
    proposed, accepted = found[0]["verified"]["verified"]
    assert 0 < accepted < proposed, "greedy answers of the toy repeat themselves in the end"


@pytest.mark.torch
def test_on_a_gpu_and_in_the_page(toy: Toy) -> None:
    """Kernels for several tokens round otherwise than those for one; the toy has no ties."""
    found = asked(toy, {"prompt": REPEATING, "fields": OF_THREE})
    check_alike(found[0])
    assert found[0]["verified"]["verified"][1] > 0


def test_where_a_few_tokens_are_slow_or_less_exact_it_waits_to_be_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(session, "can_verify", lambda graph: True)
    for target, mode in (
        (KernelTarget(cpu=True), AUTO),
        (KernelTarget(wide=True), AUTO),
        (KernelTarget(wide=True, one_token=HALVES), OFF),
        (KernelTarget(), OFF),
    ):
        model = SimpleNamespace(graph=SimpleNamespace(target=target), image_rows=None)
        own = SimpleNamespace(graph=model.graph, _model=model)
        assert session.Session.speculation_mode(cast(Any, own), AUTO) == mode


@pytest.mark.torch
@pytest.mark.parametrize("family", FAMILIES)
def test_kinds_of_layers(family: str, cpu: CpuRunner, tmp_path: Path) -> None:
    """Rings are not outgrown, and states that cannot be cut back are restored."""
    path = tmp_path / "x.gguf"
    write_gguf(path, family, ARCHITECTURES[family], Kind.F32)
    data = np.frombuffer(path.read_bytes(), np.uint8)
    steps = [{"prompt": REPEATING, "fields": OF_THREE}]
    (found,) = cpu.run(CASES, "both_ways_of", data=data, steps=steps)
    check_alike(found)
    proposed, accepted = found["verified"]["verified"]
    assert 5 < accepted < proposed


@pytest.mark.torch
def test_a_chat_goes_on_behind_proposals(cpu: CpuRunner, tmp_path: Path) -> None:
    """States that cannot be cut back stand where the answer ended."""
    path, more = tmp_path / "x.gguf", OTHER[:20]
    write_gguf(path, "lfm2", ARCHITECTURES["lfm2"], Kind.F32)
    fields = {**OF_THREE, "speculate": True}
    first, goes_on, fresh = cpu.run(
        "tests.generation.state_cases",
        "turns",
        data=np.frombuffer(path.read_bytes(), np.uint8),
        steps=[
            {"prompt": REPEATING, "fields": fields},
            {"after": 0, "more": more, "fields": fields},
            {"after": 0, "more": more, "fields": fields, "forget": True},
        ],
    )
    held = len(first["given"]) + len(first["tokens"]) - 1
    assert held - MOST_TOKENS <= goes_on["usage"]["cached_tokens"] <= held
    assert goes_on["tokens"] == fresh["tokens"]


@pytest.mark.torch
def test_every_token_gets_what_it_gets_alone(cpu_toy: Toy) -> None:
    """The CPU agrees to the last bit, also where a split of attention begins between two tokens."""
    tokens = [3 + (5 * place + place * place) % 200 for place in range(140)]
    alone, together = cpu_toy.runner.run(
        CASES,
        "rows_and_steps",
        where=cpu_toy.where,
        tokens=tokens,
        sizes=[2, 16, 3, 4, 1, 8, 16, 5],
    )
    np.testing.assert_array_equal(together, alone)


@pytest.mark.torch
def test_an_answer_that_ends_inside_a_call(cpu_toy: Toy) -> None:
    """A stop string, the room it has, the end of the context or its user ends an answer."""
    (whole,) = asked(cpu_toy, {"prompt": OTHER, "fields": GREEDY})
    stop = whole["plain"]["text"][-12:-8]
    lengths = [{**GREEDY, "max_tokens": most} for most in (97, 98, 99, 101)]
    stopped, *found = asked(
        cpu_toy,
        {"prompt": OTHER, "fields": {**GREEDY, "stop": [stop]}},
        {"prompt": OTHER, "fields": {**GREEDY, "max_tokens": None}},
        *({"prompt": OTHER, "fields": fields} for fields in lengths),
    )
    # Tokens without a text of their own before a stop string are its own or not, by the batch.
    for same in ("text", "finish_reason"):
        assert stopped["verified"][same] == stopped["plain"][same]
    for answers in found:
        check_alike(answers)
        cache, tokens = answers["verified"]["cache"], answers["verified"]["tokens"]
        assert cache[: len(OTHER) + len(tokens) - 1] == [*OTHER, *tokens[:-1]]


@pytest.mark.torch
def test_what_a_call_wrote_in_vain_does_not_show_afterwards(cpu_toy: Toy) -> None:
    """The caches hold proposals that did not come true, until others take their place."""
    fields = {**GREEDY, "speculate": True}
    first, again, other, fresh = cpu_toy.ask(
        {"prompt": OTHER, "fields": fields},
        {"prompt": OTHER, "fields": {**GREEDY, "speculate": False}},
        {"prompt": OTHER[:30] + REPEATING, "fields": fields},
        {"prompt": OTHER[:30] + REPEATING, "fields": fields, "forget": True},
    )
    assert again["tokens"] == first["tokens"]
    assert other["usage"]["cached_tokens"] == 30
    assert other["tokens"] == fresh["tokens"]


@pytest.mark.torch
@pytest.mark.parametrize("part", ["loop", "verifier"])
def test_stop_waits_for_nothing_that_is_built(cpu_toy: Toy, part: str) -> None:
    """A second graph takes half a second in the page: it is broken off, and nothing is left."""
    steps = [{"prompt": REPEATING, "fields": GREEDY}]
    ended, (before, after), (found,) = cpu_toy.runner.run(
        CASES, "stop_while_building", where=cpu_toy.where, steps=steps, part=part
    )
    assert ended == "abort"
    assert after == before
    check_alike(found)


@pytest.mark.torch
def test_what_needs_the_host_steps_aside(cpu_toy: Toy) -> None:
    fields = {**GREEDY, "max_tokens": 40}
    (answers,) = asked(cpu_toy, {"prompt": OTHER, "fields": {**fields, "logprobs": True}})
    assert answers["verified"]["verified"] == [0, 0]
    assert answers["verified"]["logprobs"] == answers["plain"]["logprobs"]


@pytest.mark.torch
def test_a_wrong_choice(cpu_toy: Toy) -> None:
    (found,) = cpu_toy.ask({"prompt": OTHER, "fields": {**GREEDY, "speculate": "often"}})
    assert found["error"]["message"] == "speculate must be \"auto\", true or false, got 'often'"


def test_what_followed_the_last_time() -> None:
    lookup = Lookup([1, 2, 3, 4, 1, 2, 3, 5, 9, 2, 3])
    assert lookup.found() == (2, 7), "the last time that 2, 3 stood there, 5 followed"
    assert lookup.propose(7, 6) == [5, 9, 2, 3, 5, 9], "behind the text's end it repeats itself"
    lookup.add(4)
    assert lookup.found() == (3, 4), "longer stretches come first"


def watched(speculation: Speculation, shares: list[bool]) -> Speculation:
    for came_true in shares:
        speculation.watch(3, came_true)
    return speculation


def test_nothing_is_verified_before_proposals_came_true() -> None:
    assert watched(Speculation(), [True] * (ENOUGH - 1)).by_text(3, 16).size == 1
    assert watched(Speculation(), [True] * ENOUGH).by_text(3, 16).size > 1
    assert watched(Speculation(), [True] * ENOUGH).by_text(2, 16).size == 1, "of other stretches"
    assert watched(Speculation(), [True, False, False] * ENOUGH).by_text(3, 16).size == 1


def test_the_size_follows_from_what_calls_take() -> None:
    """Made-up seconds: a call of several takes hardly longer, or as long as all its tokens."""
    for each, expected in ((0.02, 8), (0.5, 2), (0.95, 1)):
        speculation = watched(Speculation(), [True, True, True, False] * ENOUGH)
        speculation.costs.took_one(0.1)
        for size in (2, 4, 8, 16, 2, 4, 8, 16):  # the first time does not count
            speculation.costs.took(size, 0.1 * (1 + each * (size - 1)))
        assert speculation.by_text(3, 16).size == expected, each


def test_a_slow_call_by_chance_is_not_remembered_for_ever() -> None:
    speculation = watched(Speculation(), [True] * ENOUGH)
    speculation.costs.took_one(0.1)
    for seconds in (0.0, 2.0):
        speculation.costs.took(4, seconds)
    tries = [speculation.by_text(3, 16).size for _ in range(300)]
    assert tries[0] == 1
    assert tries[-1] > 1


def test_guesses_count_what_would_have_come_true() -> None:
    text = [1, 2, 3, 4, 5, 6, 7, 8] * 7
    for mode in (AUTO, OFF):
        speculation = Speculation()
        guesses = Guesses(speculation, mode, text[:16])
        guesses.add(text[16:])
        choice = guesses.choose(16)
        assert (choice is not None) == (mode == AUTO)
        if choice is not None:
            assert guesses.look_up(choice) == text[: choice.count]
        assert guesses.choose(1) is None


@pytest.mark.model
@pytest.mark.thorough
def test_the_default_model_writes_the_same(cpu: CpuRunner) -> None:
    """Text that repeats its prompt, and other text, greedily and drawn; by itself and always."""
    where = str(ROOT / "models" / "SmolLM2-135M-Instruct")
    found = cpu.run(CASES, "both_texts", where=where, texts=[PASSAGE * 2 + PASSAGE[:30], STORY])
    for plain, *others in found:
        assert others == [plain] * len(others)
