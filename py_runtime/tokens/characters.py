"""Sets of characters as sorted, disjoint ranges of code points, as `tokenizers` sees them."""

import re
from collections.abc import Iterable
from functools import cache
from itertools import pairwise

from py_runtime.tokens.unicode_16 import RUNS

Ranges = list[tuple[int, int]]  # first and last code point of each range

LAST_CODE = 0x10FFFF
WHITESPACE = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
HEX_DIGITS = [(0x30, 0x39), (0x41, 0x46), (0x61, 0x66)]
_CIRCLED_LETTERS = [(0x24B6, 0x24E9), (0x1F130, 0x1F149), (0x1F150, 0x1F169), (0x1F170, 0x1F189)]
_JOINERS = [(0x200C, 0x200D)]
_SUPERSCRIPTS_AND_FRACTIONS = [(0xB2, 0xB3), (0xB9, 0xB9), (0xBC, 0xBE)]
_NUMBERS_OF_UNICODE_17 = [(0x11DE0, 0x11DE9), (0x16FF4, 0x16FF6)]


def union(*sets: Iterable[tuple[int, int]]) -> Ranges:
    """Join ranges, which may overlap and come in any order."""
    merged: Ranges = []
    for first, last in sorted(pair for ranges in sets for pair in ranges):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    return merged


def complement(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Return all other code points; the ranges must be sorted and disjoint."""
    edges = [(-1, -1), *ranges, (LAST_CODE + 1, LAST_CODE + 1)]
    gaps = ((left[1] + 1, right[0] - 1) for left, right in pairwise(edges))
    return [(first, last) for first, last in gaps if first <= last]


def ranges_of_text(text: str) -> Ranges:
    """Return the characters of a text as ranges."""
    return union((ord(char), ord(char)) for char in text)


def ranges_up_to(ranges: Ranges, limit: int) -> Ranges:
    """Return the part of the ranges up to the limit."""
    return [(first, min(last, limit)) for first, last in ranges if first <= limit]


@cache
def _by_category() -> dict[str, Ranges]:
    table: dict[str, Ranges] = {}
    first = 0
    for category, length in re.findall(r"([A-Z][a-z])(\d*)", RUNS.replace("\n", "")):
        after = first + int(length or 1)
        table.setdefault(category, []).append((first, after - 1))
        first = after
    return table


@cache
def category(name: str) -> Ranges | None:
    """Return the characters of a general category (Lu) or group (L).

    None if there is no such one.
    """
    found = [ranges for key, ranges in _by_category().items() if key.startswith(name)]
    return union(*found) if found and name else None


def categories(*names: str) -> Ranges:
    """Return the characters of several general categories together."""
    return union(*(category(name) or [] for name in names))


@cache
def word_characters() -> Ranges:
    r"""Return what \w means to the Rust regex engine, which looks around single-word tokens."""
    return union(categories("L", "M", "Nd", "Nl", "Pc"), _CIRCLED_LETTERS, _JOINERS)


@cache
def oniguruma_word_characters() -> Ranges:
    r"""Return what \w means in a pattern of the file."""
    base = categories("L", "M", "Nd", "Nl", "Pc")
    return union(base, _CIRCLED_LETTERS, _SUPERSCRIPTS_AND_FRACTIONS)


@cache
def numeric_characters() -> Ranges:
    """Return the digits of the pre-tokenizer Digits, whose table is one Unicode version ahead."""
    return union(categories("N"), _NUMBERS_OF_UNICODE_17)
