"""Tokens drawn on the CPU are those that the portable shader draws, and pass its tests."""

from typing import Any

import numpy as np
import pytest

from tests.generation import test_decode_loop as shader
from tests.runners import CpuRunner, NativeRunner

LARGE = (np.random.default_rng(1).standard_normal(49_155) * 4).astype(np.float32)
OF_LARGE: dict[str, dict[str, Any]] = {
    "plain": {},
    "a heap": {"temperature": 1.1, "top_k": 40, "top_p": 0.95},
    "the largest heap": {"temperature": 1.5, "top_k": 512},
    "counted bits": {"temperature": 3.0, "top_k": 513, "min_p": 0.001},
    "most of all": {"temperature": 3.0, "top_k": 49_000, "top_p": 0.99},
}


@pytest.mark.parametrize("name", shader.SETTINGS)
def test_the_distribution_is_the_references(name: str, cpu: CpuRunner) -> None:
    shader.test_the_distribution_is_the_references(name, cpu)


@pytest.mark.parametrize("name", shader.PENALTIES)
def test_penalties_count_as_the_host_does(name: str, cpu: CpuRunner) -> None:
    shader.test_penalties_count_as_the_host_does(name, cpu)


def test_ties_and_what_is_no_number(cpu: CpuRunner) -> None:
    shader.test_ties_and_what_is_no_number(cpu)


@pytest.mark.parametrize("name", shader.SETTINGS)
def test_the_same_tokens_as_the_shader(name: str, cpu: CpuRunner, native: NativeRunner) -> None:
    case = {"logits": shader.LOGITS, "settings": shader.SETTINGS[name], "prompt": shader.PROMPT}
    assert drawn(cpu, **case) == drawn(native, **case)


@pytest.mark.parametrize("name", OF_LARGE)
def test_a_large_vocabulary(name: str, cpu: CpuRunner, native: NativeRunner) -> None:
    case = {"logits": LARGE, "settings": OF_LARGE[name], "prompt": []}
    assert drawn(cpu, **case) == drawn(native, **case)


def drawn(runner: CpuRunner | NativeRunner, **case: Any) -> list[int]:
    tokens: np.ndarray = runner.run(shader.CASES, "draw", **case, seed=5, draws=100)
    return tokens.tolist()


def test_the_largest_of_every_place(cpu: CpuRunner) -> None:
    """A greedy token comes from any lane of a vector, and from the few past the last one."""
    for place in [*range(20), *range(45, 50)]:
        logits = np.full(50, -1.0, np.float32)
        logits[place:] = 3.0
        case = {"logits": logits, "settings": {"temperature": 0.0}, "prompt": []}
        tokens = cpu.run(shader.CASES, "draw", **case, seed=0, draws=1)
        assert tokens.tolist() == [place]
