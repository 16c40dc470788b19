"""The decoders of tokenizer.json, each as a stage that tokens flow through.

A stage holds back what later tokens may still change, so decoding as ids arrive and decoding all at
once are the same thing.
"""

import codecs
import re
from collections.abc import Callable, Iterable
from typing import Protocol

from py_runtime.tokens.byte_level import bytes_of
from py_runtime.tokens.patterns import Pattern
from py_runtime.tokens.pre_tokenizers import prepend_scheme
from py_runtime.tokens.section import Section


class Stage(Protocol):
    """A stage that tokens go into and text comes out of, as soon as it is certain."""

    def push(self, tokens: list[str]) -> list[str]:
        """Take these tokens and return what comes out of the stage."""

    def finish(self) -> list[str]:
        """Return what was held back, now that no token follows."""


MakeStage = Callable[[], Stage]


class TokenDecoder:
    """A decoding in progress."""

    def __init__(self, stages: Iterable[Stage]) -> None:
        self.stages = list(stages)

    def push(self, tokens: list[str]) -> str:
        return self._through(tokens, 0)

    def finish(self) -> str:
        parts = [
            self._through(stage.finish(), index + 1) for index, stage in enumerate(self.stages)
        ]
        return "".join(parts)

    def _through(self, tokens: list[str], first: int) -> str:
        for stage in self.stages[first:]:
            tokens = stage.push(tokens)
        return "".join(tokens)


def build_decoder(section: Section | None) -> Callable[[], TokenDecoder]:
    """Return a function that starts a decoding."""
    makers = [SpaceJoiner] if section is None else make_stages(flatten(section))
    return lambda: TokenDecoder(make() for make in makers)


def flatten(section: Section) -> list[Section]:
    """Return the stages of nested sequences, in order."""
    if section.kind != "Sequence":
        return [section]
    return [inner for part in section.sections("decoders") for inner in flatten(part)]


def make_stages(sections: list[Section]) -> list[MakeStage]:
    """Makers, as every answer needs stages of its own."""
    makers: list[MakeStage] = []
    fused = False  # whether all tokens so far make one
    for section in sections:
        if fused and section.kind not in ("Fuse", "Strip"):
            makers.append(TokenJoiner)
        if section.kind == "Fuse":
            fused = True
            continue
        makers.append(stage_maker(section, fused))
        fused = fused or section.kind == "ByteLevel"
    return makers


def stage_maker(section: Section, fused: bool) -> MakeStage:
    """`fused`: all tokens so far count as one. TokenizerError for an unknown kind."""
    match section.kind:
        case "ByteLevel":
            return ByteLevel
        case "ByteFallback":
            return ByteFallback
        case "Replace":
            pattern = Pattern.from_section(Section.of(section.where, section.fields.get("pattern")))
            content = section.get("content", str)
            return lambda: Replace(pattern, content)
        case "Strip":
            if section.get("stop", int):
                raise section.error("Strip with a stop other than 0 is not supported")
            char, count = section.get("content", str), section.get("start", int)
            return lambda: StripStart(char, count, fused)
        case "WordPiece":
            prefix, cleans = section.get("prefix", str), section.get("cleanup", bool)
            return lambda: WordPiece(prefix, cleans)
        case "Metaspace":
            sign, keeps_first = section.get("replacement", str), prepend_scheme(section) == "never"
            return lambda: Metaspace(sign, keeps_first)
        case _:
            raise section.unsupported()


class StatelessStage:
    """A stage that holds nothing back."""

    def finish(self) -> list[str]:
        return []


class SpaceJoiner(StatelessStage):
    """The stage for a file that names no decoder: tokens have spaces between them."""

    def __init__(self) -> None:
        self._gap = ""

    def push(self, tokens: list[str]) -> list[str]:
        if not tokens:
            return []
        gap, self._gap = self._gap, " "
        return [gap + " ".join(tokens)]


