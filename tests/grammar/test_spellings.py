"""JSON strings byte by byte, against all spellings of all characters that may come.

At each place of a text exactly those bytes are allowed with which a spelling goes on. The spellings
are written down with Python's own UTF-8 and JSON.
"""

import json
from collections.abc import Iterator
from itertools import islice, product

import pytest

from py_runtime.grammar.finite_automata import Dfa, has_characters
from py_runtime.grammar.regex import compile_pattern
from py_runtime.grammar.strings import Counted, String
from py_runtime.tokens.characters import LAST_CODE

# The first and the last code point of each length of UTF-8, of ASCII's control characters, and
# around the halves of surrogate pairs; and the rows of continuation bytes and hexadecimal digits.
EDGES = [
    *(0x00, 0x1F, 0x20, 0x21, 0x22, 0x23, 0x2F, 0x5B, 0x5C, 0x5D, 0x7E, 0x7F, 0x80, 0xBF, 0xC0),
    *(0xFF, 0x100, 0x7BF, 0x7C0, 0x7FF, 0x800, 0x83F, 0x840, 0xFFF, 0x1000, 0xCFFF, 0xD000),
    *(0xD7BF, 0xD7FF, 0xE000, 0xEFFF, 0xF000, 0xFFBF, 0xFFC0, 0xFFFF, 0x10000, 0x1003F),
    *(0x103FF, 0x10400, 0x3FFFF, 0x40000, 0xFFFFF, 0x100000, 0x10FBFF, 0x10FC00, 0x10FFBF),
    *(0x10FFC0, LAST_CODE - 1, LAST_CODE),
]
ESCAPES = {'"': '"', "\\": "\\", "/": "/", "\b": "b", "\f": "f", "\n": "n", "\r": "r", "\t": "t"}


def spellings(char: str) -> Iterator[bytes]:
    """Yield each way to write a character inside a JSON string."""
    if char >= " " and char not in '"\\':
        yield char.encode()
    if char in ESCAPES:
        yield b"\\" + ESCAPES[char].encode()
    units = char.encode("utf-16-be").hex()
    for digits in product(*({digit, digit.upper()} for digit in units)):
        whole = "".join(digits)
        yield "".join(f"\\u{whole[at : at + 4]}" for at in range(0, len(whole), 4)).encode()


def next_bytes(texts: set[bytes]) -> dict[bytes, set[int]]:
    """Return for each beginning of the texts the bytes with which one of them goes on."""
    found: dict[bytes, set[int]] = {}
    for text in texts:
        for at, byte in enumerate(text):
            found.setdefault(text[:at], set()).add(byte)
    return found


def moves_of(string: String) -> dict[bytes, set[int]]:
    """Return the same as the string's own moves have it, from quote to quote."""
    found: dict[bytes, set[int]] = {}
    places = {b"": string.start}
    while places:
        begun, place = places.popitem()
        for low, high, target in string.moves(place, 0):
            for byte in range(low, high + 1):
                assert byte not in found.setdefault(begun, set()), "each byte leads to one place"
                found[begun].add(byte)
                if string.goes_on(target):
                    places[begun + bytes([byte])] = target
                else:
                    assert string.ends(target)
    return found


def one_of(*ranges: tuple[int, int]) -> Dfa:
    """Return the automaton of one character in these ranges."""
    return Dfa([[(low, high, 1) for low, high in ranges], []], [False, True])


def assert_spelled(*ranges: tuple[int, int]) -> None:
    codes = [code for low, high in ranges for code in range(low, high + 1)]
    chars = [chr(code) for code in codes if not 0xD800 <= code <= 0xDFFF]
    texts = {b'"' + spelled + b'"' for char in chars for spelled in spellings(char)}
    assert moves_of(String(one_of(*ranges))) == next_bytes(texts)
    assert {json.loads(text, strict=False) for text in texts} == set(chars)


@pytest.mark.parametrize("code", EDGES, ids=hex)
def test_one_character(code: int) -> None:
    assert_spelled((code, code))


@pytest.mark.parametrize("code", EDGES, ids=hex)
def test_neighbours(code: int) -> None:
    """A range that goes over the edge, on both sides, and the two sides as ranges of their own."""
    low, high = max(code - 3, 0), min(code + 3, LAST_CODE)
    assert_spelled((low, high))
    if low < code < high:
        assert_spelled((low, code - 1), (code + 1, high))


