"""Regular expressions by backtracking, as browsers match them: counts the characters looked at."""

import importlib
import sys
import warnings
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

parser: Any = importlib.import_module("re._parser")

Then = Callable[[int], bool]  # whether the rest matches from there
KINDS: dict[str, Callable[[str], bool]] = {
    "CATEGORY_SPACE": str.isspace,
    "CATEGORY_DIGIT": str.isdigit,
    "CATEGORY_WORD": lambda letter: letter.isalnum() or letter == "_",
}
DEEP = 20_000  # calls: a repetition takes a few for each of its characters


def steps_of(pattern: str, flags: str, text: str) -> int:
    """Count what a search for JavaScript's `pattern` looks at, from every place in `text`."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(DEEP)
    try:
        return Search(pattern, flags, text).steps
    finally:
        sys.setrecursionlimit(before)


@cache
def parsed(pattern: str) -> Sequence[Any]:
    with warnings.catch_warnings(action="ignore"):  # of `[[`, which Python may read otherwise
        return list(parser.parse(pattern.replace("[^]", r"[\s\S]")))


class Search:
    """A search for the first match."""

    def __init__(self, pattern: str, flags: str, text: str) -> None:
        nodes = parsed(pattern)
        self.steps = 0
        self._is_multiline = "m" in flags
        self._is_folded = "i" in flags
        self._text = text.lower() if self._is_folded else text
        for start in range(len(text) + 1):
            if self._match(nodes, start, lambda at: True):
                break

    def _match(self, nodes: Sequence[Any], at: int, then: Then) -> bool:
        if not nodes:
            return then(at)
        (kind, value), rest = nodes[0], nodes[1:]
        match str(kind):
            case "LITERAL" | "NOT_LITERAL" | "ANY" | "IN":
                return self._is_one(nodes[0], at) and self._match(rest, at + 1, then)
            case "SUBPATTERN":
                return self._match([*value[-1], *rest], at, then)
            case "BRANCH":
                return any(self._match([*way, *rest], at, then) for way in value[1])
            case "AT":
                return self._is_at(str(value), at) and self._match(rest, at, then)
            case "ASSERT" | "ASSERT_NOT":
                direction, inner = value
                start = at + min(direction, 0) * inner.getwidth()[0]
                found = start >= 0 and self._match(list(inner), start, lambda end: True)
                return found == (str(kind) == "ASSERT") and self._match(rest, at, then)
            case "MAX_REPEAT" | "MIN_REPEAT":
                least, most, inner = value
                is_greedy = str(kind) == "MAX_REPEAT"
                return self._repeat(
                    list(inner),
                    least,
                    most,
                    is_greedy,
                    at,
                    lambda end: self._match(rest, end, then),
                )
        raise AssertionError(f"{kind} is not known here")

    def _repeat(
        self, inner: Sequence[Any], least: Any, most: Any, is_greedy: bool, at: int, then: Then
    ) -> bool:
        def once_more(end: int) -> bool:
            if end == at and least <= 0:
                return False  # nothing was taken
            return self._repeat(inner, least - 1, most - 1, is_greedy, end, then)

        if least > 0:
            return self._match(inner, at, once_more)
        if most <= 0:
            return then(at)
        if is_greedy:
            return self._match(inner, at, once_more) or then(at)
        return then(at) or self._match(inner, at, once_more)

    def _is_at(self, place: str, at: int) -> bool:
        match place:
            case "AT_BEGINNING":
                return at == 0 or (self._is_multiline and self._text[at - 1] == "\n")
            case "AT_END":
                return at == len(self._text) or (self._is_multiline and self._text[at] == "\n")
            case "AT_BOUNDARY":
                sides = [self._text[max(0, at - 1) : at], self._text[at : at + 1]]
                before, after = [bool(side) and KINDS["CATEGORY_WORD"](side) for side in sides]
                return before != after
        raise AssertionError(f"{place} is not known here")

    def _is_one(self, node: Any, at: int) -> bool:
        self.steps += 1
        if at == len(self._text):
            return False
        kind, value = node
        letter = self._text[at]
        match str(kind):
            case "LITERAL":
                return letter == self._folded(value)
            case "NOT_LITERAL":
                return letter != self._folded(value)
            case "ANY":
                return letter != "\n"
        is_negated = str(value[0][0]) == "NEGATE"
        return any(self._is_in(each, letter) for each in value[is_negated:]) != is_negated

    def _is_in(self, member: Any, letter: str) -> bool:
        kind, value = member
        match str(kind):
            case "LITERAL":
                return letter == self._folded(value)
            case "RANGE":
                return self._folded(value[0]) <= letter <= self._folded(value[1])
        name = str(value)
        if "_NOT_" in name:
            return not KINDS[name.replace("_NOT_", "_")](letter)
        return KINDS[name](letter)

    def _folded(self, code: int) -> str:
        return chr(code).lower() if self._is_folded else chr(code)
