"""Stop strings in streamed text, of which nothing is ever shown."""

from collections.abc import Iterable, Sequence


class StopStrings:
    """A filter: text goes in, text that may be shown comes out.

    The first stop to be complete ends the text, at its beginning; of several complete at the same
    character, the longest. So the outcome does not depend on how the text is cut into pushes.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = tuple(stops)
        self._held = ""  # the longest end of the text that a stop may begin with
        self.stopped = False

    def push(self, text: str) -> str:
        """Return what may be shown now; nothing once a stop was found."""
        if self.stopped:
            return ""
        text = self._held + text
        cut = self._first_stop(text)
        self.stopped = cut is not None
        shown = len(text) - held_back(text, self._stops) if cut is None else cut
        self._held = "" if self.stopped else text[shown:]
        return text[:shown]

    def finish(self) -> str:
        """Return what was held back, now that no more text can complete a stop."""
        held, self._held = self._held, ""
        return held

    def _first_stop(self, text: str) -> int | None:
        """Return where the stop begins that is complete first."""
        found = ((text.find(stop), len(stop)) for stop in self._stops)
        ends = [(start + length, start) for start, length in found if start >= 0]
        return min(ends)[1] if ends else None


def held_back(text: str, markers: Iterable[str]) -> int:
    """Return how many characters at the end may be the beginning of a marker."""
    longest = 0
    for marker in markers:
        for length in range(min(len(marker) - 1, len(text)), longest, -1):
            if text.endswith(marker[:length]):
                longest = length
                break
    return longest
