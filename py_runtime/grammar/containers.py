"""Objects and arrays, with a limited amount of whitespace, as programs write it.

Between the parts of a container there may be one space, or a new line and an indentation.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from py_runtime.grammar.limits import MAX_SHORTEST
from py_runtime.grammar.shapes import ByteMove, Choice, Local, Shape, fits

SPACE, TAB, NEW_LINE, COMMA, COLON = b" \t\n,:"
_INDENTATION = 4  # spaces a level, at most

# Kinds of places; the others are (kind, index, gap).
OPEN, FIRST, NEXT, KEY, COLON_NEXT, VALUE, AFTER, CLOSING, DONE = range(9)

# The gap so far: nothing, a space, a new line and `gap - LINE` spaces, -`gap` tabs.
NO_GAP, ONE_SPACE, LINE = 0, 1, 2


def gap_moves(gap: int, level: int) -> list[tuple[int, int]]:
    """Bytes that go on with a gap, and the gap with them."""
    if gap == NO_GAP:
        return [(SPACE, ONE_SPACE), (NEW_LINE, LINE)]
    moves = []
    if LINE <= gap < LINE + _INDENTATION * level:
        moves.append((SPACE, gap + 1))
    if gap == LINE or gap < 0:
        tabs = 0 if gap == LINE else -gap
        if tabs < level:
            moves.append((TAB, -(tabs + 1)))
    return moves


@dataclass(frozen=True)
class Property:
    """A property that the schema names."""

    name: bytes  # as written, with its quotes
    value: Choice
    required: bool


class JsonContainer(Shape):
    """A container whose states are (kind, index of a member, whitespace so far)."""

    start: Local = (OPEN, 0, NO_GAP)

    def goes_on(self, local: Local) -> bool:
        return bool(local[0] != DONE)

    def ends(self, local: Local) -> bool:
        return bool(local[0] == DONE)


class Object(JsonContainer):
    """An object: its properties in the schema's order, then others, if they are allowed."""

    def __init__(self, properties: list[Property], extra_key: Shape | None, extra: Choice) -> None:
        """`extra_key`: what other names look like; None: there are no others."""
        self.properties = properties
        self.extra = extra
        self.extra_key = Choice()
        self.extra_key.options = [extra_key] if extra_key else []
        self.extra_key.settle()
        self._next_required = [len(properties)] * (len(properties) + 1)
        for index in reversed(range(len(properties))):
            found = index if properties[index].required else self._next_required[index + 1]
            self._next_required[index] = found
        self._build_names()
        self.candidates = lru_cache(maxsize=256)(self._candidates)

    def _build_names(self) -> None:
        """Build a tree of all names; each node knows the properties whose names go through it."""
        self._children: list[dict[int, int]] = [{}]
        self._below: list[set[int]] = [set()]
        self._depths = [0]
        for index, each in enumerate(self.properties):
            node = 0
            self._below[0].add(index)
            for depth, byte in enumerate(each.name, 1):
                if byte not in self._children[node]:
                    self._children[node][byte] = len(self._children)
                    self._children.append({})
                    self._below.append(set())
                    self._depths.append(depth)
                node = self._children[node][byte]
                self._below[node].add(index)

    def _candidates(self, index: int, depth: int) -> frozenset[int]:
        """Return the properties that may come next: none that is required can be passed over."""
        last = min(self._next_required[index], len(self.properties) - 1)
        return frozenset(
            each for each in range(index, last + 1) if fits(self.properties[each].value, depth + 1)
        )

    def _may_have_extra(self, index: int, depth: int) -> bool:
        return (
            self._may_close(index) and bool(self.extra_key.options) and fits(self.extra, depth + 1)
        )

    def _may_close(self, index: int) -> bool:
        return self._next_required[index] == len(self.properties)

    def _may_go_on(self, index: int, depth: int) -> bool:
        return bool(self.candidates(index, depth)) or self._may_have_extra(index, depth)

    def moves(self, local: Local, depth: int) -> list[ByteMove]:
        kind, index, gap = local
        moves: list[ByteMove] = []
        if kind == OPEN:
            moves.append((0x7B, 0x7B, (FIRST, 0, NO_GAP)))
        elif kind == KEY:
            return self._key_moves(index, gap, depth)
        elif kind == COLON_NEXT:
            moves.append((COLON, COLON, (VALUE, index, NO_GAP)))
        elif kind == VALUE and gap == NO_GAP:
            moves.append((SPACE, SPACE, (VALUE, index, ONE_SPACE)))
        elif kind == AFTER and self._may_go_on(index, depth):
            moves.append((COMMA, COMMA, (NEXT, index, NO_GAP)))
        if kind in (FIRST, NEXT) and self._may_go_on(index, depth):
            if self.candidates(index, depth):
                moves.append((0x22, 0x22, (KEY, index, self._children[0][0x22])))
            moves += ((byte, byte, (kind, index, to)) for byte, to in gap_moves(gap, depth + 1))
        if kind in (FIRST, AFTER, CLOSING) and self._may_close(index):
            moves += self._closing_moves(kind, gap, depth)
        return moves

    def _closing_moves(self, kind: int, gap: int, depth: int) -> list[ByteMove]:
        moves: list[ByteMove] = [(0x7D, 0x7D, (DONE, 0, NO_GAP))]
        last = len(self.properties)
        if kind == FIRST:
            return moves  # {} is written without a gap, or with that of a first name
        for byte, to in gap_moves(gap, depth):
            moves.append((byte, byte, (CLOSING, last, to)))
        return moves

    def _key_moves(self, index: int, node: int, depth: int) -> list[ByteMove]:
        candidates = self.candidates(index, depth)
        moves: list[ByteMove] = []
        for byte, child in self._children[node].items():
            if candidates.isdisjoint(self._below[child]):
                continue
            if self._children[child]:
                moves.append((byte, byte, (KEY, index, child)))
            else:  # the closing quote: no name goes on behind it
                (found,) = self._below[child]
                moves.append((byte, byte, (COLON_NEXT, found, NO_GAP)))
        return moves

    def calls(self, local: Local, depth: int) -> Iterable[tuple[Choice, Local]]:
        kind, index, _ = local
        last = len(self.properties)
        if kind == VALUE:
            if index == last:
                return [(self.extra, (AFTER, last, NO_GAP))]
            return [(self.properties[index].value, (AFTER, index + 1, NO_GAP))]
        if kind in (FIRST, NEXT) and self._may_have_extra(index, depth):
            return [(self.extra_key, (COLON_NEXT, last, NO_GAP))]
        return []

    def ending(self, local: Local, depth: int) -> bytes:
        kind, index, gap = local
        if kind == DONE:
            return b""
        if kind in (OPEN, FIRST):
            return (b"{" if kind == OPEN else b"") + self._members(0) + b"}"
        if kind in (AFTER, CLOSING):
            return self._rest(index)
        if kind == VALUE:
            return self._value(index) + self._rest(index + 1)
        if kind == COLON_NEXT:
            return b":" + self._value(index) + self._rest(index + 1)
        begun = self._depths[gap] if kind == KEY else 0
        below = self._below[gap] if kind == KEY else self._below[0]
        if candidates := self.candidates(index, depth) & below:
            # The next required one, or else that with the shortest text.
            chosen = min(
                candidates,
                key=lambda each: (
                    each != self._next_required[index],
                    len(self._member(each)),
                    each,
                ),
            )
            return self._member(chosen)[begun:] + self._rest(chosen + 1)
        return self._extra_member() + b"}"

    def _value(self, index: int) -> bytes:
        value = self.extra if index == len(self.properties) else self.properties[index].value
        return value.shortest or b""

    def _member(self, index: int) -> bytes:
        return self.properties[index].name + b":" + self._value(index)

    def _extra_member(self) -> bytes:
        return (self.extra_key.shortest or b"") + b":" + (self.extra.shortest or b"")

    def _members(self, index: int) -> bytes:
        required = range(index, len(self.properties))
        return b",".join(self._member(each) for each in required if self.properties[each].required)

    def _rest(self, index: int) -> bytes:
        """Behind a value: the other required ones, and the closing brace."""
        index = min(index, len(self.properties))
        return b"}" if self._may_close(index) else b"," + self._members(index) + b"}"

    def settle(self) -> bool:
        before = self.shortest, self.nesting
        required = [each for each in self.properties if each.required]
        parts = [(each.name, b":", each.value.shortest) for each in required]
        self.shortest = enclose(b"{", parts, b"}")
        self.nesting = 1 + max((each.value.nesting for each in required), default=0)
        self.candidates.cache_clear()
        return before != (self.shortest, self.nesting)


