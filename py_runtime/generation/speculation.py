"""The choice of when to propose tokens, and how many: by what came true and what a call costs.

Proposals are looked up for every token, also where nobody verifies them: so it is known what would
have come true before a verifier is built, and text that repeats nothing pays for the lookup alone.
A draft is a smaller model that proposes tokens where that promises more. It costs time whether they
come true or not, so it is asked for a few calls, and left alone for longer each time that it does
not pay.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from py_runtime.generation.proposals import LENGTHS, Lookup

SIZES = (2, 4, 8, 16)  # tokens of a call: the one drawn last, and the proposed ones
WORTH = 1.05  # tokens in the time of one, from which on they are verified
ENOUGH = 32  # proposals that came true before anything is built for them
FIRST_SHARE = 0.3  # of proposals that come true, before there were any
WEIGHT = 1 / 8  # of the last one among those before it
FIRST_COST = 0.25  # of each further token of a call, before any was measured: in calls of one
FADING = 0.98  # of a cost that keeps proposals from being verified: it may have been chance
ALWAYS = 8  # tokens of a call where they are verified whatever it costs
FIRST_DRAFT_SHARE = 0.7  # of a draft's proposals that come true, before there were any
FIRST_DRAFT_COST = 0.25  # of a draft's token, before it was measured: in tokens decoded alone
TRIES = 4  # calls with a draft's proposals before it counts what they gain
REST, LONGEST_REST = 64, 4096  # tokens without a draft that does not pay: twice as many each time

AUTO, ON, OFF = "auto", "on", "off"


class Promise(NamedTuple):
    """The size of a call, and how many tokens it is expected to give in the time of one."""

    gain: float
    size: int


NOTHING = Promise(1.0, 1)


@dataclass(frozen=True)
class Choice:
    """A number of tokens to propose, and who does."""

    count: int
    place: int | None = None  # in the text, where they stood before; None: the draft


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

    def in_tokens(self, seconds: float) -> float | None:
        """Return seconds as tokens decoded alone; None before one was."""
        return seconds / self._one if self._one else None

    def fade(self) -> None:
        for size in self._several:
            self._several[size] *= FADING


class DraftRecord:
    """The knowledge of a session about its draft."""

    def __init__(self) -> None:
        self.proposed = self.accepted = 0  # tokens, ever
        self.share = FIRST_DRAFT_SHARE  # that came true, of those after which all others had
        self.seconds: float | None = None  # of one of its tokens
        self._is_known = False  # its first call, which prepares others, is over
        self._tries = TRIES
        self._resting = 0  # tokens that are still decoded without it
        self._rest = REST  # the next time

    def took(self, tokens: int, seconds: float) -> None:
        """Record the time of proposals; the first time does not count."""
        if not self._is_known:
            self._is_known = True
            return
        each = seconds / tokens
        before = each if self.seconds is None else self.seconds
        self.seconds = before + (each - before) * WEIGHT

    def verified(self, proposed: int, accepted: int) -> None:
        """Record how many proposals came true; nothing is known of those after the first wrong."""
        self.proposed += proposed
        self.accepted += accepted
        self._tries = max(self._tries - 1, 0)
        for came_true in (True,) * accepted + (False,) * (accepted < proposed):
            self.share += (came_true - self.share) * WEIGHT

    def passed(self, tokens: int) -> None:
        """Record that the answer has so many tokens more."""
        self._resting = max(self._resting - tokens, 0)

    def judge(self, promise: Promise) -> Promise:
        """Return the promise if the draft is to be asked, else nothing."""
        if self._resting:
            return NOTHING
        if promise.gain >= WORTH:
            self._rest = REST if not self._tries else self._rest
            return promise
        if self._tries:
            return Promise(WORTH, promise.size)
        self._resting, self._rest = self._rest, min(2 * self._rest, LONGEST_REST)
        self._tries = TRIES
        return NOTHING


class Speculation:
    """The knowledge of a session about proposals, which stays from answer to answer."""

    def __init__(self) -> None:
        self.costs = Costs()
        self.draft = DraftRecord()
        self.proposed = self.accepted = 0  # tokens that were verified, ever, and that came true
        self.is_possible = True  # a verifier could be built, as far as is known
        self._shares = dict.fromkeys(LENGTHS, FIRST_SHARE)  # that came true, by stretches
        self._came_true = 0

    def watch(self, length: int, came_true: bool) -> None:
        """Record whether the token that followed a stretch of this length did so again."""
        self._shares[length] += (came_true - self._shares[length]) * WEIGHT
        self._came_true += came_true

    def by_text(self, length: int, most: int) -> Promise:
        """Return what a call promises whose proposals followed a stretch of this length."""
        if self._came_true < ENOUGH:
            return NOTHING
        share = self._shares[length]
        best = self._best(share, most)
        if best.gain >= WORTH:
            return best
        if share > FIRST_SHARE:
            self.costs.fade()
        return NOTHING

    def by_draft(self, most: int) -> Promise:
        """Return what a call promises whose proposals are the draft's."""
        if self.costs.in_tokens(0) is None:
            return NOTHING  # nothing to compare with
        seconds = self.draft.seconds
        each = FIRST_DRAFT_COST if seconds is None else self.costs.in_tokens(seconds) or 0
        return self.draft.judge(self._best(self.draft.share, most, each))

    def _best(self, share: float, most: int, each: float = 0) -> Promise:
        """Return the best of all sizes, if each proposal comes true with this chance.

        `each` is what it costs, in tokens decoded alone.
        """
        promises = []
        for size in (size for size in SIZES if size <= most):
            cost = self.costs.of(size) + each * (size - 1)
            promises.append(Promise(sum(share**at for at in range(size)) / cost, size))
        return max(promises, default=NOTHING)


