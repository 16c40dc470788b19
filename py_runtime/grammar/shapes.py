"""Shapes of values, byte by byte: the parts that the automaton keeps on its stack.

A shape is a machine of its own. It stands at a `local` place (any hashable value), moves on bytes,
may call another shape for a value inside its own, and ends. Every place it can get to has a way to
an end, so that no text can ever get stuck.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from py_runtime.grammar.finite_automata import Dfa
from py_runtime.grammar.limits import MAX_DEPTH

Local = Any  # hashable; each shape knows its own
ByteMove = tuple[int, int, Local]  # first and last byte, and the place they lead to


class Shape(ABC):
    """A kind of value as an automaton over bytes; `Local` is its state."""

    start: Local
    shortest: bytes | None = None  # a short text of the whole; None: there is none
    nesting = 0  # containers inside one another in that text

    @abstractmethod
    def goes_on(self, local: Local) -> bool:
        """Return whether there are moves from here."""

    @abstractmethod
    def moves(self, local: Local, depth: int) -> Iterable[ByteMove]:
        """`depth`: how many containers are around this value."""

    def calls(self, local: Local, depth: int) -> Iterable[tuple["Choice", Local]]:
        """Values that may begin here, and the place where this shape goes on after each."""
        return ()

    @abstractmethod
    def ends(self, local: Local) -> bool:
        """Return whether the value is whole here."""

    @abstractmethod
    def ending(self, local: Local, depth: int) -> bytes:
        """Return a short text that makes the value whole."""

    def settle(self) -> bool:
        """Find `shortest` anew, given those of the values inside; return whether it changed."""
        return False


def fits(shape: "Shape | Choice", depth: int) -> bool:
    """Return whether the shape's shortest text may stand inside so many containers."""
    return shape.shortest is not None and depth + shape.nesting <= MAX_DEPTH


class Choice:
    """A place in a schema: the shapes that a value there may have."""

    def __init__(self) -> None:
        self.options: list[Shape] = []
        self.shortest: bytes | None = None
        self.nesting = 0

    def settle(self) -> None:
        found = [option for option in self.options if fits(option, 0)]
        best = min(found, key=lambda each: (len(each.shortest or b""), each.nesting), default=None)
        self.shortest, self.nesting = (best.shortest, best.nesting) if best else (None, 0)


def settle_all(choices: list[Choice]) -> bool:
    """Find shortest texts from the inside out; return whether that came to an end."""
    for _ in range(4 * MAX_DEPTH):
        changed = False
        for choice in reversed(choices):  # those inside come later
            for option in choice.options:
                changed |= option.settle()
            choice.settle()
        if not changed:
            return True
    return False


class Number(Shape):
    """Digits that an automaton accepts."""

    start = 0

    def __init__(self, automaton: Dfa) -> None:
        self.automaton = automaton
        self.shortest = self.ending(0, 0)

    def goes_on(self, local: int) -> bool:
        return bool(self.automaton.moves[local])

    def moves(self, local: int, depth: int) -> Iterable[ByteMove]:
        return self.automaton.moves[local]

    def ends(self, local: int) -> bool:
        return self.automaton.accepting[local]

    def ending(self, local: int, depth: int) -> bytes:
        return self.automaton.ending(local).encode()


class Literals(Shape):
    """A choice of fixed texts."""

    start = 0

    def __init__(self, texts: Iterable[bytes]) -> None:
        self._children: list[dict[int, int]] = [{}]
        # The shortest of those that go through a place, and how much of it is over there.
        self._endings: list[tuple[bytes, int]] = [(b"", 0)]
        self._whole: set[int] = set()
        for text in sorted(texts, key=len, reverse=True):
            self._add(text)
        self.shortest = self.ending(0, 0)

    def _add(self, text: bytes) -> None:
        """Texts come longest first, so the last one through a place has the shortest ending."""
        place = 0
        self._endings[0] = (text, 0)
        for index, byte in enumerate(text, 1):
            if byte not in self._children[place]:
                self._children[place][byte] = len(self._children)
                self._children.append({})
                self._endings.append((text, index))
            place = self._children[place][byte]
            self._endings[place] = (text, index)
        self._whole.add(place)

    def goes_on(self, local: int) -> bool:
        return bool(self._children[local])

    def moves(self, local: int, depth: int) -> Iterable[ByteMove]:
        return [(byte, byte, place) for byte, place in self._children[local].items()]

    def ends(self, local: int) -> bool:
        return local in self._whole

    def ending(self, local: int, depth: int) -> bytes:
        text, index = self._endings[local]
        return text[index:]


class Document(Shape):
    """The whole text: the value, and before it a space or a new line, as some models begin."""

    start = 0

    def __init__(self, root: Choice) -> None:
        self.root = root
        self.shortest = root.shortest

    def goes_on(self, local: int) -> bool:
        return local == 0

    def moves(self, local: int, depth: int) -> Iterable[ByteMove]:
        return [(0x20, 0x20, 1), (0x0A, 0x0A, 1)] if local == 0 else []

    def calls(self, local: int, depth: int) -> Iterable[tuple[Choice, Local]]:
        return [(self.root, 2)] if local < 2 else []

    def ends(self, local: int) -> bool:
        return local == 2

    def ending(self, local: int, depth: int) -> bytes:
        return b"" if local == 2 else self.root.shortest or b""
