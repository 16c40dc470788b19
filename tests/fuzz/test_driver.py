"""The faults of a target, which are found, and found again by name, seed and number."""

import itertools
import sys
from collections.abc import Callable
from contextlib import suppress

import pytest

from py_runtime.base.errors import InpageError
from tests.fuzz import driver
from tests.fuzz.damage import damage_bytes
from tests.fuzz.driver import Failed, Tally, Target, input_of, run

MIB = 1 << 20


def target_of(read: Callable[[bytes], object]) -> Target:
    return Target(
        "mine", lambda: [b"some bytes", b"others"], damage_bytes, lambda d: void(read(d)), 1
    )


def void(result: object) -> None:
    del result


def refuse(data: bytes) -> None:
    raise InpageError("no")


def contradict(data: bytes) -> None:
    assert not data, "so"


def hang(data: bytes) -> None:
    for _ in itertools.count():
        with suppress(Exception):
            int("x")


def swallow(data: bytes) -> None:
    """Swallow the error as a template's rendering does."""
    try:
        bytearray(2000 * MIB)
    except Exception as error:
        raise InpageError("no") from error


FAULTS: dict[str, tuple[Callable[[bytes], object], str]] = {
    "an error that is not ours": (lambda data: {"y": 1}["x"], "raised KeyError: 'x'"),
    "an assertion": (contradict, "raised AssertionError: so"),
    "a hang": (hang, "took more than 1 seconds of the processor"),
    "much memory": (lambda data: bytearray(100 * MIB), "bytes of memory, not 16,"),
}
if sys.platform == "linux":
    FAULTS |= {
        "too much memory": (lambda data: bytearray(2000 * MIB), "raised MemoryError"),
        "too much memory in secret": (swallow, "ran out of memory"),
    }


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(driver, "MAX_CPU_SECONDS", 1.0)
    read, fault = FAULTS[name]
    with pytest.raises(Failed) as caught:
        run(target_of(read), 7, [3 * driver.COUNTED], Tally())
    assert fault in str(caught.value)
    assert "again: python -m tests.fuzz mine 7 24\n" in str(caught.value)


def test_what_is_refused_is_counted() -> None:
    tally = Tally()
    run(target_of(refuse), 7, range(10), tally)
    run(target_of(len), 7, range(5), tally)
    assert tally.outcomes == {"InpageError": 10, "read": 5}


def test_an_input_is_made_again() -> None:
    target = target_of(len)
    first = [input_of(target, 7, number) for number in range(50)]
    assert [input_of(target, 7, number) for number in reversed(range(50))] == first[::-1]
    assert [input_of(target, 8, number) for number in range(50)] != first
    assert len(set(first)) > 30
