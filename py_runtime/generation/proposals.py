"""Tokens that may come next: what followed the last few, the last time they stood in the text."""

from collections.abc import Sequence

LENGTHS = (3, 2)  # of the stretches that are looked up, the longest first


class Lookup:
    """A text of tokens that knows where each short stretch of it stood last."""

    def __init__(self, tokens: Sequence[int]) -> None:
        self._tokens: list[int] = []
        # A stretch → the place of the token behind it, not counting the stretch at the very end.
        self._followers: dict[int, dict[tuple[int, ...], int]] = {size: {} for size in LENGTHS}
        for token in tokens:
            self.add(token)

    def add(self, token: int) -> None:
        tokens, end = self._tokens, len(self._tokens)
        for size, followers in self._followers.items():
            if end >= size:
                followers[tuple(tokens[end - size :])] = end
        tokens.append(token)

    def found(self) -> tuple[int, int] | None:
        """Return (length of the stretch, place of what followed it) for the end of the text."""
        for size, followers in self._followers.items():
            place = followers.get(tuple(self._tokens[-size:]))
            if place is not None:
                return size, place
        return None

    def propose(self, place: int, count: int) -> list[int]:
        """Return `count` tokens from a place on; where the text ends, it repeats itself."""
        tokens, period = self._tokens, len(self._tokens) - place
        return [tokens[place + at % period] for at in range(count)]
