"""A setting that cannot be is refused in words: its name, its range, and what was given."""

from typing import Any

import numpy as np
import pytest

from py_runtime.base.errors import RequestError
from py_runtime.sampling import Sampler, SamplingSettings, TokenHistory

VOCABULARY = 100
SEEDS = "seed must be an integer from -9223372036854775808 to 9223372036854775807"
TOP_K = "top_k must be an integer from 0 on, where 0 is off"


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("temperature", -0.1, "temperature must be a number from 0 to 2, got -0.1"),
        ("temperature", 2.5, "temperature must be a number from 0 to 2, got 2.5"),
        ("temperature", float("nan"), "temperature must be a number from 0 to 2, got nan"),
        ("temperature", "hot", "temperature must be a number from 0 to 2, got 'hot'"),
        ("temperature", True, "temperature must be a number from 0 to 2, got True"),
        ("temperature", None, "temperature must be a number from 0 to 2, got None"),
        pytest.param("temperature", 10**400, "temperature must be a number", id="no float"),
        ("top_p", 1.01, "top_p must be a number from 0 to 1, got 1.01"),
        ("top_p", [0.9], "top_p must be a number from 0 to 1, got [0.9]"),
        ("min_p", -1, "min_p must be a number from 0 to 1, got -1"),
        ("min_p", False, "min_p must be a number from 0 to 1, got False"),
        ("repetition_penalty", 0, "repetition_penalty must be a number from 0.01 to 100, got 0"),
        (
            "repetition_penalty",
            float("inf"),
            "repetition_penalty must be a number from 0.01 to 100, got inf",
        ),
        ("frequency_penalty", 3, "frequency_penalty must be a number from -2 to 2, got 3"),
        ("presence_penalty", -2.1, "presence_penalty must be a number from -2 to 2, got -2.1"),
        ("top_k", -1, f"{TOP_K}, got -1"),
        ("top_k", 40.0, f"{TOP_K}, got 40.0"),
        ("top_k", True, f"{TOP_K}, got True"),
        ("seed", 1.5, f"{SEEDS}, got 1.5"),
        ("seed", 2**63, f"{SEEDS}, got 9223372036854775808"),
        ("seed", "1", f"{SEEDS}, got '1'"),
        ("seed", False, f"{SEEDS}, got False"),
        ("logit_bias", [1], "logit_bias must map token ids to numbers, got [1]"),
        ("logit_bias", {100: 1}, "logit_bias must have token ids from 0 to 99, got 100"),
        ("logit_bias", {-1: 1}, "logit_bias must have token ids from 0 to 99, got -1"),
        ("logit_bias", {"7": 1}, "logit_bias must have token ids from 0 to 99, got '7'"),
        ("logit_bias", {True: 1}, "logit_bias must have token ids from 0 to 99, got True"),
        (
            "logit_bias",
            {1: 5, 7: 101},
            "logit_bias of token 7 must be a number from -100 to 100, got 101",
        ),
        (
            "logit_bias",
            {7: float("nan")},
            "logit_bias of token 7 must be a number from -100 to 100, got nan",
        ),
        (
            "logit_bias",
            {7: "much"},
            "logit_bias of token 7 must be a number from -100 to 100, got 'much'",
        ),
    ],
)
def test_refused(name: str, value: Any, text: str) -> None:
    settings = SamplingSettings(**{name: value})
    with pytest.raises(RequestError) as caught:
        settings.check(VOCABULARY)
    assert str(caught.value).startswith(text)
    assert caught.value.param == name
    with pytest.raises(RequestError):
        Sampler(settings, VOCABULARY)


def test_a_long_value_is_cut_short() -> None:
    with pytest.raises(RequestError) as caught:
        SamplingSettings(temperature="warm " * 1000).check(VOCABULARY)  # type: ignore[arg-type]
    assert len(str(caught.value)) < 100


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"temperature": 0, "top_p": 0, "min_p": 0, "repetition_penalty": 0.01},
        {"temperature": 2, "top_p": 1, "min_p": 1, "repetition_penalty": 100},
        {"frequency_penalty": -2, "presence_penalty": 2, "top_k": 10**9},
        {"seed": -(2**63), "logit_bias": {0: -100, 99: 100}},
        {"seed": 2**63 - 1, "logit_bias": {np.int64(5): np.float32(0.5)}, "top_k": np.int32(3)},
    ],
)
def test_accepted(settings: dict[str, Any]) -> None:
    token = Sampler(SamplingSettings(**settings), VOCABULARY).sample(
        np.zeros(VOCABULARY, np.float32), TokenHistory([], VOCABULARY)
    )
    assert isinstance(token, int)
    assert 0 <= token < VOCABULARY


@pytest.mark.parametrize("token", [-1, 100])
def test_no_such_token(token: int) -> None:
    text = f"{token} is not a token id: the vocabulary has 0 to 99"
    with pytest.raises(RequestError, match=text):
        TokenHistory([1, token, 2], VOCABULARY)
    with pytest.raises(RequestError, match=text):
        TokenHistory([], VOCABULARY).add(token)
