"""Rows of a table or cache that a call's tokens take: one check and one text for every op."""

from typing import TYPE_CHECKING

from py_runtime.live import LiveInt

if TYPE_CHECKING:
    from py_runtime.ops.registry import Op


def check_window(op: "Op", start: LiveInt, tokens: int, rows: int, table: str) -> None:
    """Tokens take the rows [start, start + tokens) of a table that has so many."""
    op.require_live(start.value >= 0, f"start_pos is {start.value}; positions begin at 0")
    op.require_live(
        start.value + tokens <= rows,
        f"start_pos {start.value} + {tokens} tokens is {start.value + tokens}, but {table} has "
        f"{rows} rows",
    )
