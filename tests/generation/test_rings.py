"""Caches that are rings of a window: a chat that goes on reuses them.

One that goes back further than they reach is computed anew, and which of the two happened never
shows.
"""

from typing import Any

import numpy as np
import pytest
from gguf import GGMLQuantizationType as Kind

from py_runtime.generation.held_windows import HeldWindows
from py_runtime.graph.rings import Ring
from tests.export.gguf_files import ARCHITECTURES, write_gguf
from tests.generation.state_cases import STEPS
from tests.generation.test_states import Asked
from tests.runners import NativeRunner

pytestmark = pytest.mark.torch

FAMILY = "gemma 3"  # windows of 24, so rings of 24 + 64 - 1
PROMPT = [3 + (7 * place + place * place) % 200 for place in range(150)]
NEW = [3 + 11 * place % 200 for place in range(20)]
FIELDS = {"temperature": 0, "max_tokens": 19, "ignore_eos": True}
LOGPROBS = {**FIELDS, "logprobs": True}  # on the host, token by token


@pytest.fixture(scope="module")
def asked(native: NativeRunner, tmp_path_factory: pytest.TempPathFactory) -> Asked:
    path = tmp_path_factory.mktemp("rings") / "x.gguf"
    write_gguf(path, FAMILY, ARCHITECTURES[FAMILY], Kind.F32)
    return Asked(native, np.frombuffer(path.read_bytes(), np.uint8), FAMILY)


@pytest.mark.parametrize("fields", [FIELDS, LOGPROBS], ids=["on the GPU", "by the host"])
def test_a_chat_that_goes_on(asked: Asked, fields: dict[str, Any]) -> None:
    first, goes_on, fresh = asked(
        {"prompt": PROMPT, "fields": fields},
        {"after": 0, "more": NEW, "fields": fields},
        {"after": 0, "more": NEW, "fields": fields, "forget": True},
    )
    # The last token drawn was never fed.
    assert goes_on["usage"]["cached_tokens"] == len(PROMPT) + len(first["tokens"]) - 1
    assert fresh["usage"]["cached_tokens"] == 0
    assert goes_on["tokens"] == fresh["tokens"]


def test_going_back_as_far_as_the_rings_reach(asked: Asked) -> None:
    """Another answer, and a prompt that departs; with what was drawn ahead it is still held."""
    first, again, other, fresh = asked(
        {"prompt": PROMPT, "fields": FIELDS},
        {"prompt": PROMPT, "fields": FIELDS},
        {"prompt": PROMPT[:120] + NEW, "fields": FIELDS},
        {"prompt": PROMPT[:120] + NEW, "fields": FIELDS, "forget": True},
    )
    assert again["usage"]["cached_tokens"] == len(PROMPT) - 1
    assert again["tokens"] == first["tokens"]
    assert other["usage"]["cached_tokens"] == 120
    assert other["tokens"] == fresh["tokens"]


def test_going_back_further_is_computed_anew(asked: Asked) -> None:
    departing = PROMPT[:90] + NEW
    _, other, back, fresh_other, fresh = asked(
        {"prompt": PROMPT, "fields": FIELDS},
        {"prompt": departing, "fields": FIELDS},
        {"prompt": PROMPT, "fields": FIELDS},
        {"prompt": departing, "fields": FIELDS, "forget": True},
        {"prompt": PROMPT, "fields": FIELDS, "forget": True},
    )
    assert other["usage"]["cached_tokens"] == 0
    assert other["computed"] == len(other["cache"])
    assert back["usage"]["cached_tokens"] == 90  # from a shorter text that is not so far
    assert other["tokens"] == fresh_other["tokens"]
    assert back["tokens"] == fresh["tokens"]


def test_stopped_on_the_way(asked: Asked) -> None:
    """Stop comes while the prompt is read, and while batches are under way."""
    reading, answering, going_on, fresh = asked(
        {"prompt": PROMPT, "fields": FIELDS, "chunk": 40, "cancel_at_chunk": 3},
        {"prompt": PROMPT, "fields": FIELDS, "cancel_at_piece": 3},
        {"after": 1, "more": NEW, "fields": FIELDS},
        {"after": 1, "more": NEW, "fields": FIELDS, "forget": True},
    )
    assert reading["computed"] == answering["usage"]["cached_tokens"] == 120
    assert 3 <= len(answering["tokens"]) < FIELDS["max_tokens"]
    assert going_on["usage"]["cached_tokens"] >= len(PROMPT)
    assert going_on["tokens"] == fresh["tokens"]


def test_the_memory_of_rings_is_told(asked: Asked) -> None:
    told, held, copies = asked(case="memory")
    assert copies == 0
    assert held["constants"] + held["state"] <= told < 1.05 * (held["constants"] + held["state"])


def test_every_position_that_is_promised_is_held() -> None:
    """Against caches that know whose position each row has."""
    rng = np.random.default_rng(16)
    rings = [Ring(rows=31, window=24), Ring(rows=15, window=8)]
    caches = [[-1] * ring.rows for ring in rings]
    windows, known, reused = HeldWindows(), 0, 0
    for _ in range(2000):
        if rng.random() < 0.02:
            windows.forget()
            known = 0
        start = windows.last_up_to(rings, int(rng.integers(max(known - 20, 0), known + 1)))
        windows.go_back(start)
        reused += start > 0
        known = start
        for _ in range(rng.integers(1, 6)):
            tokens = int(rng.integers(1, STEPS * 2 + 1))
            windows.write(known + tokens)
            for ring, rows in zip(rings, caches, strict=True):
                for position in range(known, known + tokens):
                    rows[position % ring.rows] = position
                for token in range(known, known + tokens):
                    seen = range(max(token + 1 - ring.window, 0), token + 1)
                    assert [rows[position % ring.rows] for position in seen] == list(seen)
            known += tokens
            if rng.random() < 0.3:  # drawn ahead: nobody takes these
                known -= tokens
                break
    assert 100 < reused < 1990
