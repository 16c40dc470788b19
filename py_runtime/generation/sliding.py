"""Answers that outgrow the context: the oldest tokens behind the beginning slide out of it.

What stays keeps the keys and values that it had, moved up to its new positions; so an answer goes
on without its prompt being computed again. The beginning stays: the system prompt, or the few first
tokens, which models need to lean on.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from py_runtime.base.shapes import ceil_div
from py_runtime.generation.session import Session

FIRST_TOKENS = 4  # that stay where there is no system prompt


@dataclass(frozen=True)
class Slide:
    """The tokens that a model still sees of a text that may be longer than its context."""

    keep: int  # first tokens, which stay
    context: int

    def dropped(self, count: int) -> int:
        """Return how many of so many tokens have gone: each time half of what may go."""
        step = max(1, (self.context - self.keep) // 2)
        return step * ceil_div(max(0, count + 1 - self.context), step)

    def seen(self, tokens: Sequence[int]) -> list[int]:
        """Return the tokens that are left: less than the context, so that another follows."""
        return [*tokens[: self.keep], *tokens[self.keep + self.dropped(len(tokens)) :]]


class SlidingText:
    """The part of one answer's prompt and tokens that a session holds."""

    def __init__(self, session: Session, slide: Slide | None, prompt: Sequence[int]) -> None:
        self._session = session
        self._slide = slide
        self._dropped = 0 if slide is None else slide.dropped(len(prompt))

    async def seen(self, tokens: Sequence[int]) -> list[int]:
        """Return what the model is to see of prompt and answer; the caches slide along."""
        if self._slide is None:
            return list(tokens)
        dropped = self._slide.dropped(len(tokens))
        newly, self._dropped = dropped - self._dropped, dropped
        if newly and self._session.tokens:
            await self._session.slide(self._slide.keep, newly)
        return self._slide.seen(tokens)

    def room(self, position: int) -> int | None:
        """Return how many tokens may be drawn from this position until something has to go."""
        return None if self._slide is None else self._slide.context - position
