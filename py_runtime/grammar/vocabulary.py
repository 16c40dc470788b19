"""The vocabulary as bytes: what each token adds in the middle of a text, and a tree of them all."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from py_runtime.base.errors import RequestError
from py_runtime.grammar.limits import PARAM
from py_runtime.tokens import Tokenizer, decoders
from py_runtime.tokens.byte_level import bytes_of

_BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_NOT_PLAIN = re.compile(r'[\x00-\x1f"\\]')
_LONGEST_SPELLED = 24  # bytes of a token that spelling looks for
_PIECE = 128  # bytes that are spelled together
_MAX_SPELLINGS = 50_000
IMPOSSIBLE = 1 << 30  # tokens for a text that the vocabulary cannot spell


@dataclass(frozen=True)
class Level:
    """Prefixes of one length, in the order of their bytes."""

    bytes: np.ndarray  # uint8 [prefixes], the last byte of each
    parents: np.ndarray  # int32 [prefixes], which prefix of the level before it goes on from
    tokens: np.ndarray  # int32, the tokens that end at this level
    token_prefixes: np.ndarray  # int32, where in this level each of them ends


class TokenTexts:
    """The text of every token, built once a tokenizer.

    `size` is the width of the model's logits.
    """

    def __init__(self, tokenizer: Tokenizer, size: int, end_tokens: Iterable[int]) -> None:
        self.size = size
        self.end_tokens = np.array(sorted({each for each in end_tokens if each < size}), np.int64)
        self.texts = token_bytes(tokenizer, size)
        for token in self.end_tokens.tolist():
            self.texts.pop(token, None)
        self.levels = build_levels(self.texts)
        odd = {token: text for token, text in self.texts.items() if not is_plain(text)}
        self.odd_levels = build_levels(odd)
        self.plain_tokens = np.array(sorted(self.texts.keys() - odd.keys()), np.int64)
        self.longest = len(self.levels)
        self._tokens_of = {text: token for token, text in reversed(self.texts.items())}
        self._lengths = sorted({min(len(text), _LONGEST_SPELLED) for text in self.texts.values()})
        # The ends of texts → how many tokens they take, and the length of the first.
        self._spellings: dict[bytes, tuple[int, int]] = {b"": (0, 0)}
        self.changed_at_start = self._changed_at_start(tokenizer)
        self.compiled: dict[str, Any] = {}  # automata of the schemas asked for last

    def spell(self, text: bytes) -> list[int] | None:
        """Write the text in few tokens; None if some byte of it has no token."""
        tokens: list[int] = []
        for piece in pieces(text):
            self._find_spellings(piece)
            while piece:
                length = self._spellings[piece][1]
                if not length:
                    return None
                tokens.append(self._tokens_of[piece[:length]])
                piece = piece[length:]
        return tokens

    def cost(self, text: bytes) -> int:
        """Return how many tokens it takes to write the text."""
        total = 0
        for piece in pieces(text):
            self._find_spellings(piece)
            total += self._spellings[piece][0]
        return min(total, IMPOSSIBLE)

    def _find_spellings(self, piece: bytes) -> None:
        """Find the cheapest spelling of the piece and of all its endings; most texts end alike."""
        known = self._spellings
        if len(known) > _MAX_SPELLINGS:
            known.clear()
            known[b""] = (0, 0)
        unknown = next(at for at in range(len(piece) + 1) if piece[at:] in known)
        for at in reversed(range(unknown)):
            best = (IMPOSSIBLE, 0)
            for length in self._lengths:
                if at + length > len(piece):
                    break
                if piece[at : at + length] in self._tokens_of:
                    cost = known[piece[at + length :]][0] + 1
                    if cost < best[0]:
                        best = (cost, length)
            known[piece[at:]] = best

    def _changed_at_start(self, tokenizer: Tokenizer) -> np.ndarray:
        """Tokens that cannot come first: there, some decoders drop spaces inside them."""
        if not any(isinstance(s, decoders.Metaspace) for s in tokenizer._start_decoding().stages):
            return np.zeros(0, np.int64)
        spaced = [token for token, text in self.texts.items() if b" " in text.lstrip(b" ")]
        changed = []
        for token in spaced:
            first = decode_token(tokenizer._tokens[token], tokenizer._start_decoding().stages)
            if first is None or first.lstrip(b" ") != self.texts[token].lstrip(b" "):
                changed.append(token)
        return np.array(changed, np.int64)


def pieces(text: bytes) -> list[bytes]:
    """Cut so that texts with the same end have the same last pieces."""
    first = len(text) % _PIECE
    rest = [text[at : at + _PIECE] for at in range(first, len(text), _PIECE)]
    return [text[:first], *rest] if first else rest


def token_bytes(tokenizer: Tokenizer, size: int) -> dict[int, bytes]:
    """Each token's bytes; tokens that stand for no text (special and added ones) are left out."""
    stages = tokenizer._start_decoding().stages
    if any(isinstance(stage, decoders.SpaceJoiner | decoders.TokenJoiner) for stage in stages):
        raise RequestError(
            f"{PARAM}: this model's tokenizer does not say which bytes a token stands for, "
            "so its output cannot be constrained",
            PARAM,
        )
    for stage in stages:
        stage.push(["x"])  # from here on the stages are in the middle of a text
    left_out = {*tokenizer._added.as_written, tokenizer._model._unknown}
    found: dict[int, bytes] = {}
    for token, letters in tokenizer._tokens.items():
        if token >= size or token in left_out:
            continue
        text = decode_token(letters, stages)
        if text:
            found[token] = text
    return found


