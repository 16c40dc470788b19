"""Masks of allowed tokens: all tokens are walked at once, byte by byte."""

from collections import OrderedDict

import numpy as np

from py_runtime.grammar.stack_automaton import StackAutomaton
from py_runtime.grammar.vocabulary import Level

_MAX_ROWS_A_WALK = 8_000  # an automaton that needs more gives up tokens, never time or memory
_SPARSE = 10  # one prefix in so many is alive: the others are not looked at
_MAX_REMEMBERED = 1_000


class Masks:
    """The masks of an automaton's states, remembered as bits."""

    def __init__(self, automaton: StackAutomaton) -> None:
        self.automaton = automaton
        self.texts = automaton.texts
        self._generation = automaton.generation
        self._remembered: OrderedDict[int, tuple[np.ndarray, int]] = OrderedDict()
        self._last: tuple[int, np.ndarray] | None = None  # the state walked last

    def mask_of(self, state: int) -> tuple[np.ndarray, int]:
        """Return the mask, bool [V], and the most tokens that then make the text whole."""
        if self._generation != self.automaton.generation:
            self._remembered.clear()
            self._last = None
            self._generation = self.automaton.generation
        state, _ = self.automaton.common(state)
        found = self._remembered.get(state)
        if found is None:
            final = self.final_states(state)
            reached = np.bincount(final).nonzero()[0].tolist()
            worst = max((self.automaton.cost(each) for each in reached if each), default=0)
            found = self._remembered[state] = (np.packbits(final != 0), worst)
            if len(self._remembered) > _MAX_REMEMBERED:
                self._remembered.popitem(last=False)
        self._remembered.move_to_end(state)
        bits, worst = found
        return np.unpackbits(bits, count=self.texts.size).view(np.bool_), worst

    def mask_within(self, state: int, limit: int) -> np.ndarray:
        """Return bool [V]: tokens after which at most `limit` further ones make the text whole."""
        final = self.final_states(state)
        counts = np.bincount(final)
        in_time = np.zeros(len(counts), np.bool_)
        for reached in counts.nonzero()[0].tolist():
            in_time[reached] = reached != 0 and self.automaton.cost(reached) <= limit
        mask: np.ndarray = in_time[final]
        return mask

    def final_states(self, state: int) -> np.ndarray:
        """int32 [V]: a state that each token leads to; 0 where it is not allowed.

        Where any text may go on, most tokens are known to be allowed; only the others are walked.
        """
        state, free = self.automaton.common(state)
        if self._last is None or self._last[0] != state:
            final = np.zeros(self.texts.size, np.int32)
            if free:
                final[self.texts.plain_tokens] = free
            self._walk(state, self.texts.odd_levels if free else self.texts.levels, final)
            self._last = (state, final)
        return self._last[1]

    def _walk(self, state: int, levels: list[Level], final: np.ndarray) -> None:
        rows_left = _MAX_ROWS_A_WALK
        living = np.zeros(1, np.int64)  # prefixes of the level before
        states = np.array([state], np.int32)  # theirs
        for level in levels:
            rows_left -= self._make_rows(states, rows_left)
            positions, states = children(level, living, states)
            if not len(positions):
                break
            index = states.astype(np.int64) << 8
            index |= level.bytes[positions]
            states = self.automaton.table.ravel().take(index)
            alive = states.nonzero()[0]
            living, states = positions[alive], states[alive]
            if level.tokens.size:
                reached = np.zeros(len(level.bytes), np.int32)
                reached[living] = states
                final[level.tokens] = reached[level.token_prefixes]

    def _make_rows(self, states: np.ndarray, max_rows: int) -> int:
        """Rows of the table for these states; how many had to be made."""
        missing = ~self.automaton.has_row[states]
        if not missing.any():
            return 0
        wanted = np.unique(states[missing]).tolist()[: max(max_rows, 0)]
        for state in wanted:
            self.automaton.make_row(state)
        return len(wanted)


def children(
    level: Level, parents: np.ndarray, states: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the prefixes that continue `parents` (ascending), and their parents' states."""
    if not len(parents):
        return parents, states
    first, last = int(parents[0]), int(parents[-1])
    if len(parents) * _SPARSE > last - first:
        # Many: all between the first and the last, the dead ones with the dead state.
        begin, end = np.searchsorted(level.parents, (first, last + 1)).tolist()
        spread = np.zeros(last - first + 1, np.int32)
        spread[parents - first] = states
        return np.arange(begin, end), spread[level.parents[begin:end] - first]
    begins = np.searchsorted(level.parents, parents)
    counts = np.searchsorted(level.parents, parents, side="right") - begins
    before = np.cumsum(counts) - counts
    positions = np.repeat(begins - before, counts) + np.arange(int(counts.sum()))
    return positions, np.repeat(states, counts)
