"""BM25: how well texts answer a question by the words that they share with it."""

from array import array
from collections.abc import Sequence

import numpy as np

from py_runtime.retrieval.words import count_words

K1 = 1.5  # how much more a word says that comes again
B = 0.75  # how much a long text is held against it


class Bm25:
    """The words of texts, ready to be looked up: what each adds to a text's score is known."""

    def __init__(self, texts: Sequence[str]) -> None:
        numbers: dict[str, int] = {}  # of words
        word, text, count = array("q"), array("q"), array("q")
        lengths = np.zeros(len(texts))
        for at, each in enumerate(texts):
            counts = count_words(each)
            lengths[at] = counts.total()
            for name, times in counts.items():
                word.append(numbers.setdefault(name, len(numbers)))
                text.append(at)
                count.append(times)
        words, self._texts = np.asarray(word), np.asarray(text)
        order = np.argsort(words, kind="stable")
        self._texts = self._texts[order]
        frequencies = np.asarray(count, np.float64)[order]
        among = np.bincount(words, minlength=len(numbers))  # texts that each word is in
        self._ends = np.cumsum(among)
        self._starts = self._ends - among
        self._numbers = numbers
        self._count = len(texts)
        self._rarity = rarity = np.log(1 + (len(texts) - among + 0.5) / (among + 0.5))
        average = lengths.mean() if len(texts) else 1.0
        length = lengths[self._texts] / max(average, 1)
        gain = frequencies * (K1 + 1) / (frequencies + K1 * (1 - B + B * length))
        self._gains = np.asarray(rarity[words[order]] * gain, np.float32)

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