class TokenBytes:
    """The bytes of single tokens in the middle of a text, looked up when they are asked for."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._stages = tokenizer._start_decoding().stages
        for stage in self._stages:
            stage.push(["x"])  # from here on the stages are in the middle of a text
        self._known: dict[int, bytes] = {}

    def of(self, token: int) -> bytes:
        """Return a token's bytes; those of one that stands for no text are its name."""
        if token not in self._known:
            letters = self._tokenizer._tokens.get(token, "")
            is_text = letters not in self._tokenizer.control_tokens
            found = decode_token(letters, self._stages) if is_text else None
            self._known[token] = letters.encode() if found is None else found
        return self._known[token]

    def is_special(self, token: int) -> bool:
        """Return whether it is a control token, which stands for no text."""
        return self._tokenizer._tokens.get(token) in self._tokenizer.control_tokens


def decode_token(letters: str, stages: Sequence[decoders.Stage]) -> bytes | None:
    """Return the bytes that a decoder makes of one token, even if they are no whole character."""
    for stage in stages:
        if isinstance(stage, decoders.ByteLevel):
            return bytes_of(letters)
        if isinstance(stage, decoders.ByteFallback):
            if found := _BYTE_TOKEN.fullmatch(letters):
                return bytes([int(found[1], 16)])
        else:
            letters = "".join(stage.push([letters]))
    try:
        return letters.encode()
    except UnicodeEncodeError:
        return None


def is_plain(text: bytes) -> bool:
    """Return whether the text is whole characters that a JSON string holds unescaped."""
    try:
        return not _NOT_PLAIN.search(text.decode())
    except UnicodeDecodeError:
        return False


def build_levels(texts: dict[int, bytes]) -> list[Level]:
    """Return the tokens' prefixes of one byte, of two, and so on.

    Each points to the one before it.
    """
    if not texts:
        return []
    ordered = sorted(texts.items(), key=lambda pair: pair[1])
    tokens = np.array([token for token, _ in ordered], np.int32)
    lengths = np.array([len(text) for _, text in ordered], np.int32)
    longest = int(lengths.max())
    padded = np.array([text for _, text in ordered], f"S{longest}")
    letters = padded.view(np.uint8).reshape(len(ordered), longest)  # [tokens, bytes]
    shared = np.zeros(len(ordered), np.int32)  # bytes in common with the token before
    same = np.logical_and.accumulate(letters[1:] == letters[:-1], axis=1).sum(axis=1)
    shared[1:] = np.minimum(same, np.minimum(lengths[1:], lengths[:-1]))
    levels: list[Level] = []
    before = np.zeros(len(ordered), np.int32)  # [tokens], their prefixes in the level before
    for depth in range(longest):
        begins = (shared <= depth) & (lengths > depth)  # a prefix that no token before has
        numbers = np.cumsum(begins, dtype=np.int32) - 1  # [tokens], the last prefix so far
        ends = lengths == depth + 1
        levels.append(Level(letters[begins, depth], before[begins], tokens[ends], numbers[ends]))
        before = numbers
    return levels