@pytest.mark.parametrize(
    "ranges",
    [
        ((0, 0x7F),),
        ((0x7F, 0x80),),
        ((0x20, 0xFF),),
        ((0x7C0, 0x83F),),
        ((0x80, 0x13F),),
        ((0xD7C0, 0xE03F),),
        ((0xFFC0, 0x1003F),),
        ((0x10FFC0, LAST_CODE),),
        ((0x41, 0x41), (0xE000, 0xE000), (0x1F49A, 0x1F49A)),
        ((0xD7FF, 0xD800), (0xDFFF, 0xE000)),
    ],
)
def test_ranges_over_edges(ranges: tuple[tuple[int, int], ...]) -> None:
    assert_spelled(*ranges)


NOT_UTF8 = [
    *(b"\x80", b"\xbf", b"\xc0\x80", b"\xc1\xbf", b"\xe0\x80\x80", b"\xe0\x9f\xbf"),
    *(b"\xed\xa0\x80", b"\xed\xbf\xbf", b"\xf0\x80\x80\x80", b"\xf0\x8f\xbf\xbf"),
    *(b"\xf4\x90\x80\x80", b"\xf5\x80\x80\x80", b"\xf8\x88\x80\x80\x80", b"\xff"),
    *(b"\xc2\x7f", b"\xc2\xc0", b"\xe1\x80\x7f", b"\xe1\x80\xc0", b"\xf1\x80\x80\xc0"),
]
NOT_JSON = [
    *(b"\x00", b"\x1f", b'"', b"\\a", b"\\'", b"\\U0041", b"\\u004", b"\\u00g0", b"\\u:000"),
    *(b"\\u@000", b"\\u`000", b"\\uG000", b"\\udc00", b"\\udfff", b"\\ud800", b"\\ud800x"),
    *(b"\\ud800\\n", b"\\ud800\\ud800", b"\\ud800\\udbff", b"\\ud800\\ue000", b"\\udbff\\u0041"),
]
SPLIT = Dfa([[(0, 0x6A, 1), (0x6B, LAST_CODE, 1)], []], [False, True])  # any, but in two ranges


def takes(string: String, text: bytes) -> bool:
    place = string.start
    for byte in b'"' + text + b'"':
        moves = string.moves(place, 0) if string.goes_on(place) else ()
        place = next((to for low, high, to in moves if low <= byte <= high), None)
        if place is None:
            return False
    return string.ends(place)


@pytest.mark.parametrize("characters", [Counted(1, 1), one_of((0, LAST_CODE)), SPLIT])
def test_any_character(characters: Counted | Dfa) -> None:
    string = String(characters)
    for code in EDGES:
        for spelled in islice(spellings(chr(code)), 5):
            assert takes(string, spelled), spelled
    for text in NOT_UTF8 + NOT_JSON:
        assert not takes(string, text), text
    for text in NOT_UTF8:
        with pytest.raises(UnicodeDecodeError):
            text.decode()


@pytest.mark.parametrize(
    ("low", "high", "has_any"),
    [
        (0xD7FF, 0xD7FF, True),
        (0xD7FF, 0xDFFF, True),
        (0xD800, 0xDFFF, False),
        (0xD800, 0xD800, False),
        (0xDFFF, 0xDFFF, False),
        (0xD800, 0xE000, True),
        (0xE000, 0xE000, True),
    ],
)
def test_ranges_of_nothing_but_halves_of_pairs(low: int, high: int, has_any: bool) -> None:
    assert has_characters(low, high) is has_any
    characters = [code for code in range(low, high + 1) if not 0xD800 <= code <= 0xDFFF]
    assert bool(characters) is has_any


@pytest.mark.parametrize("code", EDGES, ids=hex)
def test_a_pattern_of_one_character_is_that_character(code: int) -> None:
    """A set and its complement share every character between them."""
    written = f"\\u{{{code:x}}}" if code > 0xFFFF else f"\\u{code:04x}"
    shown = chr(code) if code > 0xFFFF else written
    one, others = compile_pattern(f"^[{shown}]$"), compile_pattern(f"^[^{shown}]$")
    assert one is not None
    assert others is not None
    for near in {max(code - 1, 0), code, min(code + 1, LAST_CODE)}:
        if not 0xD800 <= near <= 0xDFFF:
            assert one.matches(chr(near)) is (near == code)
            assert others.matches(chr(near)) is (near != code)


@pytest.mark.parametrize(("least", "most"), [(0, None), (2, None), (0, 3), (2, 3), (3, 3)])
def test_lengths(least: int, most: int | None) -> None:
    string = String(Counted(least, most))
    for length in range(6):
        allowed = least <= length and (most is None or length <= most)
        assert takes(string, ("€" * length).encode()) is allowed
    assert json.loads(string.shortest or b"") == "a" * least
