"""Byte-pair encoding: from a word to ids, by the merges in the order they were learnt."""

import re
from contextlib import suppress
from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import Protocol

from py_runtime.tokens.section import Section

SPACE_SIGN = "▁"
# A run of space signs with the text behind it, up to the next run.
_BEFORE_SPACES = re.compile(f"{SPACE_SIGN}+[^{SPACE_SIGN}]*|[^{SPACE_SIGN}]+")

GONE = -1  # no token has this id
_MAX_REMEMBERED = 20_000  # words
_MAX_REMEMBERED_LENGTH = 256  # characters


class BpeModel:
    """The `model` of tokenizer.json; words that were encoded are remembered."""

    def __init__(self, section: Section) -> None:
        if section.get("type", str, "BPE") != "BPE":
            raise section.unsupported()
        self.vocabulary = read_vocabulary(section)
        self.longest_token = max(map(len, self.vocabulary), default=1)  # characters
        self._prefix = section.get("continuing_subword_prefix", str, "")
        self._suffix = section.get("end_of_word_suffix", str, "")
        self._ignore_merges = section.get("ignore_merges", bool, False)
        self._byte_fallback = section.get("byte_fallback", bool, False)
        self._fuse_unknown = section.get("fuse_unk", bool, False)
        self._unknown = self._read_unknown(section)
        self._read_merges(section)
        self._splits_before_spaces = self._no_token_crosses_spaces()
        self.ids_of = RememberedWords(self)

    def ids(self, word: str) -> list[int]:
        if self._ignore_merges and word in self.vocabulary:
            return [self.vocabulary[word]]
        if self._splits_before_spaces:
            parts = _BEFORE_SPACES.findall(word)
            if len(parts) > 1:
                return [token_id for part in parts for token_id in self.ids_of[part]]
        return self.merge(self._symbols(word))

    def merge(self, symbols: list[int]) -> list[int]:
        """Merge the pair of lowest rank, the leftmost first, until no pair is left.

        A heap of pairs over a linked list of symbols takes n log n steps, however long the word.
        """
        count = len(symbols)
        ranks = self._ranks
        # A pair in the heap is rank * count + index of its left symbol.
        heap = [
            ranks[pair] * count + index
            for index, pair in enumerate(pairwise(symbols))
            if pair in ranks
        ]
        heapify(heap)
        before = list(range(-1, count - 1))
        after = list(range(1, count + 1))
        while heap:
            rank, left = divmod(heappop(heap), count)
            right = after[left]
            if right == count or ranks.get((symbols[left], symbols[right])) != rank:
                continue  # one of the two was merged with another meanwhile
            symbols[left] = self._merged[rank]
            symbols[right] = GONE
            follower = after[left] = after[right]
            if follower < count:
                before[follower] = left
                new_rank = ranks.get((symbols[left], symbols[follower]))
                if new_rank is not None:
                    heappush(heap, new_rank * count + left)
            if before[left] >= 0:
                new_rank = ranks.get((symbols[before[left]], symbols[left]))
                if new_rank is not None:
                    heappush(heap, new_rank * count + before[left])
        return [symbol for symbol in symbols if symbol != GONE]

    def _symbols(self, word: str) -> list[int]:
        """Return the ids of single characters."""
        if not (self._prefix or self._suffix):
            with suppress(KeyError):
                return [self.vocabulary[char] for char in word]
        return self._symbols_or_bytes(word)

    def _symbols_or_bytes(self, word: str) -> list[int]:
        """Return the ids of characters with affixes.

        Those without an id become bytes, or unknown.
        """
        known = self.vocabulary
        symbols: list[int] = []
        pending_unknown = False
        for index, char in enumerate(word):
            text = self._prefix + char if index else char
            if index == len(word) - 1:
                text += self._suffix
            token_id = known.get(text)
            if token_id is not None:
                if pending_unknown:
                    symbols.append(self._unknown)
                    pending_unknown = False
                symbols.append(token_id)
                continue
            if self._byte_fallback and (in_bytes := self._bytes_of(text)):
                symbols += in_bytes
            elif self._unknown != GONE:
                if pending_unknown and not self._fuse_unknown:
                    symbols.append(self._unknown)
                pending_unknown = True
        if pending_unknown:
            symbols.append(self._unknown)
        return symbols

    def _bytes_of(self, text: str) -> list[int]:
        """Ids of the tokens for single bytes; none if one of them is not in the vocabulary."""
        tokens = [f"<0x{byte:02X}>" for byte in text.encode()]
        found = [self.vocabulary[token] for token in tokens if token in self.vocabulary]
        return found if len(found) == len(tokens) else []

    def _read_unknown(self, section: Section) -> int:
        token = section.get("unk_token", str, "")
        if token and token not in self.vocabulary:
            raise section.error(f"unk_token {token!r} is not in the vocabulary")
        return self.vocabulary.get(token, GONE) if token else GONE

    def _read_merges(self, section: Section) -> None:
        """Each is a pair, or in older files both of it in one string with a space between."""
        listed = section.get("merges", list)
        pairs = [merge.split(" ") if isinstance(merge, str) else merge for merge in listed]
        known, prefix_length = self.vocabulary, len(self._prefix)
        try:
            # (left id, right id) -> rank, and rank -> the id of the two together
            self._ranks = {(known[a], known[b]): rank for rank, (a, b) in enumerate(pairs)}
            self._merged = [known[a + b[prefix_length:]] for a, b in pairs]
        except KeyError as error:
            fault = f"a merge needs the token {error.args[0]!r}, which is not in the vocabulary"
            raise section.error(fault) from None
        except (TypeError, ValueError):
            raise section.error("merges are not all pairs of tokens") from None

    def _no_token_crosses_spaces(self) -> bool:
        """Return whether words may be cut before spaces, because no merge crosses them.

        That spares SentencePiece's tokenizers from merging a whole text as one word.
        """
        if self._prefix or self._suffix or self._ignore_merges:
            return False  # these ask where a word begins and ends
        if SPACE_SIGN not in self.vocabulary:
            return False
        made = set(self._merged)
        return not any(
            token_id in made and SPACE_SIGN in token.lstrip(SPACE_SIGN)
            for token, token_id in self.vocabulary.items()
        )


class WordModel(Protocol):
    """A model that encodes words by themselves."""

    def ids(self, word: str) -> list[int]: ...


class RememberedWords(dict[str, list[int]]):
    """The ids of words that were encoded before, because texts repeat their words."""

    def __init__(self, model: WordModel) -> None:
        self.model = model

    def __missing__(self, word: str) -> list[int]:
        ids = self.model.ids(word)
        if len(word) <= _MAX_REMEMBERED_LENGTH:
            if len(self) >= _MAX_REMEMBERED:
                self.clear()
            self[word] = ids
        return ids


def read_vocabulary(section: Section) -> dict[str, int]:
    """Token to id; TokenizerError where an id is not one."""
    vocabulary = section.get("vocab", dict)
    if not all(type(token_id) is int and token_id >= 0 for token_id in vocabulary.values()):
        raise section.error("vocab has an id that is not a whole number from 0 on")
    section.refuse_surrogates("vocab", " ".join(vocabulary))
    return vocabulary
