"""Search: the passages of documents that a question asks for, within so many tokens."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from py_runtime.retrieval.bm25 import Bm25
from py_runtime.retrieval.document import SENTENCE, Chunk, Document
from py_runtime.retrieval.vectors import Directions

MOST_PASSAGES = 6
LEAST_SHARE = 0.3  # of the best score, or a chunk is none of those that are asked for
LEAST_TOKENS = 16  # a shorter beginning of a chunk says nothing
AROUND = 16  # tokens that stand around a passage in a prompt, its label aside

CountTokens = Callable[[str], int]


@dataclass(frozen=True)
class Passage:
    """A part of a document that answers a question, perhaps."""

    document: Document
    chunk: Chunk
    score: float

    @property
    def text(self) -> str:
        return self.document.text[self.chunk.start : self.chunk.end]

    @property
    def label(self) -> str:
        return self.document.label(self.chunk)


class Search:
    """Documents that are searched together: each question gets the best passages of all of them."""

    def __init__(self, documents: Sequence[Document]) -> None:
        self._chunks = [(each, chunk) for each in documents for chunk in each.chunks]
        # A file's name tells what its parts are about.
        texts = [
            f"{_name(each, chunk)} {each.text[chunk.start : chunk.end]}"
            for each, chunk in self._chunks
        ]
        self._bm25 = Bm25(texts)
        self._directions: Directions | None = None
        self._weight = 0.0

    def add_vectors(self, vectors: np.ndarray, weight: float, is_centred: bool) -> None:
        """Have meaning count, too, with a weight from 0 to 1.

        `vectors`: i8 [N, W] of the chunks in their order.
        """
        self._directions = Directions(vectors, is_centred)
        self._weight = weight

    def scores(self, question: str, vector: np.ndarray | None = None) -> np.ndarray:
        """Return the score of each chunk, from 0 to 1; `vector` is the question's."""
        by_words = normalised(self._bm25.scores(question), 0)
        if self._directions is None or vector is None:
            return by_words
        cosines = self._directions.cosines(vector)
        by_meaning = normalised(cosines, float(cosines.mean()))
        return np.asarray((1 - self._weight) * by_words + self._weight * by_meaning)

    def passages(
        self, question: str, budget: int, count: CountTokens, vector: np.ndarray | None = None
    ) -> list[Passage]:
        """Return the best passages, the best first, that take at most `budget` tokens.

        Where no chunk is any better than the others, these are the beginnings of the documents.
        """
        scores = self.scores(question, vector)
        found: list[Passage] = []
        for place in self._best(scores):
            document, chunk = self._chunks[place]
            passage = Passage(document, chunk, float(scores[place]))
            room = budget - AROUND - count(passage.label)
            if room >= LEAST_TOKENS:
                fitting = self._fitting(passage, question, room, count)
                if fitting is not None:
                    found.append(fitting)
                    budget = room - count(fitting.text)
            if len(found) == MOST_PASSAGES:
                break
        return found

    def _fitting(
        self, passage: Passage, question: str, room: int, count: CountTokens
    ) -> Passage | None:
        """Return a passage, or its sentences from the one on that says most about the question."""
        if count(passage.text) <= room:
            return passage
        text = passage.text
        marks = [0, *(each.end() for each in SENTENCE.finditer(text)), len(text)]
        start, stop = max(
            pairwise(marks), key=lambda span: self._bm25.weigh(question, text[span[0] : span[1]])
        )
        fitting = [mark for mark in marks if mark > start and count(text[start:mark]) <= room]
        end = max(fitting, default=start)
        if end == start:  # not even that one: as much of it as fits
            end = start + (stop - start) * room // max(1, count(text[start:stop]))
            while end > start and count(text[start:end]) > room:
                end = start + (end - start) * 3 // 4
        end = start + len(text[start:end].rstrip())
        return _part_of(passage, start, end) if end > start else None

    def _best(self, scores: np.ndarray) -> Iterator[int]:
        top = float(scores.max(initial=0))
        if top <= 0:
            yield from range(len(scores))
            return
        for place in np.argsort(-scores, kind="stable"):
            if scores[place] < top * LEAST_SHARE:
                return
            yield int(place)


def normalised(scores: np.ndarray, least: float) -> np.ndarray:
    """Return scores from 0 to 1: at most `least` becomes 0, the best 1."""
    span = float(scores.max(initial=least)) - least
    return np.maximum(scores - least, 0) / span if span > 0 else np.zeros_like(scores)


def _name(document: Document, chunk: Chunk) -> str:
    return document.names[chunk.part] if document.names else document.name


def _part_of(passage: Passage, start: int, end: int) -> Passage:
    """Return a part of a passage, by places in its text."""
    chunk, text = passage.chunk, passage.text
    first = chunk.first + text.count("\n", 0, start)
    last = first + text.count("\n", start, end)
    cut = replace(chunk, start=chunk.start + start, end=chunk.start + end, first=first, last=last)
    return replace(passage, chunk=cut)


def parts_of(document: Document, budget: int, count: CountTokens) -> list[tuple[Chunk, Chunk]]:
    """Cut a whole document into as few parts of at most `budget` tokens; give the ends of each.

    A chunk that is longer is a part of its own.
    """
    parts: list[tuple[Chunk, Chunk]] = []
    tokens = 0
    for chunk in document.chunks:
        more = count(document.text[chunk.start : chunk.end]) + 2
        if parts and tokens + more <= budget:
            parts[-1] = (parts[-1][0], chunk)
            tokens += more
        else:
            parts.append((chunk, chunk))
            tokens = more
    return parts
