"""Checks that tokens at a position fit into the rows of a table or a cache."""

from py_runtime.live.values import LiveInt
from py_runtime.ops.registry import Op


def check_rows(op: Op, start: LiveInt, tokens: int, rows: int, table: str) -> None:
    """Check that the rows [start, start + tokens) lie in a table of `rows`."""
    position = start.value
    if 0 <= position <= rows - tokens:
        return
    op.require_live(position >= 0, f"start_pos is {position}; positions begin at 0")
    op.require_live(
        False,
        f"start_pos {position} + {tokens} tokens is {position + tokens}, but {table} has "
        f"{rows} rows",
    )


def check_cache(op: Op, start: LiveInt, tokens: int, rows: int, window: int | None) -> None:
    """Check that tokens fit into a cache or, with a window, into a ring.

    A ring must hold all tokens and what the first of them sees before itself.
    """
    if window is None or start.value < 0 or start.value + tokens <= rows:
        check_rows(op, start, tokens, rows, "the cache")
        return
    op.require_live(
        window + tokens - 1 <= rows,
        f"{tokens} tokens that see {window} positions each are at position {start.value}, past the "
        f"cache's {rows} rows, which as a ring must be {window + tokens - 1} or more",
    )
