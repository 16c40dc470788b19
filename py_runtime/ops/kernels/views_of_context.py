"""What attention over a cache may leave out: positions beyond a window, and scores beyond a cap."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from py_runtime.ops.registry import Op


def take_window(op: "Op") -> int | None:
    """Positions that a token sees, its own included; None: all."""
    if not op.has("window"):
        return None
    window = op.integer("window")
    op.require(window >= 1, f"a window of {window} positions; it must be 1 or more")
    return window


def take_softcap(op: "Op") -> float | None:
    """What scores come near to; None: they are taken as they are."""
    if not op.has("softcap"):
        return None
    softcap = op.number("softcap")
    op.require(softcap > 0, f"a softcap of {softcap}; it must be above 0")
    return softcap
