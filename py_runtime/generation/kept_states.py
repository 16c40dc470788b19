"""The positions a session can resume from where a graph has states that cannot be cut back.

A state stands at one position: after the last token that was computed. It is copied shortly before
the end of a prompt, and before each batch of an answer's tokens. A prompt that continues what is
held starts at the last of these positions that it shares, and one that shares none at 0, where ops
treat their states as empty.
"""

from collections import deque

from py_runtime.graph.carried_states import COPIES, StateCopies

# Tokens of a prompt that are computed again with another answer. As a rule they are the template's,
# and what the next prompt says there may differ: thoughts that it leaves out begin here.
TAIL = 8
PROMPT = 0  # the copy for the prompt; the others take turns


class KeptStates:
    """The positions of a graph's states and of their copies."""

    def __init__(self) -> None:
        self._position: int | None = None  # of the states themselves, where it is known
        self._kept: dict[int, int] = {}  # copy → its position
        self._next: deque[int] = deque(range(PROMPT + 1, COPIES))

    def forget(self) -> None:
        self._position = None
        self._kept.clear()

    def leave(self) -> None:
        """Forget the position before a computation; it is unknown until that has ended."""
        self._position = None

    def reach(self, position: int) -> None:
        """Record that the states stand after `position` tokens, or will before what follows."""
        self._position = position

    def last_up_to(self, most: int) -> int:
        """Return the last position, at most `most`, that can be resumed."""
        places = [*self._kept.values(), 0]
        if self._position is not None:
            places.append(self._position)
        return max(place for place in places if place <= most)

    def go_back(self, copies: StateCopies, most: int) -> int:
        """Restore that position and drop the copies of later ones."""
        position = self.last_up_to(most)
        self._kept = {copy: place for copy, place in self._kept.items() if place <= position}
        if position not in (0, self._position):
            copy = next(copy for copy, place in self._kept.items() if place == position)
            copies.put_back(copy)
        self._position = position
        return position

    def keep_prompt(self, copies: StateCopies) -> None:
        self._keep(copies, PROMPT)

    def keep_batch(self, copies: StateCopies) -> None:
        """Copy the states before a batch: an answer ends in the last batch or the one before."""
        self._keep(copies, self._next[0])
        self._next.rotate(-1)

    def _keep(self, copies: StateCopies, copy: int) -> None:
        if self._position is None or self._position == self._kept.get(copy):
            return
        copies.keep(copy)
        self._kept[copy] = self._position