class Array(JsonContainer):
    """An array: items by their place, then any number of others."""

    def __init__(self, prefix: list[Choice], others: Choice, least: int, most: int | None) -> None:
        self.prefix = prefix
        self.others = others
        self.least = least
        self.most = most

    def _item(self, index: int) -> Choice:
        return self.prefix[index] if index < len(self.prefix) else self.others

    def _may_go_on(self, index: int, depth: int) -> bool:
        return (self.most is None or index < self.most) and fits(self._item(index), depth + 1)

    def _after(self, index: int) -> int:
        """Return the count with one more; beyond all limits the exact number does not matter."""
        if self.most is not None:
            return index + 1
        return min(index + 1, max(self.least, len(self.prefix)))

    def moves(self, local: Local, depth: int) -> list[ByteMove]:
        kind, index, gap = local
        moves: list[ByteMove] = []
        if kind == OPEN:
            moves.append((0x5B, 0x5B, (FIRST, 0, NO_GAP)))
        if kind == AFTER and self._may_go_on(index, depth):
            moves.append((COMMA, COMMA, (NEXT, index, NO_GAP)))
        if kind in (FIRST, NEXT) and self._may_go_on(index, depth):
            moves += ((byte, byte, (kind, index, to)) for byte, to in gap_moves(gap, depth + 1))
        if kind in (FIRST, AFTER, CLOSING) and index >= self.least:
            moves.append((0x5D, 0x5D, (DONE, 0, NO_GAP)))
        if kind in (AFTER, CLOSING) and index >= self.least:
            moves += ((byte, byte, (CLOSING, index, to)) for byte, to in gap_moves(gap, depth))
        return moves

    def calls(self, local: Local, depth: int) -> Iterable[tuple[Choice, Local]]:
        kind, index, _ = local
        if kind in (FIRST, NEXT) and self._may_go_on(index, depth):
            return [(self._item(index), (AFTER, self._after(index), NO_GAP))]
        return []

    def ending(self, local: Local, depth: int) -> bytes:
        kind, index, _ = local
        if kind == DONE:
            return b""
        if kind in (AFTER, CLOSING):
            more = self._items(index, self.least)
            return b"," * bool(more) + more + b"]"
        least = max(self.least, index + 1) if kind == NEXT else self.least
        return (b"[" if kind == OPEN else b"") + self._items(index, least) + b"]"

    def _items(self, first: int, after: int) -> bytes:
        return b",".join(self._item(index).shortest or b"" for index in range(first, after))

    def settle(self) -> bool:
        before = self.shortest, self.nesting
        items = [self._item(index) for index in range(self.least)]
        self.shortest = enclose(b"[", [(item.shortest,) for item in items], b"]")
        self.nesting = 1 + max((item.nesting for item in items), default=0)
        return before != (self.shortest, self.nesting)


def enclose(
    opening: bytes, members: Sequence[tuple[bytes | None, ...]], closing: bytes
) -> bytes | None:
    """Put the members in brackets; None if one of them has no text, or the whole is too long."""
    parts = [opening]
    for index, member in enumerate(members):
        parts.append(b"," * bool(index))
        for part in member:
            if part is None:
                return None
            parts.append(part)
    parts.append(closing)
    return b"".join(parts) if sum(map(len, parts)) <= MAX_SHORTEST else None
