"""The driver of a target's inputs, each within bounds of memory and of the processor's time.

An input is made anew from (target, seed, number): `python -m tests.fuzz TARGET SEED NUMBER` runs it
again.

Time is that of the processor, not of the clock, so that a busy machine changes nothing. Its bound
is far beyond what a sound reader takes for the few kilobytes of an input: only what hangs or blows
up meets it. Memory is bounded twice: the system grants no input more than its bound and some slack,
and for one input in a few all that Python and numpy allocate is counted, which makes it slow.
"""

import resource
import signal
import sys
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from random import Random
from types import FrameType

from py_runtime.base.errors import InpageError

MAX_CPU_SECONDS = 30.0  # a watchdog for what hangs; how fast a reader is, is not asked
MEMORY_PER_BYTE = 200  # of an input
AGAIN_SECONDS = 0.5
SLACK = 256 << 20  # bytes: the system counts addresses, of which Python takes more than it uses
COUNTED = 8  # one in so many

Mutate = Callable[[Random, bytes], bytes]


@dataclass(frozen=True)
class Target:
    """A reader of what users bring. All that it may raise is InpageError."""

    name: str
    corpus: Callable[[], Sequence[bytes]]  # sound inputs, made when they are first needed
    mutate: Mutate
    read: Callable[[bytes], None]
    count: int  # so many inputs in `make test-all`
    memory: int = 16 << 20  # bytes that it may take for the smallest input


@dataclass
class Tally:
    """The outcomes of a target's inputs."""

    outcomes: Counter[str] = field(default_factory=Counter)
    most_seconds: float = 0.0  # of the processor, for one input
    slowest: int = 0  # its number
    most_memory: int = 0
    largest: int = 0


class Failed(AssertionError):
    """An input that was neither read nor refused as it should be."""


class OutOfTime(BaseException):
    """A signal that is not an Exception, so that no reader catches it."""


def input_of(target: Target, seed: int, number: int) -> bytes:
    rng = Random(f"{target.name} {seed} {number}")
    return target.mutate(rng, rng.choice(_corpus(target)))


@cache
def _corpus(target: Target) -> Sequence[bytes]:
    return target.corpus()


def run(target: Target, seed: int, numbers: Iterable[int], tally: Tally) -> None:
    """Failed names the first input that should not have done what it did."""
    for number in numbers:
        data = input_of(target, seed, number)
        place = f"python -m tests.fuzz {target.name} {seed} {number}"
        outcome, seconds, memory = attempt(target, data, place, number % COUNTED == 0)
        tally.outcomes[outcome] += 1
        if seconds > tally.most_seconds:
            tally.most_seconds, tally.slowest = seconds, number
        if memory > tally.most_memory:
            tally.most_memory, tally.largest = memory, number


def attempt(target: Target, data: bytes, place: str, counts: bool) -> tuple[str, float, int]:
    """Return (outcome, processor seconds, most bytes of memory if counted), or raise Failed."""
    began, outcome, memory = time.process_time(), "read", 0
    bound = target.memory + MEMORY_PER_BYTE * len(data)
    if counts:
        tracemalloc.start()
    try:
        with _bounded(bound + SLACK):
            target.read(data)
    except InpageError as error:
        outcome = type(error).__name__
        if isinstance(error.__cause__, MemoryError):
            raise _failed(place, data, "ran out of memory") from error
    except OutOfTime as error:
        what = f"took more than {MAX_CPU_SECONDS:.0f} seconds of the processor"
        raise _failed(place, data, what) from error
    except Exception as error:
        raise _failed(place, data, f"raised {type(error).__name__}: {error}") from error
    finally:
        if counts:
            memory = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
    if memory > bound:
        raise _failed(place, data, f"took {memory:,} bytes of memory, not {bound:,} at most")
    return outcome, time.process_time() - began, memory


def _failed(place: str, data: bytes, what: str) -> Failed:
    shown = repr(data[:300]) + (" …" if len(data) > 300 else "")
    return Failed(
        f"an input of {len(data):,} bytes {what}\n  again: {place}\n  input: {shown[:600]}"
    )


@contextmanager
def _bounded(memory: int) -> Iterator[None]:
    def out_of_time(number: int, frame: FrameType | None) -> None:
        raise OutOfTime

    before = signal.signal(signal.SIGVTALRM, out_of_time)
    limits = resource.getrlimit(resource.RLIMIT_AS)
    # Again and again: where Python ignores exceptions, it may have raised one to no avail.
    signal.setitimer(signal.ITIMER_VIRTUAL, MAX_CPU_SECONDS, AGAIN_SECONDS)
    if sys.platform == "linux":  # others count addresses, but refuse none
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        most = pages * resource.getpagesize() + memory
        allowed = most if limits[0] == resource.RLIM_INFINITY else min(most, limits[0])
        resource.setrlimit(resource.RLIMIT_AS, (allowed, limits[1]))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
        resource.setrlimit(resource.RLIMIT_AS, limits)
