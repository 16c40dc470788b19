"""The check that tokens at a position fit into the rows of a table or a cache."""

from typing import TYPE_CHECKING

from py_runtime.live.values import LiveInt

if TYPE_CHECKING:
    from py_runtime.ops.registry import Op


def check_window(op: "Op", start: LiveInt, tokens: int, rows: int, table: str) -> None:
    """Tokens take the rows [start, start + tokens) of a table that has so many."""
    position = start.value
    if 0 <= position <= rows - tokens:
        return
    op.require_live(position >= 0, f"start_pos is {position}; positions begin at 0")
    op.require_live(
        False,
        f"start_pos {position} + {tokens} tokens is {position + tokens}, but {table} has "
        f"{rows} rows",
    )
