"""What attention over a cache may leave out: positions beyond a window, scores beyond a cap, and
shares that go to none of them."""

from py_runtime.base.dtypes import F32
from py_runtime.live.values import LiveTensor
from py_runtime.ops.registry import Op


def take_window(op: Op) -> int | None:
    """Positions that a token sees, its own included; None: all."""
    if not op.has("window"):
        return None
    window = op.integer("window")
    op.require(window >= 1, f"a window of {window} positions; it must be 1 or more")
    return window


def take_softcap(op: Op) -> float | None:
    """What scores come near to; None: they are taken as they are."""
    if not op.has("softcap"):
        return None
    softcap = op.number("softcap")
    op.require(softcap > 0, f"a softcap of {softcap}; it must be above 0")
    return softcap


def take_sinks(op: Op, heads: int) -> LiveTensor | None:
    """[query heads], each with a score that takes a share of the softmax for nothing."""
    if not op.has("sinks"):
        return None
    sinks = op.tensor("sinks", F32)
    op.require(sinks.max_dims == (heads,), f"{list(sinks.max_dims)} sinks for {heads} heads")
    return sinks
