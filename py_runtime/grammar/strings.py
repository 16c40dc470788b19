"""JSON strings: escapes, surrogate pairs and UTF-8, whatever the characters must be.

A `Characters` automaton decides which characters may come: it sees each one whole, however it is
written. A part of a character is taken only if some character that may come begins with it.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

from py_runtime.grammar.finite_automata import Move, append_range
from py_runtime.grammar.shapes import ByteMove, Shape
from py_runtime.tokens.characters import LAST_CODE

QUOTE, BACKSLASH, LETTER_U = 0x22, 0x5C, 0x75
_PLAIN_ASCII = ((0x20, 0x21), (0x23, 0x5B), (0x5D, 0x7F))
_ESCAPED = {
    ord(letter): ord(char) for letter, char in zip('"\\/bfnrt', '"\\/\b\f\n\r\t', strict=True)
}
_HEX_DIGITS = ((0x30, 0), (0x61, 10), (0x41, 10))  # first byte and its value: 0-9, a-f, A-F
_LEAD_BYTES = [
    *((byte, byte & 0x1F, 1) for byte in range(0xC2, 0xE0)),
    *((byte, byte & 0x0F, 2) for byte in range(0xE0, 0xF0)),
    *((byte, byte & 0x07, 3) for byte in range(0xF0, 0xF5)),
]  # byte, its bits, and how many bytes follow
# The bytes that may follow E0, ED, F0 and F4, by their bits and the number of bytes that follow.
_SECOND_BYTES = {
    (0x0, 2): (0xA0, 0xBF),
    (0xD, 2): (0x80, 0x9F),
    (0x0, 3): (0x90, 0xBF),
    (0x4, 3): (0x80, 0x8F),
}
_FIRST_OF_LENGTH = (0, 0x80, 0x800, 0x10000)  # by the number of bytes that follow
_HIGH, _LOW, _AFTER = 0xD800, 0xDC00, 0xE000  # the halves of surrogate pairs

# Places: (kind, what is known of a character begun, state of the characters).
OPEN, TEXT, TAIL, UTF8, ESCAPE, HEX, PAIR, PAIR_U, LOW_HEX, DONE = range(10)


class Characters(Protocol):
    """An automaton over whole characters."""

    start: Any

    def ranges(self, state: Any) -> list[Move]:
        """Return the characters that may come, as ranges in order."""

    def accepts(self, state: Any) -> bool: ...

    def ending(self, state: Any) -> str: ...

    def free_state(self, state: Any, longest: int) -> Any:
        """Return a state that stands for all where any `longest` characters may come, else None.

        The text could end after each of these characters.
        """


class Counted:
    """A limited number of any characters."""

    start = 0

    def __init__(self, least: int = 0, most: int | None = None) -> None:
        self.least = least
        self.most = most

    def ranges(self, state: int) -> list[Move]:
        if self.most is None:
            return [(0, LAST_CODE, min(state + 1, self.least))]
        return [(0, LAST_CODE, state + 1)] if state < self.most else []

    def accepts(self, state: int) -> bool:
        return state >= self.least

    def ending(self, state: int) -> str:
        return "a" * (self.least - state)

    def free_state(self, state: int, longest: int) -> int | None:
        is_free = state >= self.least and (self.most is None or self.most - state > longest)
        return self.least if is_free else None


class String(Shape):
    """A string, from quote to quote."""

    def __init__(self, characters: Characters) -> None:
        self.characters = characters
        self.start = (OPEN, 0, characters.start)
        self.shortest = self.ending(self.start, 0)

    def goes_on(self, local: Any) -> bool:
        return bool(local[0] != DONE)

    def ends(self, local: Any) -> bool:
        return bool(local[0] == DONE)

    def ending(self, local: Any, depth: int) -> bytes:
        made = bytearray()
        while local[0] != DONE:
            if local[0] == TEXT:
                text = self.characters.ending(local[2])
                return bytes(made) + json.dumps(text, ensure_ascii=False)[1:].encode()
            byte, _, local = next(iter(self.moves(local, depth)))
            made.append(byte)
        return bytes(made)

    def moves(self, local: Any, depth: int) -> Iterable[ByteMove]:
        kind, known, state = local
        return _MOVES[kind](self, known, state)

    def free_place(self, local: Any, longest: int) -> Any:
        """Return a place that stands for all where any `longest` characters may come, else None."""
        kind, _, state = local
        free = self.characters.free_state(state, longest) if kind == TEXT else None
        return None if free is None else (TEXT, 0, free)

    def _open_moves(self, known: Any, state: Any) -> list[ByteMove]:
        return [(QUOTE, QUOTE, (TEXT, 0, state))]

    def _text_moves(self, known: Any, state: Any) -> list[ByteMove]:
        ranges = self.characters.ranges(state)
        moves: list[ByteMove] = []
        if self.characters.accepts(state):
            moves.append((QUOTE, QUOTE, (DONE, 0, 0)))
        if not ranges:
            return moves
        for low, high, target in ranges:
            for first, last in _PLAIN_ASCII:
                if max(low, first) <= min(high, last):
                    moves.append((max(low, first), min(high, last), (TEXT, 0, target)))
        moves.append((BACKSLASH, BACKSLASH, (ESCAPE, 0, state)))
        if ranges[-1][1] < 0x80:
            return moves
        if ranges[0][:2] == (0, LAST_CODE):
            return moves + _lead_moves(state, ranges[0][2])
        leads: list[Any] = []
        for byte, bits, follow in _LEAD_BYTES:
            if (target := self._begin_character(bits, follow, follow, state)) is not None:
                append_range(leads, byte, byte, target)
        return moves + leads

    def _begin_character(self, value: int, left: int, follow: int, state: Any) -> Any:
        """Return the place where a character's first bits are known.

        None if no allowed one has them.
        """
        low, high = value << 6 * left, (value + 1 << 6 * left) - 1
        ranges = self.characters.ranges(state)
        if left == 0:
            target = target_of(ranges, low) if is_character(low, follow) else None
            return None if target is None else (TEXT, 0, target)
        if low >= _FIRST_OF_LENGTH[follow] and high <= LAST_CODE and not overlaps_halves(low, high):
            covering = next((to for a, b, to in ranges if a <= low and high <= b), None)
            if covering is not None:
                return (TAIL, left, covering)
        low, high = max(low, _FIRST_OF_LENGTH[follow]), min(high, LAST_CODE)
        return (UTF8, (value, left, follow), state) if has_any(ranges, low, high) else None

    def _tail_moves(self, left: int, state: Any) -> list[ByteMove]:
        return [(0x80, 0xBF, (TAIL, left - 1, state) if left > 1 else (TEXT, 0, state))]

    def _utf8_moves(self, known: Any, state: Any) -> list[ByteMove]:
        value, left, follow = known
        ranges = self.characters.ranges(state)
        if ranges[0][:2] == (0, LAST_CODE) and left == follow:
            low, high = _SECOND_BYTES[value, follow]
            return [(low, high, (TAIL, left - 1, ranges[0][2]))]
        moves: list[Any] = []
        for bits in range(64):
            target = self._begin_character(value << 6 | bits, left - 1, follow, state)
            if target is not None:
                append_range(moves, 0x80 | bits, 0x80 | bits, target)
        return moves

    def _escape_moves(self, known: Any, state: Any) -> list[ByteMove]:
        ranges = self.characters.ranges(state)
        moves: list[ByteMove] = []
        for letter, code in _ESCAPED.items():
            if (target := target_of(ranges, code)) is not None:
                moves.append((letter, letter, (TEXT, 0, target)))
        return [*moves, (LETTER_U, LETTER_U, (HEX, (0, 4), state))]

    def _hex_moves(self, known: Any, state: Any) -> Iterator[ByteMove]:
        value, left = known
        ranges = self.characters.ranges(state)
        for byte, value_after in hex_digits(value):
            low, high = value_after << 4 * (left - 1), (value_after + 1 << 4 * (left - 1)) - 1
            if left == 1:
                target = self._code_unit(value_after, state)
                if target is not None:
                    yield byte, byte, target
            elif has_any(ranges, low, high) or has_pairs(ranges, low, high):
                yield byte, byte, (HEX, (value_after, left - 1), state)

    def _code_unit(self, code: int, state: Any) -> Any:
        ranges = self.characters.ranges(state)
        if _HIGH <= code < _LOW:
            return (PAIR, code, state) if has_pairs(ranges, code, code) else None
        if _LOW <= code < _AFTER:
            return None
        target = target_of(ranges, code)
        return None if target is None else (TEXT, 0, target)

    def _pair_moves(self, half: int, state: Any) -> list[ByteMove]:
        return [(BACKSLASH, BACKSLASH, (PAIR_U, half, state))]

    def _pair_u_moves(self, half: int, state: Any) -> list[ByteMove]:
        return [(LETTER_U, LETTER_U, (LOW_HEX, (half, 0, 4), state))]

    def _low_hex_moves(self, known: Any, state: Any) -> Iterator[ByteMove]:
        half, value, left = known
        ranges = self.characters.ranges(state)
        for byte, value_after in hex_digits(value):
            low = max(value_after << 4 * (left - 1), _LOW)
            high = min((value_after + 1 << 4 * (left - 1)) - 1, _AFTER - 1)
            if low > high:
                continue
            first, last = join_surrogates(half, low), join_surrogates(half, high)
            if left == 1:
                target = target_of(ranges, first)
                if target is not None:
                    yield byte, byte, (TEXT, 0, target)
            elif has_any(ranges, first, last):
                yield byte, byte, (LOW_HEX, (half, value_after, left - 1), state)


_MOVES: dict[int, Callable[[String, Any, Any], Iterable[ByteMove]]] = {
    OPEN: String._open_moves,
    TEXT: String._text_moves,
    TAIL: String._tail_moves,
    UTF8: String._utf8_moves,
    ESCAPE: String._escape_moves,
    HEX: String._hex_moves,
    PAIR: String._pair_moves,
    PAIR_U: String._pair_u_moves,
    LOW_HEX: String._low_hex_moves,
    DONE: lambda string, known, state: (),
}


def _lead_moves(state: Any, target: Any) -> list[ByteMove]:
    """Return the moves on a first byte where every character leads to the same state."""
    moves: list[ByteMove] = [
        (0xC2, 0xDF, (TAIL, 1, target)),
        (0xE1, 0xEC, (TAIL, 2, target)),
        (0xEE, 0xEF, (TAIL, 2, target)),
        (0xF1, 0xF3, (TAIL, 3, target)),
    ]
    moves += ((byte, byte, (UTF8, (byte & 0x0F, 2, 2), state)) for byte in (0xE0, 0xED))
    moves += ((byte, byte, (UTF8, (byte & 0x07, 3, 3), state)) for byte in (0xF0, 0xF4))
    return moves


def hex_digits(value: int) -> Iterator[tuple[int, int]]:
    """Each hexadecimal digit, and the value with it behind."""
    for first, digit in _HEX_DIGITS:
        for offset in range(10 if digit == 0 else 6):
            yield first + offset, value << 4 | digit + offset


def join_surrogates(high: int, low: int) -> int:
    """Return the character of a surrogate pair."""
    return 0x10000 + (high - _HIGH << 10) + (low - _LOW)


def target_of(ranges: list[Move], code: int) -> Any:
    """Return the state that a character leads to; None where it may not come."""
    return next((target for low, high, target in ranges if low <= code <= high), None)


def has_any(ranges: list[Move], low: int, high: int) -> bool:
    """Return whether a character from `low` to `high`, halves of pairs aside, may come."""
    if low > high:
        return False
    if low < _AFTER and high >= _HIGH:
        return has_any(ranges, low, _HIGH - 1) or has_any(ranges, _AFTER, high)
    return any(first <= high and low <= last for first, last, _ in ranges)


def has_pairs(ranges: list[Move], low: int, high: int) -> bool:
    """Return whether one of these code units begins the pair of a character that may come."""
    low, high = max(low, _HIGH), min(high, _LOW - 1)
    return low <= high and has_any(
        ranges, join_surrogates(low, _LOW), join_surrogates(high, _AFTER - 1)
    )


def overlaps_halves(low: int, high: int) -> bool:
    """Return whether any of these is half of a surrogate pair."""
    return low < _AFTER and high >= _HIGH


def is_character(code: int, follow: int) -> bool:
    """Return whether UTF-8 writes the character with `follow` bytes after the first."""
    return _FIRST_OF_LENGTH[follow] <= code <= LAST_CODE and not overlaps_halves(code, code)
