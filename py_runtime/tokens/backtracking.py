"""Patterns that could try for ever: `re` backtracks wherever a text may match in another way, too.

A pattern becomes an automaton: its places (each a set of characters), and which place may follow
which. Loops are sets of places that lead to one another. Exponentially many tries need a loop that
reads the same text in two ways and can fail behind it; many more than the text has characters need
two loops, one behind the other, that share text. Both are refused. A loop alone that can fail
behind it makes a scan try again at every character of a run: quadratic, unless another alternative
takes the run. Runs of such characters must have a bounded length.
"""

from collections import Counter
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

from py_runtime.tokens import characters
from py_runtime.tokens.characters import Ranges

MAX_PLACES = 256
MAX_COPIES = 8  # of what is repeated so often; what is repeated more counts as endless
ANY: Ranges = [(0, characters.LAST_CODE)]
REPEATS = (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT)
TEXT_START = (codes.AT, codes.AT_BEGINNING_STRING)
LOOKS = (codes.ASSERT, codes.ASSERT_NOT)


def bounded_runs(pattern: str) -> list[Ranges]:
    """Return the sets of characters that a text must not have long runs of.

    ValueError says why a pattern cannot be used at all.
    """
    automaton = PlaceAutomaton()
    whole = automaton.sequence(parser.parse(pattern))
    bounded = automaton.bounded_runs(whole)
    while automaton.looks:  # which may hold further ones
        inside = PlaceAutomaton()
        inside.check(inside.sequence(automaton.looks.pop()))
        bounded += map(inside.union, inside.loops())
        automaton.looks += inside.looks
    return bounded


@dataclass(frozen=True)
class PatternPart:
    """A part of a pattern: where it begins and ends, and whether it matches the empty text, too."""

    first: frozenset[int] = frozenset()
    last: frozenset[int] = frozenset()
    empty: bool = True


