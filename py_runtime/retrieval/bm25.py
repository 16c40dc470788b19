"""BM25: how well texts answer a question by the words that they share with it."""

from array import array
from collections.abc import Sequence

import numpy as np

from py_runtime.retrieval.words import count_words, runs_of, words_of

K1 = 1.5  # how much more a word says that comes again
B = 0.75  # how much a long text is held against it


class Bm25:
    """The words of texts, ready to be looked up: what each adds to a text's score is known."""

    def __init__(self, texts: Sequence[str]) -> None:
        run, text, runs = _runs_in(texts)
        numbers: dict[str, int] = {}  # of words
        spelled = [
            [numbers.setdefault(word, len(numbers)) for word in words_of(each)] for each in runs
        ]
        word, text = _expanded(run, text, spelled)
        lengths = np.bincount(text, minlength=len(texts))
        # Each word with each text that it is in, by words.
        pairs, times = np.unique(word * max(1, len(texts)) + text, return_counts=True)
        words, self._texts = (part.astype(np.intp) for part in np.divmod(pairs, max(1, len(texts))))
        frequencies = times.astype(np.float64)
        among = np.bincount(words, minlength=len(numbers))  # texts that each word is in
        self._ends = np.cumsum(among)
        self._starts = self._ends - among
        self._numbers = numbers
        self._count = len(texts)
        self._rarity = rarity = np.log(1 + (len(texts) - among + 0.5) / (among + 0.5))
        average = lengths.mean() if len(texts) else 1.0
        length = lengths[self._texts] / max(average, 1)
        gain = frequencies * (K1 + 1) / (frequencies + K1 * (1 - B + B * length))
        self._gains = np.asarray(rarity[words] * gain, np.float32)

    def scores(self, question: str) -> np.ndarray:
        """Return the score of each text: f32 [N]; 0 where it has no word of the question."""
        scores = np.zeros(self._count, np.float32)
        for word in count_words(question):  # a word that comes again counts once
            number = self._numbers.get(word)
            if number is not None:
                found = slice(self._starts[number], self._ends[number])
                scores[self._texts[found]] += self._gains[found]
        return scores

    def weigh(self, question: str, text: str) -> float:
        """Return how much the words say that a question and a text share: the rarer, the more."""
        shared = count_words(question).keys() & count_words(text).keys() & self._numbers.keys()
        return float(sum(self._rarity[self._numbers[word]] for word in shared))


class _Numbers(dict[str, int]):
    """Numbers of texts, in the order in which they are first asked for."""

    def __missing__(self, text: str) -> int:
        self[text] = number = len(self)
        return number


def _runs_in(texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray, Sequence[str]]:
    """Return the number of each run of letters, [R], the text that it is in, and all runs.

    Nothing but looking a run up is done once for each: there are half a million in 1,000 pages.
    """
    numbers = _Numbers()
    found, ends = array("q"), [0]
    for each in texts:
        found.extend(map(numbers.__getitem__, runs_of(each)))
        ends.append(len(found))
    text = np.repeat(np.arange(len(texts)), np.diff(ends))
    return np.asarray(found, np.intp), text, list(numbers)


def _expanded(
    run: np.ndarray, text: np.ndarray, spelled: Sequence[Sequence[int]]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of each word, and the text that it is in: a run may be several words."""
    # np.repeat takes what indexes arrays alone: 32 bits in WebAssembly.
    counts = np.asarray([len(each) for each in spelled], np.intp)
    flat = np.asarray([word for each in spelled for word in each], np.int64)
    times = counts[run]
    before = np.cumsum(times) - times
    first = (np.cumsum(counts) - counts)[run]
    return flat[np.arange(times.sum()) + np.repeat(first - before, times)], np.repeat(text, times)
