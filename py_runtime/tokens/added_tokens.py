"""Tokens that are found in the text as they stand, before anything else is done to it."""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from operator import itemgetter

from py_runtime.tokens import characters
from py_runtime.tokens.normalizers import Normalizer
from py_runtime.tokens.section import Section

_SPACES = re.compile(f"[{characters.WHITESPACE}]+")


@dataclass(frozen=True)
class AddedToken:
    """An added token of tokenizer.json, with the id it ends up with."""

    id: int
    content: str
    single_word: bool  # only where no letter stands beside it
    lstrip: bool  # takes the whitespace before it along
    rstrip: bool
    normalized: bool  # looked for in the normalised text, as the normalizer writes it
    special: bool


@dataclass(frozen=True)
class TextSpan:
    """A part of the text: either a token already, or text for the pre-tokenizer."""

    text: str
    token_id: int | None
    starts_text: bool


Span = tuple[int, int]  # first character, and the first behind it


class AddedTokens:
    """The added tokens of a file, which cut a text before the rest of it is normalised."""

    def __init__(self, tokens: list[AddedToken], normalise: Normalizer) -> None:
        self.normalise = normalise
        self.special = {token.content for token in tokens if token.special}
        self.as_written = {
            token.id: normalise(token.content) if token.normalized else token.content
            for token in tokens
        }
        written = [(self.as_written[token.id], token) for token in tokens]
        self._in_text = Finder({text: token for text, token in written if not token.normalized})
        normalised = {text: token for text, token in written if token.normalized}
        self._in_normalised = Finder(normalised)
        plain = {text: token for text, token in normalised.items() if not token.special}
        self._in_literal = Finder(plain)

    def split(self, text: str, literal: Sequence[Span] = ()) -> Iterator[TextSpan]:
        """Yield the tokens of a text and the normalised text between them.

        Special tokens are not looked for inside the `literal` spans, which ascend. Tokens that are
        found in normalised text, where places have moved, are not looked for anywhere near such a
        span.
        """
        at = 0
        for raw in self._in_text.split(text, True, literal):
            end = at + len(raw.text)
            if raw.token_id is not None:
                yield raw
            elif normalised := self.normalise(raw.text):
                finder = self._in_literal if touches(literal, at, end) else self._in_normalised
                yield from finder.split(normalised, raw.starts_text)
            at = end


class Finder:
    """A search for tokens from left to right, the longest first."""

    def __init__(self, tokens: dict[str, AddedToken]) -> None:
        self.tokens = {text: token for text, token in tokens.items() if text}
        longest_first = sorted(self.tokens, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest_first)))

    def split(
        self, text: str, starts_text: bool, literal: Sequence[Span] = ()
    ) -> Iterator[TextSpan]:
        if not self.tokens:
            yield TextSpan(text, None, starts_text)
            return
        at = 0
        for found in self._pattern.finditer(text):
            token = self.tokens[found[0]]
            start, end = found.span()
            if token.single_word and not stands_alone(text, start, end):
                continue
            if literal and token.special and touches(literal, start, end):
                continue
            if token.lstrip:
                start = at + len(text[at:start].rstrip(characters.WHITESPACE))
            if token.rstrip and (spaces := _SPACES.match(text, end)):
                end = spaces.end()
            if at < start:
                yield TextSpan(text[at:start], None, starts_text and at == 0)
            yield TextSpan(text[start:end], token.id, starts_text and start == 0)
            at = end
        if at < len(text):
            yield TextSpan(text[at:], None, starts_text and at == 0)


def touches(spans: Sequence[Span], start: int, end: int) -> bool:
    """Return whether text[start:end] has a character of one of the spans.

    The spans ascend and do not overlap, so that the last one that begins before `end` decides.
    """
    before = bisect_left(spans, end, key=itemgetter(0))
    return before > 0 and start < spans[before - 1][1]


def stands_alone(text: str, start: int, end: int) -> bool:
    """Return whether no letter or digit touches text[start:end]."""
    return not (
        (start > 0 and is_word(text[start - 1])) or (end < len(text) and is_word(text[end]))
    )


@cache
def is_word(char: str) -> bool:
    """Return whether the Rust regex engine takes this for a character of a word."""
    return any(first <= ord(char) <= last for first, last in characters.word_characters())


def read_added_tokens(sections: list[Section], vocabulary: dict[str, int]) -> list[AddedToken]:
    """Give each token the id it has in the vocabulary, or the next one after the vocabulary's."""
    tokens: dict[str, AddedToken] = {}
    next_id = len(vocabulary)
    for section in sections:
        content = section.get("content", str)
        if not content:
            continue
        known = tokens[content].id if content in tokens else vocabulary.get(content)
        if known is None:
            known, next_id = next_id, next_id + 1
        flags = (
            section.get(name, bool)
            for name in ("single_word", "lstrip", "rstrip", "normalized", "special")
        )
        tokens[content] = AddedToken(known, content, *flags)
    return list(tokens.values())
