"""The bounds of one rendering of a chat template, which is a stranger's program.

A page has one thread for it, and nobody can interrupt a single step of Python's own. So every
operation is charged before it runs, from the sizes of what it is given: for the work that it does
and for the memory that its result takes. Garbage counts like what is still in use.
"""

import time
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, NamedTuple

from py_runtime.chat.errors import ChatTemplateError

MAX_SOURCE = 1 << 18  # characters; long templates have 30,000
MAX_NODES = 10_000  # of the syntax tree; the largest templates have 1,500
MAX_STEPS = 1 << 19  # a chat of a thousand messages takes about 50,000
MAX_WORK = 1 << 30  # units, each about what comparing two characters takes: a nanosecond
MAX_MADE = 1 << 27  # bytes, of all that is computed on the way
MAX_OUTPUT = 1 << 22  # characters: more than any context holds
MAX_BITS = 4096  # of an integer
MAX_DIGITS = 4096  # the width or precision of a number, or its text
MAX_DEPTH = 100  # of lists in lists
MAX_SECONDS = 20.0  # the last resort, should an operation be slower than it is charged for
MAX_MESSAGE = 1000  # characters of an error

ACCESS = 1000  # units of work: looking up an attribute or an item, or a test
ITEM = 150  # units of work for visiting an item of a list
CONTAINER = 1000  # units of work for entering a list
POINTER = 8  # bytes
OBJECT = 64  # bytes that a small text or tuple takes besides its contents

VIEWS: tuple[type, ...] = (type({}.keys()), type({}.values()), type({}.items()))
CONTAINERS: tuple[type, ...] = (list, tuple, dict, *VIEWS)


class RenderingMeter:
    """A budget for one rendering, which ends it once it is spent."""

    def __init__(self) -> None:
        self.steps = 0
        self.work_done = 0
        self.bytes_made = 0
        self.characters_shown = 0
        self._end = time.monotonic() + MAX_SECONDS

    def step(self) -> None:
        """Count one operation."""
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise too_much(f"takes more than {MAX_STEPS:,} steps")
        if time.monotonic() > self._end:
            raise too_much(f"takes longer than {MAX_SECONDS:.0f} seconds")

    def work(self, units: int) -> None:
        """Charge for work that is about to be done."""
        self.work_done += units
        if self.work_done > MAX_WORK:
            raise too_much(f"takes more than {MAX_WORK:,} units of work")

    def expect(self, size: int) -> None:
        """Check that there is room for so many bytes, without charging for them."""
        if size > MAX_MADE - self.bytes_made:
            raise too_much(f"makes more than {MAX_MADE:,} bytes")

    def make(self, size: int) -> None:
        """Charge for so many bytes of memory, whether or not they are freed again."""
        self.expect(size)
        self.bytes_made += size

    def show(self, size: int) -> None:
        """Charge for so many characters of output."""
        self.characters_shown += size
        if self.characters_shown > MAX_OUTPUT:
            raise too_much(f"writes more than {MAX_OUTPUT:,} characters")


def too_much(what: str) -> ChatTemplateError:
    """Return the error for a template that exceeds one of its bounds."""
    return ChatTemplateError(f"the chat template {what} for these messages")


def unsupported(what: str) -> ChatTemplateError:
    """Return the error for something that a template can do in jinja2, but not here."""
    return ChatTemplateError(f"the chat template uses {what}, which is not supported")


def shorten(text: str) -> str:
    """Return the beginning of a text that is too long for an error message."""
    return text if len(text) <= MAX_MESSAGE else f"{text[:MAX_MESSAGE]}…"


# The sizes of values ------------------------------------------------------------------------------


class Weight(NamedTuple):
    """The cost of walking through a value, where a part that stands in two places counts twice."""

    items: int
    characters: int  # of all texts and integers; those beyond ASCII count four times

    @property
    def spelled(self) -> int:
        """The most bytes that the value takes as text, or as JSON."""
        return 6 * self.characters + OBJECT * self.items  # each may become \u1234


def is_container(value: Any) -> bool:
    """Tell whether a value holds others that a template can see."""
    return isinstance(value, CONTAINERS)


def weigh(meter: RenderingMeter, value: Any) -> Weight:
    """Return the weight of a value, and charge for walking through it."""
    if not is_container(value):
        meter.work(ITEM)
        return Weight(1, _scalar_size(value))
    return _weigh_container(meter, value, 1)


def _weigh_container(meter: RenderingMeter, container: Any, depth: int) -> Weight:
    if depth > MAX_DEPTH:
        raise too_much(f"nests values more than {MAX_DEPTH} deep")
    is_dict = isinstance(container, dict)
    items = len(container) * (2 if is_dict else 1) + 1
    meter.work(CONTAINER + ITEM * items)
    inside: Iterable[Any] = chain(container, container.values()) if is_dict else container
    characters, deeper = 0, 0
    for item in inside:
        if is_container(item):
            inner = _weigh_container(meter, item, depth + 1)
            items += inner.items
            deeper += inner.characters
        else:
            characters += _scalar_size(item)
    meter.work(characters)
    return Weight(items, characters + deeper)


def _scalar_size(value: Any) -> int:
    if isinstance(value, str):
        return text_bytes(value)
    return value.bit_length() if isinstance(value, int) else 0


def text_bytes(text: str) -> int:
    """Return the most bytes that the characters of a text take."""
    return len(text) * character_bytes(text)


def character_bytes(*texts: str) -> int:
    """Return the most bytes that one character takes where these texts are put together."""
    return 1 if all(text.isascii() for text in texts) else 4


def spelled_bytes(meter: RenderingMeter, value: Any) -> int:
    """Return the most bytes that str(value) takes."""
    return text_bytes(value) if isinstance(value, str) else weigh(meter, value).spelled


def items_bytes(items: Any) -> int:
    """Return the bytes of a list with these items; the characters of a text are made for it."""
    per_item = POINTER + OBJECT + 16 if isinstance(items, str) and not items.isascii() else POINTER
    return len(items) * per_item


def counted(items: Iterator[Any], meter: RenderingMeter) -> Iterator[Any]:
    """Yield what a lazy filter yields, and charge for each item."""
    for item in items:
        meter.step()
        if isinstance(item, list | tuple):  # of batch, slice and items
            meter.make(POINTER * len(item) + OBJECT)
        yield item


def listed(meter: RenderingMeter, value: Any) -> Any:
    """Return a value that can be walked through twice: a list instead of an iterator."""
    return list(counted(value, meter)) if isinstance(value, Iterator) else value
