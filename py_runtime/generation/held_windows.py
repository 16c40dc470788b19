"""The positions a session can resume from where caches are rings of a window.

What was written last is held, plus enough before it to go back by a batch of tokens; going back
further means starting at 0.
"""

from collections.abc import Sequence

from py_runtime.graph.rings import Ring


class HeldWindows:
    """A record of how far caches were ever written, including abandoned batches."""

    def __init__(self) -> None:
        self.written = 0  # positions, since all of it was forgotten

    def forget(self) -> None:
        self.written = 0

    def write(self, end: int) -> None:
        """Record that positions up to this one are about to be written."""
        self.written = max(self.written, end)

    def last_up_to(self, rings: Sequence[Ring], most: int) -> int:
        """Return the last position, at most `most`, that can be resumed."""
        return most if all(ring.can_go_on(most, self.written) for ring in rings) else 0

    def go_back(self, position: int) -> None:
        """Go back to a position; at 0 whatever was written before does not count."""
        if position == 0:
            self.forget()
