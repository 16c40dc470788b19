"""The comparison itself: what it lets pass, and what it does not."""

import numpy as np
import pytest

from tests.llama_cpp.comparison import Gate, compare
from tests.llama_cpp.oracle import Continuation

ROWS = np.array([[0, 1, 2, 3], [9, 2, 1, 0], [1, 8, 7.99, 0], [0, 0, 0, 5]], np.float32)
TOKENS = [3, 0, 1, 3]
LOOSE = Gate(1e-2, tie=0.1)


def check(gate: Gate, logits: np.ndarray, greedy: list[int]) -> None:
    ours = {"logits": [logits], "greedy": [greedy]}
    compare("a case", "native", gate, [Continuation(TOKENS, ROWS)], ours, lambda name, value: None)


def test_the_same_passes() -> None:
    check(Gate(1e-6), ROWS, TOKENS)


def test_only_a_near_tie_may_be_another_token() -> None:
    tied = ROWS.copy()
    tied[2, 1:3] = 7.99, 8
    check(LOOSE, tied, [3, 0, 2, 1])  # and what follows it, too
    with pytest.raises(AssertionError, match=r"step 2 of 4: 2, by 0.01, but llama.cpp says 1"):
        check(Gate(1e-2), tied, TOKENS)
    clear = ROWS.copy()
    clear[0] = 0, 1, 3, 2
    with pytest.raises(AssertionError, match=r"step 0 of 4: 2, by 1, but llama.cpp says 3"):
        check(LOOSE, clear, TOKENS)


def test_most_steps_must_agree() -> None:
    even = np.full((4, 4), 5, np.float32)
    even[:, 2] = 5.001
    ours = {"logits": [even], "greedy": [[2] * 4]}
    theirs = Continuation(TOKENS, np.full((4, 4), 5, np.float32))
    with pytest.raises(AssertionError, match=r"4 of 4 steps differ"):
        compare("a case", "native", Gate(1e-2, tie=3), [theirs], ours, lambda name, value: None)


def test_logits_and_the_engines_own_continuation_count() -> None:
    with pytest.raises(AssertionError, match="relative RMS"):
        check(LOOSE, ROWS * np.float32(1.05), TOKENS)
    with pytest.raises(AssertionError, match="the continuation"):
        check(LOOSE, ROWS, [3, 0, 1, 2])