class Guesses:
    """The proposals for one answer."""

    def __init__(
        self, speculation: Speculation, mode: str, tokens: Sequence[int], has_draft: bool = False
    ) -> None:
        self._speculation = speculation
        self._mode = mode
        self._lookup = Lookup(tokens if mode != OFF else ())
        self.has_draft = has_draft and mode != OFF

    def add(self, tokens: Sequence[int]) -> None:
        """Add tokens that were drawn, however they were."""
        for token in tokens if self._mode != OFF else ():
            found = self._lookup.found()
            if found is not None:
                length, place = found
                (guess,) = self._lookup.propose(place, 1)
                self._speculation.watch(length, guess == token)
            self._lookup.add(token)
        self._speculation.draft.passed(len(tokens))

    def choose(self, most: int) -> Choice | None:
        """Return what to propose for a call of `most` tokens at most; None where it does not pay.

        What stood in the text costs nothing.
        """
        found = self._lookup.found()
        if not self._speculation.is_possible or most < SIZES[0]:
            return None
        if self._mode != AUTO:
            count = min(ALWAYS, most) - 1
            if found is not None:
                return Choice(count, found[1])
            return Choice(count) if self.has_draft else None
        by_text = self._speculation.by_text(found[0], most) if found else NOTHING
        by_draft = self._speculation.by_draft(most) if self.has_draft else NOTHING
        if found and by_text.size > 1 and by_text.gain >= by_draft.gain:
            return Choice(by_text.size - 1, found[1])
        return Choice(by_draft.size - 1) if by_draft.size > 1 else None

    def look_up(self, choice: Choice) -> list[int]:
        """Return the tokens of a choice that stand in the text."""
        assert choice.place is not None, "else the draft proposes them"
        return self._lookup.propose(choice.place, choice.count)

    def decoded(self, tokens: int, seconds: float | None) -> None:
        """Record a batch of tokens decoded one by one, if it is known how long it took."""
        if seconds is not None:
            self._speculation.costs.took_one(seconds / tokens)

    def verified(self, choice: Choice, proposed: int, drawn: int, seconds: float) -> None:
        """Record a call: how many tokens were proposed, how many it drew, and the time it took."""
        self._speculation.proposed += proposed
        self._speculation.accepted += drawn - 1
        self._speculation.costs.took(proposed + 1, seconds)
        if choice.place is None:
            self._speculation.draft.verified(proposed, drawn - 1)
