"""The tokens so far as index arrays: a penalty touches those tokens and no others."""

from collections.abc import Sequence

import numpy as np

from py_runtime.base.errors import RequestError

ROOM = 64  # for new tokens; when it is used up, the arrays double


class Tally:
    """The distinct tokens of a text and their counts; adding one copies nothing."""

    def __init__(self, tokens: Sequence[int] = ()) -> None:
        ids, counts = np.unique(np.array(tokens, np.int64), return_counts=True)
        self._places = {token: place for place, token in enumerate(ids.tolist())}
        room = np.zeros(ROOM, np.int64)
        self._ids = np.concatenate([ids, room])  # the first len(_places) of them count
        self._counts = np.concatenate([counts, room])

    def add(self, token: int) -> None:
        place = self._places.setdefault(token, len(self._places))
        if place == len(self._ids):
            more = np.zeros_like(self._ids)
            self._ids = np.concatenate([self._ids, more])
            self._counts = np.concatenate([self._counts, more])
        self._ids[place] = token
        self._counts[place] += 1

    @property
    def ids(self) -> np.ndarray:
        return self._ids[: len(self._places)]

    @property
    def counts(self) -> np.ndarray:
        return self._counts[: len(self._places)]


class TokenHistory:
    """Counts for the penalties: repetition counts all tokens, the others the answer's."""

    def __init__(self, prompt: Sequence[int], vocabulary: int) -> None:
        self._vocabulary = vocabulary
        self._check(min(prompt, default=0))
        self._check(max(prompt, default=0))
        self.everything = Tally(prompt)
        self.answer = Tally()

    def add(self, token: int) -> None:
        """Add a token of the answer."""
        self._check(token)
        self.everything.add(token)
        self.answer.add(token)

    def _check(self, token: int) -> None:
        if not 0 <= token < self._vocabulary:
            raise RequestError(
                f"{token} is not a token id: the vocabulary has 0 to {self._vocabulary - 1}"
            )
