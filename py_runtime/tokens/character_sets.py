"""Sets of characters as patterns write them: escapes, and what may stand inside [...].

The dialects of tokenizer.json (Oniguruma) and of JSON Schema (ECMA-262) differ here in a few tables
only. Whatever a dialect does not have is a ValueError that names it.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from py_runtime.tokens import characters
from py_runtime.tokens.characters import LAST_CODE, Ranges


@dataclass(frozen=True)
class Dialect:
    """A dialect's tables: the escapes that may follow a backslash."""

    hex_code: re.Pattern[str]  # one of its three groups holds the digits
    property: re.Pattern[str]  # groups: p or P, a ^ that inverts it, the category's name
    any_case: bool  # of a category's name
    named_sets: Mapping[str, Callable[[], Ranges]]  # a capital letter is all but these
    control: Mapping[str, str]


class SetParser:
    """A parser that goes along a pattern; `at` is the place it has reached."""

    dialect: Dialect

    def __init__(self, source: str) -> None:
        self.source = source
        self.at = 0

    def next_char(self) -> str:
        """Return the character at this place; "" at the end."""
        return self.source[self.at : self.at + 1]

    def read_escape(self) -> Ranges:
        """Read the escape at this place and return the characters it stands for."""
        self.at += 1
        if found := self.dialect.property.match(self.source, self.at):
            name = found[3].capitalize() if self.dialect.any_case else found[3]
            ranges = characters.category(name)
            if ranges is None:
                raise ValueError(f"\\{found[0]} is not supported")
            self.at = found.end()
            inverted = (found[1] == "P") != bool(found[2])
            return characters.complement(ranges) if inverted else ranges
        if found := self.dialect.hex_code.match(self.source, self.at):
            self.at = found.end()
            code = int(found[1] or found[2] or found[3], 16)
            if code > LAST_CODE:
                raise ValueError(f"\\{found[0]} is not a character")
            return [(code, code)]
        char = self.next_char()
        self.at += 1
        return self._escaped_letter(char)

    def _escaped_letter(self, char: str) -> Ranges:
        named = self.dialect.named_sets
        if char in named:
            return named[char]()
        if char and char.lower() in named:
            return characters.complement(named[char.lower()]())
        if char in self.dialect.control:
            if char == "0" and self.next_char().isdecimal():  # an octal number, elsewhere
                raise ValueError(f"\\0{self.next_char()} is not supported")
            return characters.ranges_of_text(self.dialect.control[char])
        if not char or (char.isascii() and char.isalnum()):
            raise ValueError(f"\\{char} is not supported")
        return characters.ranges_of_text(char)

    def read_member(self) -> Ranges:
        """Read one member of [...]: a character, an escape, or a range between two characters."""
        first = self.read_character()
        follows = self.source[self.at : self.at + 2]
        if len(follows) < 2 or follows[0] != "-" or follows[1] == "]":
            return first
        self.at += 1
        last = self.read_character()
        if any(len(ends) != 1 or ends[0][0] != ends[0][1] for ends in (first, last)):
            raise ValueError("a range between sets is not supported")
        if last[0][0] < first[0][0]:
            raise ValueError("a range runs backwards")
        return [(first[0][0], last[0][0])]

    def read_character(self) -> Ranges:
        """Read one character or escape of [...]."""
        if self.next_char() == "\\":
            return self.read_escape()
        self.at += 1
        return characters.ranges_of_text(self.source[self.at - 1])
