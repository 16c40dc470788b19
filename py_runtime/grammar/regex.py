r"""Patterns of a schema, in the part of ECMA-262's dialect that a finite automaton can follow.

Known are characters and escapes (\d \w \s \D \W \S \t \n \r \f \v \0 \xHH \uHHHH \u{H...} \p{L}),
`.`, classes, groups (capturing, named, (?:...)), alternation, the quantifiers ? * + {n} {n,}
{n,m} (lazy ones too, as they match the same texts) and the anchors ^ and $. A pattern is found
anywhere in the text, as JSON Schema says, unless it is anchored. Everything else is refused.
"""

import re
from functools import lru_cache

from py_runtime.grammar.finite_automata import Dfa, Nfa, TooComplexError, determinise
from py_runtime.grammar.limits import MAX_NFA_STATES
from py_runtime.tokens import characters
from py_runtime.tokens.character_sets import Dialect, SetParser
from py_runtime.tokens.characters import LAST_CODE, Ranges

_DIGITS = characters.ranges_of_text("0123456789")
_WORD = characters.union([(0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)])
_SPACE = characters.ranges_of_text(
    "\t\n\v\f\r \xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)
_ANY_BUT_LINE_ENDS = characters.complement(characters.ranges_of_text("\n\r\u2028\u2029"))
_ECMA = Dialect(
    hex_code=re.compile(r"x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|u\{([0-9A-Fa-f]{1,6})\}"),
    property=re.compile(r"([pP])\{()(\w+)\}"),
    any_case=False,
    named_sets={"d": lambda: _DIGITS, "w": lambda: _WORD, "s": lambda: _SPACE},
    control={"t": "\t", "n": "\n", "r": "\r", "f": "\f", "v": "\v", "0": "\0"},
)
_GROUP = re.compile(r"\((?:\?(?::|<[A-Za-z_$][\w$]*>))?(?!\?)")
_INTERVAL = re.compile(r"\{(\d+)(,?)(\d*)\}")
_MAX_GROUPS = 40  # inside one another

Fragment = tuple[int, int]  # first and last state of a part


@lru_cache(maxsize=64)
def compile_pattern(source: str) -> Dfa | None:
    """ValueError: what is not supported, by name. None: the pattern matches nothing."""
    try:
        return _Compiler(source).compile()
    except TooComplexError:
        raise ValueError("it is too complex") from None


class _Compiler(SetParser):
    """A pass over the pattern, which builds the automaton as it goes."""

    dialect = _ECMA

    def __init__(self, source: str) -> None:
        super().__init__(source)
        self.nfa = Nfa()
        self.open_groups = 0

    def compile(self) -> Dfa | None:
        start, final = self.nfa.state(), self.nfa.state()
        self.nfa.moves[start].append((0, LAST_CODE, start))  # found anywhere
        self.nfa.moves[final].append((0, LAST_CODE, final))
        first, last = self._alternation()
        if self.at < len(self.source):
            raise ValueError(f"there is no group that {self.next_char()!r} could close")
        self.nfa.steps[start].append(first)
        self.nfa.steps[last].append(final)
        return determinise(self.nfa, start, final)

    def _alternation(self) -> Fragment:
        first, last = self.nfa.state(), self.nfa.state()
        while True:
            branch_first, branch_last = self._sequence()
            self.nfa.steps[first].append(branch_first)
            self.nfa.steps[branch_last].append(last)
            if self.next_char() != "|":
                return first, last
            self.at += 1

    def _sequence(self) -> Fragment:
        first = last = self.nfa.state()
        while (char := self.next_char()) and char not in "|)":
            part_at = self.at
            part = self._atom(char)
            part = self._read_quantified(part, part_at)
            self.nfa.steps[last].append(part[0])
            last = part[1]
        return first, last

    def _atom(self, char: str) -> Fragment:
        if char == "(":
            return self._group()
        if char in "^$":
            return self._anchor(char)
        if char == "[":
            return self._set(self._read_set())
        if char == "\\":
            return self._set(self.read_escape())
        if char in "*+?{":
            raise ValueError(f"nothing stands before {char!r}")
        self.at += 1
        return self._set(_ANY_BUT_LINE_ENDS if char == "." else characters.ranges_of_text(char))

    def _set(self, ranges: Ranges) -> Fragment:
        first, last = self.nfa.state(), self.nfa.state()
        self.nfa.moves[first] = [(low, high, last) for low, high in ranges]
        return first, last

    def _anchor(self, char: str) -> Fragment:
        self.at += 1
        first, last = self.nfa.state(), self.nfa.state()
        (self.nfa.at_start if char == "^" else self.nfa.at_end)[first] = last
        return first, last

    def _group(self) -> Fragment:
        found = _GROUP.match(self.source, self.at)
        if not found:
            raise ValueError(f"the group {self.source[self.at : self.at + 4]!r} is not supported")
        if self.open_groups == _MAX_GROUPS:
            raise TooComplexError
        self.at = found.end()
        self.open_groups += 1
        part = self._alternation()
        if self.next_char() != ")":
            raise ValueError("a group is not closed")
        self.at += 1
        self.open_groups -= 1
        return part

    def _read_quantified(self, part: Fragment, part_at: int) -> Fragment:
        end_at = self.at
        interval = self._interval()
        if interval is None:
            return part
        after = self.at
        least, most = interval
        if self.source[part_at] in "^$":
            raise ValueError("a quantifier behind an anchor is not supported")

        def again() -> Fragment:
            """Read the same part once more."""
            self.at = part_at
            copy = self._atom(self.source[part_at])
            assert self.at == end_at
            return copy

        first = last = self.nfa.state()
        copies = most if most is not None else max(least, 1)
        optional: list[int] = []
        for count in range(copies):
            copy = part if count == 0 else again()
            if count >= least:
                optional.append(last)
            self.nfa.steps[last].append(copy[0])
            last = copy[1]
            if most is None and count == copies - 1:
                self.nfa.steps[last].append(copy[0])
        end = self.nfa.state()
        for state in (*optional, last):
            self.nfa.steps[state].append(end)
        self.at = after
        return first, end

    def _interval(self) -> tuple[int, int | None] | None:
        """Return how often the part before may stand, if a quantifier follows it."""
        char = self.next_char()
        if char and char in "*+?":
            self.at += 1
            interval: tuple[int, int | None] = {"*": (0, None), "+": (1, None), "?": (0, 1)}[char]
        elif found := _INTERVAL.match(self.source, self.at):
            self.at = found.end()
            least = _repeats(found[1])
            most = _repeats(found[3]) if found[3] else None if found[2] else least
            if most is not None and most < least:
                raise ValueError(f"{found[0]!r} runs backwards")
            interval = least, most
        else:
            return None
        if self.next_char() == "?":
            self.at += 1
        if (follows := self.next_char()) and follows in "*+?":
            raise ValueError(f"a second quantifier {follows!r} is not supported")
        return interval

    def _read_set(self) -> Ranges:
        self.at += 1
        inverted = self.next_char() == "^"
        self.at += inverted
        members: list[Ranges] = []
        while self.next_char() != "]":
            if not self.next_char():
                raise ValueError("a class is not closed with ]")
            members.append(self.read_member())
        self.at += 1
        ranges = characters.union(*members)
        return characters.complement(ranges) if inverted else ranges

    def read_character(self) -> Ranges:
        if self.source.startswith("\\b", self.at):  # a backspace, inside [...]
            self.at += 2
            return [(8, 8)]
        return super().read_character()


def _repeats(digits: str) -> int:
    """Each repeat is a state at the least: more of them need not be counted, nor their digits."""
    if len(digits) > len(str(MAX_NFA_STATES)) or int(digits) > MAX_NFA_STATES:
        raise TooComplexError
    return int(digits)
