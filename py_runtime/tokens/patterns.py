r"""Patterns of tokenizer.json, which are in Oniguruma's dialect, run by Python's `re`.

`re` does not have \p{...}, and its \s, \d and \w follow Python's own version of Unicode. So every
set of characters is written out as ranges. Long sets are slow to build and to search, so a pattern
has a short form for texts in plain ASCII, and its full form is made when a text needs it.
"""

import re
from collections.abc import Iterator
from functools import cached_property

from py_runtime.tokens import characters
from py_runtime.tokens.backtracking import bounded_runs
from py_runtime.tokens.character_sets import Dialect, SetParser
from py_runtime.tokens.characters import Ranges
from py_runtime.tokens.errors import TextError, TokenizerError
from py_runtime.tokens.section import Section

ASCII, ALL = 0x7F, characters.LAST_CODE
MAX_SOURCE = 200_000  # characters of a pattern; those of files have hundreds
MAX_RUN = 1 << 14  # characters, where a pattern tries again at each of them

_INTERVAL = re.compile(r"\{(\d*)(,?)(\d*)\}(\??)(\+?)")
_GROUP = re.compile(r"\((?:\?(?:[:=!>]|<[=!]|i:)|(?!\?))")
_ANCHORS = {
    "^": r"(?:\A|(?<=\n)(?!\Z))",  # lines, not the whole text, as in Ruby
    "$": r"(?=\n|\Z)",
    r"\A": r"\A",
    r"\z": r"\Z",
    r"\Z": r"(?=\n?\Z)",
}
_ONIGURUMA = Dialect(
    hex_code=re.compile(r"x([0-9A-Fa-f]{2})|x\{([0-9A-Fa-f]{1,6})\}|u([0-9A-Fa-f]{4})"),
    property=re.compile(r"([pP])\{(\^?)(\w+)\}"),
    any_case=True,
    named_sets={
        "s": lambda: characters.ranges_of_text(characters.WHITESPACE),
        "d": lambda: characters.categories("Nd"),
        "w": characters.oniguruma_word_characters,
        "h": lambda: characters.HEX_DIGITS,
    },
    control={"n": "\n", "r": "\r", "t": "\t", "f": "\f", "v": "\v", "a": "\a", "e": "\x1b"},
)


class Compiled:
    """A pattern compiled for texts up to some character."""

    def __init__(self, source: str, limit: int, repeats: bool) -> None:
        translated = Translator(source, limit).translate()
        self.pattern = re.compile(translated)
        runs = bounded_runs(translated) if repeats else []
        self.long_runs = [re.compile(f"{write_set(run)}{{{MAX_RUN}}}") for run in runs]


