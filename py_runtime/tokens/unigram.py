"""Unigram: from a word to the ids whose scores add up to the most, as SentencePiece has it."""

from math import isfinite
from typing import Any

from py_runtime.tokens.bpe import RememberedWords
from py_runtime.tokens.section import Section

PENALTY = 10.0  # of a character that no token has, below the lowest score


class UnigramModel:
    """The `model` of tokenizer.json; words that were encoded are remembered."""

    def __init__(self, section: Section) -> None:
        listed = section.get("vocab", list)
        if not listed or not all(map(_is_scored, listed)):
            raise section.error("vocab is no list of tokens with scores")
        self.vocabulary = {token: number for number, (token, _) in enumerate(listed)}
        section.refuse_surrogates("vocab", " ".join(self.vocabulary))
        self._scores = [float(score) for _, score in listed]
        self.longest_token = max(map(len, self.vocabulary), default=1)  # characters
        self._unknown = section.get("unk_id", int)
        if not 0 <= self._unknown < len(listed):
            raise section.error(f"unk_id is {self._unknown}, but there are {len(listed)} tokens")
        if section.get("byte_fallback", bool, False):
            raise section.error("byte_fallback is true, which is not supported")
        self._unknown_score = min(self._scores) - PENALTY
        self.ids_of = RememberedWords(self)

    def ids(self, word: str) -> list[int]:
        """Return the ids; characters that no token has are one unknown token a run."""
        found: list[int] = []
        end = len(word)
        begins, tokens = self._best_ends(word)
        while end:
            token = tokens[end]
            if not (token == self._unknown and found[-1:] == [self._unknown]):
                found.append(token)
            end = begins[end]
        return found[::-1]

    def _best_ends(self, word: str) -> tuple[list[int], list[int]]:
        """Return, for each end of a token, where it begins and which it is on the best way."""
        size = len(word)
        best: list[float | None] = [0.0, *[None] * size]
        begins, tokens = [0] * (size + 1), [self._unknown] * (size + 1)
        known = self.vocabulary
        for begin in range(size):
            so_far = best[begin]
            assert so_far is not None, "each character ends a token, known or not"
            for end in range(begin + 1, min(size, begin + self.longest_token) + 1):
                token = known.get(word[begin:end])
                if token is None and end > begin + 1:
                    continue
                own = self._unknown_score if token is None else self._scores[token]
                score, held = so_far + own, best[end]
                if held is None or score > held:
                    best[end], begins[end] = score, begin
                    tokens[end] = self._unknown if token is None else token
        return begins, tokens


def _is_scored(item: Any) -> bool:
    """Tell whether an item of the vocabulary is a token with a score."""
    if not isinstance(item, list) or len(item) != 2 or not isinstance(item[0], str):
        return False
    return type(item[1]) in (int, float) and isfinite(item[1])
