"""Tokens drawn on the CPU are those that the portable shader draws, and pass its tests."""

from typing import Any

import numpy as np
import pytest

from tests.generation import test_decode_loop as shader
from tests.generation.test_decode_loop import (  # noqa: F401  (tests)
    test_a_large_vocabulary,
    test_a_loop_gives_the_tokens_of_single_steps,
    test_penalties_count_as_the_host_does,
    test_same_seed_same_tokens,
    test_the_distribution_is_the_references,
    test_ties_and_what_is_no_number,
    test_words_that_move_beyond_the_kernels_table,
)
from tests.runners import CpuRunner, NativeRunner, Runner

LARGE = (np.random.default_rng(1).standard_normal(49_155) * 4).astype(np.float32)
OF_LARGE: dict[str, dict[str, Any]] = {
    "plain": {},
    "a heap": {"temperature": 1.1, "top_k": 40, "top_p": 0.95},
    "the largest heap": {"temperature": 1.5, "top_k": 512},
    "counted bits": {"temperature": 3.0, "top_k": 513, "min_p": 0.001},
    "most of all": {"temperature": 3.0, "top_k": 49_000, "top_p": 0.99},
}


@pytest.fixture(scope="module")
def on_gpu() -> NativeRunner:
    return NativeRunner()


@pytest.mark.gpu
@pytest.mark.parametrize("name", shader.SETTINGS)
def test_the_same_tokens_as_the_shader(name: str, cpu: CpuRunner, on_gpu: NativeRunner) -> None:
    case = {"logits": shader.LOGITS, "settings": shader.SETTINGS[name], "prompt": shader.PROMPT}
    assert drawn(cpu, **case) == drawn(on_gpu, **case)


@pytest.mark.gpu
@pytest.mark.parametrize("name", OF_LARGE)
def test_the_same_tokens_of_a_large_vocabulary(
    name: str, cpu: CpuRunner, on_gpu: NativeRunner
) -> None:
    case = {"logits": LARGE, "settings": OF_LARGE[name], "prompt": []}
    assert drawn(cpu, **case) == drawn(on_gpu, **case)


def drawn(runner: Runner, **case: Any) -> list[int]:
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
