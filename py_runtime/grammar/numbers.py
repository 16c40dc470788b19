"""Numbers as automata over their digits: exactly those of a range, and nothing else."""

from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

from py_runtime.grammar.finite_automata import Dfa, Nfa, determinise
from py_runtime.grammar.limits import EXACT_DIGITS, MAX_DIGITS, MAX_FRACTION_DIGITS
from py_runtime.grammar.regex import compile_pattern

# A three-digit exponent stays below 290, so that no number overflows a double.
_ANY_NUMBER = (
    rf"^-?(?:0|[1-9]\d{{0,{MAX_DIGITS - 1}}})(?:\.\d{{1,{MAX_FRACTION_DIGITS}}})?"
    r"(?:[eE][+-]?(?:\d{1,2}|[12][0-8]\d))?$"
)
_ZERO, _POINT, _MINUS = 0x30, 0x2E, 0x2D


@dataclass(frozen=True)
class Bound:
    """An exact bound of a range of numbers."""

    value: Decimal
    open: bool  # the bound itself is out

    def negated(self) -> "Bound":
        return Bound(self.value.copy_negate(), self.open)  # - rounds to 28 digits


@lru_cache(maxsize=64)
def number_automaton(low: Bound | None, high: Bound | None, whole: bool) -> Dfa | None:
    """None: there is no such number. ValueError: a bound has too many digits.

    Numbers with a bound are written without an exponent.
    """
    if low is None and high is None and not whole:
        return compile_pattern(_ANY_NUMBER)
    nfa = Nfa()
    start, final = nfa.state(), nfa.state()
    zero = Bound(Decimal(0), open=False)
    if low is None or low.value < 0:
        # A minus, then how far below zero; there is no -0.
        nearest = Bound(Decimal(0), open=True)
        if high is not None and high.value < 0:
            nearest = high.negated()
        minus = nfa.state()
        nfa.moves[start].append((_MINUS, _MINUS, minus))
        farthest = None if low is None else low.negated()
        _Magnitudes(nfa, nearest, farthest, whole, final).build(minus)
    if high is None or high.value >= 0:
        nearest = zero if low is None or low.value < 0 else low
        _Magnitudes(nfa, nearest, high, whole, final).build(start)
    return determinise(nfa, start, final)


class _Magnitudes:
    """Digits that are compared, from the left, with those of the bounds.

    A number is tight to a bound as long as its digits are the bound's. It may end where its value
    is inside the range.
    """

    def __init__(self, nfa: Nfa, low: Bound, high: Bound | None, whole: bool, final: int) -> None:
        self.nfa = nfa
        self.low = low
        self.high = high
        self.whole = whole
        self.end = final
        self.low_whole, self.low_fraction = digits_of(low)
        self.high_whole, self.high_fraction = ("", "") if high is None else digits_of(high)

    def build(self, start: int) -> None:
        longest = len(self.high_whole) or max(MAX_DIGITS, len(self.low_whole))
        for length in range(len(self.low_whole), longest + 1):
            tight_low = length == len(self.low_whole)
            tight_high = self.high is not None and length == len(self.high_whole)
            self._build_whole(start, length, tight_low, tight_high)

    def _build_whole(self, start: int, length: int, tight_low: bool, tight_high: bool) -> None:
        states = {(tight_low, tight_high): start}
        for index in range(length):
            after: dict[tuple[bool, bool], int] = {}
            for (low, high), state in states.items():
                least = int(self.low_whole[index]) if low else int(index == 0 and length > 1)
                most = int(self.high_whole[index]) if high else 9
                self._digits(state, (low, high), (least, most), after)
            states = after
        for tight, state in states.items():
            self._end_of_whole(state, tight, length)

    def _end_of_whole(self, state: int, tight: tuple[bool, bool], length: int) -> None:
        if self._may_end(tight, 0):
            self._accept(state)
        if self.whole:
            return
        point = self.nfa.state()
        self.nfa.moves[state].append((_POINT, _POINT, point))
        states = {tight: point}
        exact = EXACT_DIGITS - length
        for index in range(MAX_FRACTION_DIGITS):
            after: dict[tuple[bool, bool], int] = {}
            for (low, high), state in states.items():
                if (low or high) and index >= exact:
                    continue  # beyond it, a number could be rounded to the bound
                least = digit(self.low_fraction, index) if low else 0
                most = digit(self.high_fraction, index) if high else 9
                self._digits(state, (low, high), (least, most), after)
            states = after
            for tight, state in states.items():
                if self._may_end(tight, index + 1):
                    self._accept(state)

    def _digits(
        self,
        state: int,
        tight: tuple[bool, bool],
        allowed: tuple[int, int],
        after: dict[tuple[bool, bool], int],
    ) -> None:
        least, most = allowed
        for value in range(least, most + 1):
            target = (tight[0] and value == least, tight[1] and value == most)
            if target not in after:
                after[target] = self.nfa.state()
            self.nfa.moves[state].append((_ZERO + value, _ZERO + value, after[target]))

    def _may_end(self, tight: tuple[bool, bool], fraction: int) -> bool:
        """Return whether the number is in the range, if zeros follow for ever."""
        tight_low, tight_high = tight
        if tight_low and (self.low_fraction[fraction:] or self.low.open):
            return False
        at_high = tight_high and not self.high_fraction[fraction:]
        return not (at_high and self.high is not None and self.high.open)

    def _accept(self, state: int) -> None:
        last = self.nfa.state()
        self.nfa.steps[state].append(last)
        self.nfa.at_end[last] = self.end


def digits_of(bound: Bound) -> tuple[str, str]:
    """Digits before and behind the point, without zeros that say nothing."""
    whole, _, fraction = f"{bound.value.copy_abs():f}".partition(".")
    whole, fraction = whole.lstrip("0") or "0", fraction.rstrip("0")
    if len(whole) + len(fraction) > EXACT_DIGITS and (fraction or len(whole) > 40):
        raise ValueError(f"the bound {bound.value} has more than {EXACT_DIGITS} digits")
    return whole, fraction


def digit(fraction: str, index: int) -> int:
    """0 beyond the end, as every decimal fraction goes on."""
    return int(fraction[index]) if index < len(fraction) else 0
