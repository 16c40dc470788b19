"""How much a chat template may do: it is a stranger's program, and a page has one thread for it.

Whatever a template makes is counted: steps (turns of loops, calls, filters, operators), characters
and items. What one step could blow up at once is estimated before it is done.
"""

import re
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from py_runtime.chat.errors import ChatTemplateError

MAX_SOURCE = 1 << 18  # characters; long templates have 30,000
MAX_STEPS = 1 << 19  # a chat of a thousand messages takes about 50,000
MAX_OUTPUT = 1 << 22  # characters: more than any context holds
MAX_MADE = 1 << 26  # characters, of all that is computed on the way
ITEM = 64  # of a list or object, as so many characters
MAX_SECONDS = 20.0
BITS_PER_CHARACTER = 8  # of a large integer

HOLDERS: tuple[type[Iterable[Any]], ...] = (
    list,
    tuple,
    set,
    frozenset,
    type({}.values()),
    type({}.items()),
)
_NUMBER = re.compile(r"[0-9]+")
_PADDED = ("center", "ljust", "rjust", "zfill", "batch", "slice", "round")
_REFUSED = ("translate", "maketrans", "to_bytes")  # they grow in ways of their own


class RenderingMeter:
    """Counts what one rendering takes, and ends it where that is too much."""

    def __init__(self) -> None:
        self._steps = 0
        self._made = 0
        self._shown = 0
        self._end = time.monotonic() + MAX_SECONDS

    def step(self) -> None:
        self._steps += 1
        if self._steps > MAX_STEPS:
            raise too_much(f"takes more than {MAX_STEPS:,} steps")
        if time.monotonic() > self._end:
            raise too_much(f"takes longer than {MAX_SECONDS:.0f} seconds")

    def make(self, size: int) -> None:
        """Before or after so much is made."""
        self._made += size
        if self._made > MAX_MADE:
            raise too_much(f"makes more than {MAX_MADE:,} characters")

    def show(self, size: int) -> None:
        self._shown += size
        if self._shown > MAX_OUTPUT:
            raise too_much(f"writes more than {MAX_OUTPUT:,} characters")

    def expect(self, size: int) -> None:
        """That what is about to be made has room."""
        if size > MAX_MADE - self._made:
            raise too_much(f"makes more than {MAX_MADE:,} characters")


def too_much(what: str) -> ChatTemplateError:
    """The error of a template past one of its bounds."""
    return ChatTemplateError(f"the chat template {what} for these messages")


def weight(value: Any) -> int:
    """In characters, with all that is inside; what stands in two places counts twice.

    Nothing weighs more than a little over MAX_MADE: nobody counts on.
    """
    total = 0
    pending = [value]
    while pending and total <= MAX_MADE:
        item = pending.pop()
        total += ITEM
        if isinstance(item, (str, bytes)):
            total += len(item)
        elif isinstance(item, int):
            total += item.bit_length() // BITS_PER_CHARACTER
        elif isinstance(item, dict):
            pending += item.keys()
            pending += item.values()
        elif isinstance(item, HOLDERS):
            pending += item
        total += MAX_MADE * (len(pending) * ITEM > MAX_MADE)
    return total


def text_size(value: Any) -> int:
    """At most so many characters are what str() gives; before it is asked."""
    return len(value) if isinstance(value, str) else 10 * weight(value)  # '\U0001f600'


def counted(items: Iterator[Any], meter: RenderingMeter) -> Iterator[Any]:
    """What a lazy filter gives."""
    for item in items:
        meter.step()
        meter.make(weight(item))
        yield item


# What a step could make, before it is done -------------------------------------------------------


def check_named(meter: RenderingMeter, name: str, subject: Any, given: Sequence[Any]) -> None:
    """Of filters and of the methods of texts, which have the same names where they do the same."""
    if name in _REFUSED:
        raise ChatTemplateError(f"the chat template uses {name}, which is not supported")
    if name in _PADDED:
        meter.expect(_widest(given))
    elif name == "expandtabs":
        meter.expect(weight(subject) * _widest(given))
    elif name in ("indent", "wordwrap"):
        breaks = str(subject).count("\n") + 1 if name == "indent" else weight(subject)
        meter.expect(breaks * max(_widest(given), _longest(given)))
    elif name == "replace" and len(given) >= 2:
        meter.expect(str(subject).count(str(given[0])) * text_size(given[1]))
    elif name == "join":
        is_method = isinstance(subject, str | bytes) and given
        items, between = (given[0], [subject]) if is_method else (subject, given[:1])
        meter.expect(sum(map(text_size, items)) + _longest(between) * len(items))
    elif name == "sum":
        meter.expect(weight(subject) * (1 if _is_number(given[1:]) else len(subject)))
    elif name in ("format", "format_map"):
        check_format(meter, str(subject), given)
    elif name in ("string", "tojson"):
        meter.expect(text_size(subject))


def check_format(meter: RenderingMeter, layout: str, given: Any) -> None:
    """Every place of a layout could take every value, and be as wide as any number says."""
    places = layout.count("%") + layout.count("{")
    widths = sum(min(int(digits[:12]), MAX_MADE) for digits in _NUMBER.findall(layout))
    meter.expect(len(layout) + widths + places * (text_size(given) + _widest(_flat(given))))


def check_operator(meter: RenderingMeter, operator: str, left: Any, right: Any) -> None:
    """Before it is computed: raises where the result would be too large."""
    if operator == "%" and isinstance(left, str | bytes):
        check_format(meter, str(left), right)
    elif operator == "*":
        for sequence, times in ((left, right), (right, left)):
            if isinstance(sequence, str | bytes) and isinstance(times, int):
                meter.expect(len(sequence) * times)
            if isinstance(sequence, list | tuple) and isinstance(times, int):
                meter.expect(weight(sequence) * times)
    elif operator == "**" and isinstance(left, int) and isinstance(right, int):
        meter.expect(left.bit_length() * max(right, 0) // BITS_PER_CHARACTER)


def _flat(given: Any) -> list[Any]:
    if isinstance(given, dict):
        return list(given.values())
    return list(given) if isinstance(given, HOLDERS) else [given]


def _widest(given: Sequence[Any]) -> int:
    """The largest integer among the arguments."""
    return max((abs(value) for value in given if isinstance(value, int)), default=0)


def _longest(given: Sequence[Any]) -> int:
    """The length of the longest text among the arguments."""
    return max((len(value) for value in given if isinstance(value, str | bytes)), default=0)


def _is_number(given: Sequence[Any]) -> bool:
    return all(isinstance(value, int | float) for value in given)
