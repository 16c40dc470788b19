"""For ops that a position reaches: the check of its rows, and no other work when it alone moves."""

from typing import TYPE_CHECKING

from py_runtime.live import Journal, LiveInt
from py_runtime.shapes import Dims

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


class SettledDims:
    """The dims that an op's launches and outputs are set for.

    Kernels read positions themselves, so a decode step, where the position alone moves, changes no
    parameter; each op would find that out again for every token. Journaled like the launches: a
    call that fails takes both back.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._dims: tuple[Dims, ...] = ()

    def are(self, *dims: Dims) -> bool:
        """Whether everything is set for these; from now on it counts as set."""
        if dims == self._dims:
            return True
        self._journal.record(self, self._dims)
        self._dims = dims
        return False

    def restore(self, old: tuple[Dims, ...]) -> None:
        self._dims = old

    def current(self) -> tuple[Dims, ...]:
        return self._dims

    resume = restore
