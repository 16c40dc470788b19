"""Which positions a session can go on from, where caches are rings of a window.

What was written last is held, and so much before it that a session may go back by a batch of
tokens; whoever goes back further begins at 0.
"""

from collections.abc import Sequence

from py_runtime.graph.rings import Ring


class HeldWindows:
    """How far caches were ever written, with all that was drawn ahead and nobody waited for."""

    def __init__(self) -> None:
        self._written = 0  # positions, since all of it was forgotten

    def forget(self) -> None:
        self._written = 0

    def write(self, end: int) -> None:
        """Positions up to this one are about to be written."""
        self._written = max(self._written, end)

    def last_up_to(self, rings: Sequence[Ring], most: int) -> int:
        """The last position, of those up to `most`, that can be gone on from."""
        return most if all(ring.can_go_on(most, self._written) for ring in rings) else 0

    def go_back(self, position: int) -> None:
        """What follows is written anew: at 0, whatever was there before does not count."""
        if position == 0:
            self.forget()