class ByteLevel:
    """A stage from letters to bytes to text; bytes that are not UTF-8 become U+FFFD."""

    def __init__(self) -> None:
        self._utf8 = codecs.getincrementaldecoder("utf-8")("replace")

    def push(self, tokens: list[str]) -> list[str]:
        return [self._utf8.decode(b"".join(map(bytes_of, tokens)))]

    def finish(self) -> list[str]:
        return [self._utf8.decode(b"", final=True)]


class ByteFallback:
    """A stage from tokens such as <0x0A> to text; a run that is not UTF-8 gives one U+FFFD each."""

    _TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")

    def __init__(self) -> None:
        self._run = bytearray()

    def push(self, tokens: list[str]) -> list[str]:
        made: list[str] = []
        for token in tokens:
            if found := self._TOKEN.fullmatch(token):
                self._run.append(int(found[1], 16))
            else:
                made += self.finish()
                made.append(token)
        return made

    def finish(self) -> list[str]:
        if not self._run:
            return []
        run, self._run = bytes(self._run), bytearray()
        try:
            return [run.decode()]
        except UnicodeDecodeError:
            return ["\ufffd"] * len(run)


class Replace(StatelessStage):
    """A stage that replaces a pattern in each token by itself."""

    def __init__(self, pattern: Pattern, content: str) -> None:
        self.pattern = pattern
        self.content = content

    def push(self, tokens: list[str]) -> list[str]:
        return [self.pattern.replace(token, self.content) for token in tokens]


class StripStart(StatelessStage):
    """A stage that strips up to `count` of a character off each token's start, or the text's."""

    def __init__(self, char: str, count: int, whole_text: bool) -> None:
        self.char = char
        self.count = count
        self.whole_text = whole_text

    def push(self, tokens: list[str]) -> list[str]:
        return [self._strip(token) for token in tokens] if self.count else tokens

    def _strip(self, token: str) -> str:
        cut = 0
        while cut < min(self.count, len(token)) and token[cut] == self.char:
            cut += 1
        if self.whole_text and token:
            self.count = self.count - cut if cut == len(token) else 0
        return token[cut:]


class Metaspace(StatelessStage):
    """A stage that turns signs into spaces, without those that the encoder put before the first."""

    def __init__(self, sign: str, keeps_first: bool) -> None:
        self.sign = sign
        self._at_start = not keeps_first

    def push(self, tokens: list[str]) -> list[str]:
        made = [token.replace(self.sign, " ") for token in tokens]
        if tokens and self._at_start:
            made[0] = tokens[0].replace(self.sign, "")
            self._at_start = False
        return made


class WordPiece(StatelessStage):
    """A stage that puts spaces before tokens, but for those that go on with a word."""

    # What `tokenizers` writes without the space that the encoder had cut off, in this order.
    _CLEANED = (
        *((f" {mark}", mark) for mark in ".?!,"),
        (" ' ", "'"),
        (" n't", "n't"),
        (" 'm", "'m"),
        (" do not", " don't"),
        *((f" {ending}", ending) for ending in ("'s", "'ve", "'re")),
    )

    def __init__(self, prefix: str, cleans: bool) -> None:
        self._prefix = prefix
        self._cleans = cleans
        self._at_start = True

    def push(self, tokens: list[str]) -> list[str]:
        return [self._joined(token) for token in tokens]

    def _joined(self, token: str) -> str:
        if not self._at_start:
            is_inside = bool(self._prefix) and token.startswith(self._prefix)
            token = token[len(self._prefix) :] if is_inside else f" {token}"
        self._at_start = False
        for found, written in self._CLEANED if self._cleans else ():
            token = token.replace(found, written)
        return token


class TokenJoiner:
    """A stage that hands all tokens on as one, for a stage that must see them so."""

    def __init__(self) -> None:
        self._tokens: list[str] = []

    def push(self, tokens: list[str]) -> list[str]:
        self._tokens += tokens
        return []

    def finish(self) -> list[str]:
        return ["".join(self._tokens)]
