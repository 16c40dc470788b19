"""The chat conventions of all families, and which of them a template goes by."""

from collections.abc import Collection

from py_runtime.decoder.conventions import JSON_IN_TAGS, Convention, Thoughts
from py_runtime.decoder.families import GROUPS

# In this order: the first that a template knows.
CONVENTIONS = tuple(sorted({row for group in GROUPS for row in group.calls}, key=lambda c: c.rank))
THOUGHTS = tuple(sorted({row for group in GROUPS for row in group.thoughts}, key=lambda t: t.rank))


def convention_of(template: str) -> Convention:
    """Return the convention of a chat template; one that knows none is told of JSON in tags."""
    found = (row for row in CONVENTIONS if any(mark in template for mark in row.known_by))
    return next(found, JSON_IN_TAGS)


def thoughts_of(template: str, tokens: Collection[str]) -> Thoughts | None:
    """Return how a model sets thoughts apart, by its template or control tokens, if it does."""
    found = (row for row in THOUGHTS if row.known_by in template or row.known_by in tokens)
    return next(found, None)
