"""The amount of work something takes, counted in steps of the interpreter and not in seconds.

A reader whose work is linear takes about four times the steps for four times the input, on any
machine and however busy it is.
"""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, TypeVar

T = TypeVar("T")
MOST_STEPS = 3_000_000
FOURFOLD = 4.8  # four, and a little for logarithms


class TooManySteps(AssertionError):
    """The work did not end within the steps it was given."""


def count_steps(work: Callable[[], Any], most: int = MOST_STEPS) -> int:
    """Return how many bytecode instructions `work` takes; TooManySteps once it takes more."""
    steps = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal steps
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        if event == "opcode":
            steps += 1
            if steps > most:
                raise TooManySteps(f"it takes more than {most:,} steps")
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return steps


def assert_linear(make: Callable[[int], T], work: Callable[[T], Any], size: int) -> None:
    """Check that four times as large an input takes about four times the steps at most."""
    small, large = make(size), make(4 * size)
    work(small)  # what is done once, such as an import, is not counted
    first = count_steps(lambda: work(small))
    assert count_steps(lambda: work(large)) <= FOURFOLD * first