class Pattern:
    """A pattern that finds what Oniguruma would find, in the order it would."""

    repeats = True  # whether parts of it may be repeated

    def __init__(self, source: str, where: str = "the pattern") -> None:
        self.source = source
        self.where = where
        _ = self._for_ascii  # a pattern that cannot be used is an error when the file is loaded

    @classmethod
    def from_section(cls, section: Section) -> "Pattern":
        """Build a pattern from an object such as {"Regex": "..."} or {"String": "..."}."""
        match section.fields:
            case {"Regex": str(source)}:
                return cls(source, section.where)
            case {"String": str(text)}:
                return Literal(text)
        raise section.error("is neither a Regex nor a String")

    def find_all(self, text: str) -> list[str]:
        return self._compiled_for(text).findall(text)

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Start and end of each match. None is empty right behind another."""
        if not text:
            return  # not even an empty match
        last_end = -1
        for found in self._compiled_for(text).finditer(text):
            start, end = found.span()
            if start != end or end != last_end:
                yield start, end
                last_end = end

    def replace(self, text: str, content: str) -> str:
        parts: list[str] = []
        at = 0
        for start, end in self.spans(text):
            parts += (text[at:start], content)
            at = end
        return "".join([*parts, text[at:]])

    def _compiled_for(self, text: str) -> re.Pattern[str]:
        compiled = self._for_ascii if text.isascii() else self._for_all
        for run in compiled.long_runs:
            if found := run.search(text):
                raise TextError(
                    f"the text has a run of {MAX_RUN} characters such as {found[0][:3]!r}, over "
                    "which this tokenizer would take too long "
                    f"({self.where}: {short_pattern(self.source)})"
                )
        return compiled.pattern

    @cached_property
    def _for_ascii(self) -> Compiled:
        return self._compile(ASCII)

    @cached_property
    def _for_all(self) -> Compiled:
        return self._compile(ALL)

    def _compile(self, limit: int) -> Compiled:
        try:
            if len(self.source) > MAX_SOURCE:
                raise ValueError(f"there are more than {MAX_SOURCE} characters")
            return Compiled(self.source, limit, self.repeats)
        except (ValueError, OverflowError, re.error) as error:
            fault = str(error)
        except RecursionError:
            fault = "it is nested too deeply"
        raise TokenizerError(
            f"tokenizer.json: {self.where}: {fault} in {short_pattern(self.source)}"
        )


class Literal(Pattern):
    """A text that stands for itself."""

    repeats = False

    def __init__(self, text: str) -> None:
        self.text = text
        super().__init__("".join(f"\\x{{{ord(char):x}}}" for char in text))

    def replace(self, text: str, content: str) -> str:
        return text.replace(self.text, content)


class Translator(SetParser):
    """A pass over a pattern; whatever it does not know is a ValueError that names it."""

    dialect = _ONIGURUMA

    def __init__(self, source: str, limit: int) -> None:
        super().__init__(source)
        self.limit = limit  # no text will have a character beyond it

    def translate(self) -> str:
        if self.source.startswith("(?i)"):
            self.at = len("(?i)")
            return f"(?i:{self._sequence()})"
        return self._sequence()

    def _sequence(self) -> str:
        parts: list[str] = []
        opened: list[int] = []  # where in `parts` each open group begins
        atom = 0  # where in `parts` the thing before a quantifier begins
        while self.at < len(self.source):
            char = self.source[self.at]
            if char == ")" and opened:
                atom = opened.pop()
                self.at += 1
                parts.append(char)
            elif char == "{" and (interval := _INTERVAL.match(self.source, self.at)):
                self.at = interval.end()
                parts[atom:] = [quantified("".join(parts[atom:]), interval)]
            elif char in "*+?":
                self.at += 1
                parts.append(char)
            else:
                atom = len(parts)
                if char == "(":
                    opened.append(atom)
                parts.append(self._atom(char))
        return "".join(parts)

    def _atom(self, char: str) -> str:
        if char == "(":
            return self._group()
        if char == "[":
            return self._translate_set()
        if char == "\\":
            return self._translate_escape()
        self.at += 1
        if char in _ANCHORS:
            return _ANCHORS[char]
        return char if char in "|.)" else re.escape(char)

    def _group(self) -> str:
        found = _GROUP.match(self.source, self.at)
        if not found:
            raise ValueError(f"the group {self.source[self.at : self.at + 4]!r} is not supported")
        self.at = found.end()
        return "(?:" if found[0] == "(" else found[0]  # nobody asks what a group captured

    def _translate_escape(self) -> str:
        anchor = self.source[self.at : self.at + 2]
        if anchor in _ANCHORS:
            self.at += 2
            return _ANCHORS[anchor]
        return self._write_set(self.read_escape())

    def _translate_set(self) -> str:
        self.at += 1
        inverted = self.source.startswith("^", self.at)
        self.at += inverted
        members: list[Ranges] = []
        first_at = self.at
        while True:
            rest = self.source[self.at :]
            if rest.startswith("]") and self.at > first_at:
                self.at += 1
                return self._write_set(characters.union(*members), inverted)
            if not rest or rest.startswith(("[", "&&")):
                what = repr(rest[:2]) if rest else "a missing ]"
                raise ValueError(f"{what} inside [...] is not supported")
            members.append(self.read_member())

    def _write_set(self, ranges: Ranges, inverted: bool = False) -> str:
        """Ranges in the form of `re`, as far as the texts go."""
        near = characters.ranges_up_to(ranges, self.limit)
        if not near:  # [] is not a set to `re`; nor does a text hold any other character
            near, inverted = [(0, ALL)], not inverted
        return write_set(near, inverted)


def write_set(ranges: Ranges, inverted: bool = False) -> str:
    """Write a set in the form of `re`."""
    body = "".join(
        write_character(first)
        if first == last
        else f"{write_character(first)}-{write_character(last)}"
        for first, last in ranges
    )
    return f"[{'^' * inverted}{body}]"


def write_character(code: int) -> str:
    """Write a character so that it stands for itself in a pattern of `re`."""
    return re.escape(chr(code))


def quantified(atom: str, interval: re.Match[str]) -> str:
    """{2,5}+ says "once or more of {2,5}" in this dialect, unlike in the others."""
    low, comma, high, lazy, repeated = interval.groups()
    if not (low or high) or (lazy and not comma):
        raise ValueError(f"{interval[0]!r} is not supported")
    counted = f"{atom}{{{low}{comma}{high}}}{lazy}"
    return f"(?:{counted})+" if repeated else counted


def short_pattern(source: str) -> str:
    """Quote a pattern for a message, no more than 200 characters of it."""
    return repr(source if len(source) <= 200 else f"{source[:200]}…")
