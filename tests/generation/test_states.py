"""States that cannot be cut back: a chat that goes on costs no more than with a cache of positions.

One that departs is computed anew, and which of the two happened never shows.
"""

from typing import Any

import numpy as np
import pytest
from gguf import GGMLQuantizationType as Kind

from py_runtime.generation.kept_states import TAIL, KeptStates
from tests.export.gguf_files import ARCHITECTURES, write_gguf
from tests.generation.state_cases import STEPS
from tests.runners import NativeRunner

pytestmark = pytest.mark.torch

# Three convolutions keep two columns each; three of Mamba three columns, and a state, each.
COPIES = {"lfm2": 3 * 2 * 64 * 4, "falcon-h1": 3 * (3 * 176 + 6 * 16 * 20) * 4}
FAMILIES = ("lfm2", pytest.param("falcon-h1", marks=pytest.mark.thorough))
PROMPT = [3 + (7 * place + place * place) % 200 for place in range(60)]
NEW = [3 + 11 * place % 200 for place in range(20)]
FIELDS = {"temperature": 0, "max_tokens": 19, "ignore_eos": True}
LOGPROBS = {**FIELDS, "logprobs": True}  # on the host, token by token


class Asked:
    def __init__(self, runner: NativeRunner, data: np.ndarray, family: str) -> None:
        self._runner, self._data, self.family = runner, data, family

    def __call__(self, *steps: dict[str, Any], case: str = "turns") -> Any:
        return self._runner.run("tests.generation.state_cases", case, data=self._data, steps=steps)


@pytest.fixture(scope="module", params=FAMILIES)
def asked(
    request: pytest.FixtureRequest, native: NativeRunner, tmp_path_factory: pytest.TempPathFactory
) -> Asked:
    path = tmp_path_factory.mktemp("states") / "x.gguf"
    write_gguf(path, request.param, ARCHITECTURES[request.param], Kind.F32)
    return Asked(native, np.frombuffer(path.read_bytes(), np.uint8), request.param)


@pytest.mark.parametrize("fields", [FIELDS, LOGPROBS], ids=["on the GPU", "by the host"])
def test_a_chat_that_goes_on(asked: Asked, fields: dict[str, Any]) -> None:
    first, goes_on, third, fresh = asked(
        {"prompt": PROMPT, "fields": fields},
        {"after": 0, "more": NEW, "fields": fields},
        {"after": 1, "more": NEW, "fields": fields},
        {"after": 1, "more": NEW, "fields": fields, "forget": True},
    )
    # The last token drawn was never fed; of a batch, what was computed in it may be lost.
    lost = STEPS if fields is FIELDS else 0
    for before, after in ((first, goes_on), (goes_on, third)):
        held = len(before["given"]) + len(before["tokens"]) - 1
        assert held - lost <= after["usage"]["cached_tokens"] <= held
        assert after["computed"] == len(after["cache"]) - after["usage"]["cached_tokens"]
    assert third["tokens"] == fresh["tokens"]
    assert fresh["usage"]["cached_tokens"] == 0


def test_another_answer_to_the_same_prompt(asked: Asked) -> None:
    first, again = asked({"prompt": PROMPT, "fields": FIELDS}, {"prompt": PROMPT, "fields": FIELDS})
    assert again["usage"]["cached_tokens"] == len(PROMPT) - TAIL
    assert again["tokens"] == first["tokens"]


def test_the_end_of_a_prompt_may_differ(asked: Asked) -> None:
    """A template may leave out what an answer began with."""
    _, other, fresh = asked(
        {"prompt": PROMPT, "fields": FIELDS},
        {"prompt": PROMPT[: 3 - TAIL] + NEW, "fields": FIELDS},
        {"prompt": PROMPT[: 3 - TAIL] + NEW, "fields": FIELDS, "forget": True},
    )
    assert other["usage"]["cached_tokens"] == len(PROMPT) - TAIL
    assert other["tokens"] == fresh["tokens"]


def test_a_prompt_that_departs_is_computed_anew(asked: Asked) -> None:
    _, other, back, fresh = asked(
        {"prompt": PROMPT, "fields": FIELDS},
        {"prompt": PROMPT[:30] + NEW, "fields": FIELDS},
        {"prompt": PROMPT, "fields": FIELDS},
        {"prompt": PROMPT, "fields": FIELDS, "forget": True},
    )
    assert other["usage"]["cached_tokens"] == back["usage"]["cached_tokens"] == 0
    assert back["tokens"] == fresh["tokens"]


def test_stopped_on_the_way(asked: Asked) -> None:
    """Stop comes while the prompt is read, and while batches are under way."""
    reading, answering, going_on, fresh = asked(
        {"prompt": PROMPT, "fields": FIELDS, "chunk": 16, "cancel_at_chunk": 2},
        {"prompt": PROMPT, "fields": FIELDS, "cancel_at_piece": 3},
        {"after": 1, "more": NEW, "fields": FIELDS},
        {"after": 1, "more": NEW, "fields": FIELDS, "forget": True},
    )
    assert reading["computed"] == 32
    assert answering["usage"]["cached_tokens"] == 32
    assert 3 <= len(answering["tokens"]) < FIELDS["max_tokens"]
    assert going_on["usage"]["cached_tokens"] >= len(PROMPT)
    assert going_on["tokens"] == fresh["tokens"]


@pytest.mark.thorough  # compiles all kernels anew
def test_a_lost_device_takes_the_states_with_it(asked: Asked) -> None:
    found = asked({"prompt": PROMPT, "fields": FIELDS}, case="lose_the_device")
    assert found["tokens"] == found["undisturbed"]
    assert found["afterwards"] == found["undisturbed"]
    assert found["buffers"] == 0


def test_the_memory_of_copies_is_told(asked: Asked) -> None:
    told, held, one_copy = asked(case="memory")
    assert one_copy == COPIES[asked.family]
    assert told >= held["constants"] + held["state"]


class Copies:
    """Copies of a state that knows every token it has seen."""

    def __init__(self) -> None:
        self.state: list[int] = []
        self.held: dict[int, list[int]] = {}

    def keep(self, place: int) -> None:
        self.held[place] = list(self.state)

    def put_back(self, place: int) -> None:
        self.state = list(self.held[place])


def test_every_position_that_is_promised_is_reached() -> None:
    rng = np.random.default_rng(16)
    copies: Any = Copies()
    states = KeptStates()
    tokens: list[int] = []  # known to be computed
    for _ in range(2000):
        if rng.random() < 0.05:
            states.forget()
            tokens = []
        shared = int(rng.integers(0, len(tokens) + 1))
        promised = states.last_up_to(shared)
        assert states.go_back(copies, shared) == promised <= shared
        tokens = tokens[:promised]
        assert promised == 0 or copies.state == tokens
        copies.state = list(tokens)
        for _ in range(rng.integers(1, 6)):
            if rng.random() < 0.5:
                (states.keep_batch if rng.random() < 0.7 else states.keep_prompt)(copies)
            states.leave()
            copies.state += rng.integers(0, 1000, rng.integers(1, 9)).tolist()
            if rng.random() < 0.1:
                break  # failed: nobody knows how far it went
            states.reach(len(copies.state))
            tokens = list(copies.state)