@dataclass
class PlaceAutomaton:
    """The order of a pattern's characters: which may follow which, and in how many ways."""

    sets: list[Ranges] = field(default_factory=list)  # the characters of each place
    follows: list[Counter[int]] = field(default_factory=list)  # in how many ways which follows
    guarded: set[int] = field(default_factory=set)  # behind these something may fail
    looks: list[Any] = field(default_factory=list)  # what stands in (?=...) and its kin
    _conditions: int = 0  # how many there were so far

    # From the parsed pattern -------------------------------------------------------------------

    def sequence(self, items: Iterable[Any], caseless: bool = False) -> PatternPart:
        whole = PatternPart()
        for code, argument in items:
            before = self._conditions
            part = self._item(code, argument, caseless)
            if part.empty and self._conditions > before:
                self.guarded |= whole.last
            whole = self._behind(whole, part)
        return whole

    def _item(self, code: Any, argument: Any, caseless: bool) -> PatternPart:
        if code in LOOKS or code is codes.AT:
            self._conditions += 1
            self.looks += [argument[1]] if code in LOOKS else []
            return PatternPart()
        if code in REPEATS:
            least, most, inner = argument
            return self._repeat(least, most, inner, caseless)
        if code is codes.SUBPATTERN:
            _, added, _, group = argument
            return self.sequence(group, caseless or bool(added & 2))  # re.IGNORECASE
        if code is codes.ATOMIC_GROUP:
            return self.sequence(argument, caseless)
        if code is codes.BRANCH:
            parts = [self.sequence(branch, caseless) for branch in argument[1]]
            at_start = [
                list(branch)[:1] == [TEXT_START] for branch in argument[1]
            ]  # one way at most
            if sum(part.empty for part in parts) - sum(at_start) > 1:
                raise ValueError("two alternatives match nothing at all")
            return PatternPart(
                frozenset().union(*(part.first for part in parts)),
                frozenset().union(*(part.last for part in parts)),
                any(part.empty for part in parts),
            )
        return self._place(_ranges(code, argument), caseless)

    def _place(self, ranges: Ranges, caseless: bool) -> PatternPart:
        if len(self.sets) == MAX_PLACES:
            raise ValueError("it is too long")
        self.sets.append(_add_other_case(ranges) if caseless else ranges)
        self.follows.append(Counter())
        place = frozenset([len(self.sets) - 1])
        return PatternPart(place, place, empty=False)

    def _repeat(self, least: int, most: int, inner: Any, caseless: bool) -> PatternPart:
        endless = most > MAX_COPIES
        copies = min(least, MAX_COPIES) or 1 if endless else most
        whole = PatternPart()
        for count in range(copies):
            part = self.sequence(inner, caseless)
            if endless and count == copies - 1:
                self._connect(part.last, part.first)
            if count >= least:
                part = PatternPart(part.first, part.last)
            whole = self._behind(whole, part)
        return whole

    def _behind(self, one: PatternPart, other: PatternPart) -> PatternPart:
        self._connect(one.last, other.first)
        return PatternPart(
            one.first | other.first if one.empty else one.first,
            one.last | other.last if other.empty else other.last,
            one.empty and other.empty,
        )

    def _connect(self, places: Iterable[int], following: Iterable[int]) -> None:
        for place in places:
            self.follows[place].update(following)

    # What it can do ----------------------------------------------------------------------------

    def check(self, whole: PatternPart) -> None:
        loops = self.loops()
        can_fail = [loop for loop in loops if self._can_fail(loop, whole)]
        if any(map(self.is_ambiguous, can_fail)):
            raise ValueError("a repeated part can match the same text in several ways")
        if any(one is not loop and self.share(one, loop) for loop in can_fail for one in loops):
            raise ValueError("two repeated parts, one behind the other, match the same text")

    def bounded_runs(self, whole: PatternPart) -> list[Ranges]:
        """Return the runs of loops that can fail, except those that another alternative takes."""
        self.check(whole)
        free = whole.last - self.guarded
        takers = [self.sets[at] for at in whole.first & free if at in self.follows[at]]
        runs = [self.union(loop) for loop in self.loops() if self._can_fail(loop, whole)]
        return [run for run in runs if not any(_covers(taker, run) for taker in takers)]

    def _can_fail(self, loop: frozenset[int], whole: PatternPart) -> bool:
        """Return whether the loop avoids every place where the pattern has matched for good."""
        inner = loop - (whole.last - self.guarded)
        return any(place in self._reach(place, inner) for place in inner)

    def loops(self) -> list[frozenset[int]]:
        """Return the sets of places that lead to one another."""
        everywhere = range(len(self.sets))
        reached = [self._reach(place, everywhere) for place in everywhere]
        found = {
            frozenset(other for other in reached[place] if place in reached[other])
            for place in everywhere
            if place in reached[place]
        }
        return sorted(found, key=min)

    def _reach(self, start: int, among: Container[int]) -> set[int]:
        found: set[int] = set()
        pending = [start]
        while pending:
            more = {at for at in self.follows[pending.pop()] if at in among and at not in found}
            found |= more
            pending += more
        return found

    def is_ambiguous(self, loop: frozenset[int]) -> bool:
        """Return whether two ways from a place of the loop back to it read the same text."""
        for place in loop:
            if any(ways > 1 for to, ways in self.follows[place].items() if to in loop):
                return True
        return any(self._parts_and_meets(place, loop) for place in loop)

    def _parts_and_meets(self, start: int, loop: frozenset[int]) -> bool:
        """Two ways, step by step: they part, and both are back at the start together."""
        found: set[tuple[int, int, bool]] = set()
        pending = [(start, start, False)]
        while pending:
            one, other, parted = pending.pop()
            for step in self.follows[one].keys() & loop:
                for another in self.follows[other].keys() & loop:
                    state = (step, another, parted or step != another)
                    if state in found or not _overlap(self.sets[step], self.sets[another]):
                        continue
                    if state == (start, start, True):
                        return True
                    found.add(state)
                    pending.append(state)
        return False

    def share(self, first: frozenset[int], second: frozenset[int]) -> bool:
        """Return whether a text that both loops read leads from the first into the second."""
        common = _intersect(self.union(first), self.union(second))
        found = set(first)
        pending = list(first)
        while pending:
            for place in self.follows[pending.pop()].keys() - found:
                if _overlap(self.sets[place], common):
                    found.add(place)
                    pending.append(place)
        return not second.isdisjoint(found)

    def union(self, loop: frozenset[int]) -> Ranges:
        return characters.union(*(self.sets[place] for place in loop))


# Sets of characters ------------------------------------------------------------------------------


def _ranges(code: Any, argument: Any) -> Ranges:
    if code is codes.LITERAL:
        return [(argument, argument)]
    if code is codes.NOT_LITERAL:
        return characters.complement([(argument, argument)])
    if code is codes.ANY:
        return ANY
    if code is codes.IN:
        return _members(argument)
    raise ValueError(f"{code} is not supported")


def _members(members: Sequence[Any]) -> Ranges:
    inverted = bool(members) and members[0][0] is codes.NEGATE
    ranges = characters.union(
        argument if code is codes.RANGE else (argument, argument)
        for code, argument in members[inverted:]
    )
    return characters.complement(ranges) if inverted else ranges


def _add_other_case(ranges: Ranges) -> Ranges:
    """Add the other case of ASCII letters; tokenizers ignore the case of nothing but 's and 'll."""
    letters = [chr(code) for low, high in ranges for code in range(low, min(high, 0x7F) + 1)]
    swapped = "".join(letter.swapcase() for letter in letters if letter.isalpha())
    return characters.union(ranges, characters.ranges_of_text(swapped))


def _intersect(one: Ranges, other: Ranges) -> Ranges:
    found: Ranges = []
    at = 0
    for low, high in one:
        while at < len(other) and other[at][1] < low:
            at += 1
        for next_low, next_high in other[at:]:
            if next_low > high:
                break
            found.append((max(low, next_low), min(high, next_high)))
    return found


def _overlap(one: Ranges, other: Ranges) -> bool:
    return bool(_intersect(one, other))


def _covers(one: Ranges, other: Ranges) -> bool:
    return not _intersect(characters.complement(one), other)
