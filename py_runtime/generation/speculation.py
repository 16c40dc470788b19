"""The choice of when to propose tokens, and how many: by what came true and what a call costs.

Proposals are looked up for every token, also where nobody verifies them: so it is known what would
have come true before a verifier is built, and text that repeats nothing pays for the lookup alone.
"""

from collections.abc import Sequence

from py_runtime.generation.proposals import LENGTHS, Lookup

SIZES = (2, 4, 8, 16)  # tokens of a call: the one drawn last, and the proposed ones
WORTH = 1.05  # tokens in the time of one, from which on they are verified
ENOUGH = 32  # proposals that came true before anything is built for them
FIRST_SHARE = 0.3  # of proposals that come true, before there were any
WEIGHT = 1 / 8  # of the last one among those before it
FIRST_COST = 0.25  # of each further token of a call, before any was measured: in calls of one
FADING = 0.98  # of a cost that keeps proposals from being verified: it may have been chance
ALWAYS = 8  # tokens of a call where they are verified whatever it costs

AUTO, ON, OFF = "auto", "on", "off"


class Costs:
    """The seconds of a token decoded alone, and of calls of several."""

    def __init__(self) -> None:
        self._one: float | None = None
        self._several: dict[int, float] = {}
        self._known: set[int] = set()  # sizes whose first call, which prepares others, is over

    def took_one(self, seconds: float) -> None:
        """Record the time of a token that was decoded alone."""
        self._one = seconds if self._one is None else self._one + (seconds - self._one) * WEIGHT

    def took(self, size: int, seconds: float) -> None:
        """Record the time of a call; the first of its size does not count."""
        if size not in self._known:
            self._known.add(size)
            return
        before = self._several.get(size, seconds)
        self._several[size] = before + (seconds - before) * WEIGHT

    def of(self, size: int) -> float:
        """Return the cost of a call in tokens decoded alone; what was not measured is estimated."""
        each = FIRST_COST
        if self._one and self._several:
            nearest = min(self._several, key=lambda known: abs(known - size))
            each = max(self._several[nearest] / self._one - 1, 0) / (nearest - 1)
        return 1 + each * (size - 1)

    def fade(self) -> None:
        for size in self._several:
            self._several[size] *= FADING


class Speculation:
    """The knowledge of a session about proposals, which stays from answer to answer."""

    def __init__(self) -> None:
        self.costs = Costs()
        self.proposed = self.accepted = 0  # tokens that were verified, ever, and that came true
        self.is_possible = True  # a verifier could be built, as far as is known
        self._shares = dict.fromkeys(LENGTHS, FIRST_SHARE)  # that came true, by stretches
        self._came_true = 0

    def watch(self, length: int, came_true: bool) -> None:
        """Record whether the token that followed a stretch of this length did so again."""
        self._shares[length] += (came_true - self._shares[length]) * WEIGHT
        self._came_true += came_true

    def best_size(self, length: int, most: int) -> int:
        """Return how many tokens a call should have, at most `most`; 1: nothing is proposed."""
        if self._came_true < ENOUGH:
            return 1
        share = self._shares[length]
        gains = {size: self._gain(share, size) for size in SIZES if size <= most}
        best = max(gains, key=lambda size: gains[size], default=1)
        if gains and gains[best] >= WORTH:
            return best
        if share > FIRST_SHARE:
            self.costs.fade()
        return 1

    def _gain(self, share: float, size: int) -> float:
        """Return the tokens of a call in the time of one, if each comes true with this chance."""
        return sum(share**at for at in range(size)) / self.costs.of(size)


class Guesses:
    """The proposals for one answer."""

    def __init__(self, speculation: Speculation, mode: str, tokens: Sequence[int]) -> None:
        self._speculation = speculation
        self._mode = mode
        self._lookup = Lookup(tokens if mode != OFF else ())

    def add(self, tokens: Sequence[int]) -> None:
        """Add tokens that were drawn, however they were."""
        for token in tokens if self._mode != OFF else ():
            found = self._lookup.found()
            if found is not None:
                length, place = found
                (guess,) = self._lookup.propose(place, 1)
                self._speculation.watch(length, guess == token)
            self._lookup.add(token)

    def next_tokens(self, most: int) -> list[int]:
        """Return tokens to verify, `most - 1` of them at most, or none where it does not pay."""
        found = self._lookup.found()
        if found is None or not self._speculation.is_possible or most < SIZES[0]:
            return []
        length, place = found
        size = min(ALWAYS, most)
        if self._mode == AUTO:
            size = self._speculation.best_size(length, most)
        return self._lookup.propose(place, size - 1)

    def decoded(self, tokens: int, seconds: float | None) -> None:
        """Record a batch of tokens decoded one by one, if it is known how long it took."""
        if seconds is not None:
            self._speculation.costs.took_one(seconds / tokens)

    def verified(self, proposed: int, drawn: int, seconds: float) -> None:
        """Record a call: how many tokens were proposed, how many it drew, and the time it took."""
        self._speculation.proposed += proposed
        self._speculation.accepted += drawn - 1
        self._speculation.costs.took(proposed + 1, seconds)
