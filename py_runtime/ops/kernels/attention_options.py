"""Options of attention over a cache: a window, a soft cap of scores, sinks, images."""

from py_runtime.base.dtypes import F32
from py_runtime.live.values import LiveInt, LiveTensor
from py_runtime.ops.registry import Op


def take_window(op: Op) -> int | None:
    """Take the number of positions that a token sees, its own included; None: all."""
    if not op.has("window"):
        return None
    window = op.integer("window")
    op.require(window >= 1, f"a window of {window} positions; it must be 1 or more")
    return window


def take_softcap(op: Op) -> float | None:
    """Take the soft cap of scores; None: they have none."""
    if not op.has("softcap"):
        return None
    softcap = op.number("softcap")
    op.require(softcap > 0, f"a softcap of {softcap}; it must be above 0")
    return softcap


def take_sinks(op: Op, heads: int) -> LiveTensor | None:
    """Take the sinks [query heads]: scores that take part in the softmax without a value."""
    if not op.has("sinks"):
        return None
    sinks = op.tensor("sinks", F32)
    op.require(sinks.max_dims == (heads,), f"{list(sinks.max_dims)} sinks for {heads} heads")
    return sinks


def take_together(op: Op) -> LiveInt | None:
    """Take how many of a call's first tokens see each other; None: each sees those before it."""
    return op.live_int("together") if op.takes("together") and op.has("together") else None


def live_together(op: Op, together: LiveInt | None, tokens: int) -> int:
    """Return that number for a call of so many tokens."""
    if together is None:
        return 0
    count = together.value
    op.require_live(0 <= count <= tokens, f"{count} of {tokens} tokens cannot see each other")
    return count
