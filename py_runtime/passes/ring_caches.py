"""A pass that turns the caches of windowed layers into rings.

A ring holds what the tokens of one call see and no more, whatever the context: a position reuses
the row of one that has left the window. A cache that anything else reads keeps all of its rows.
"""

from dataclasses import replace

from py_runtime.gpu.kernel_target import KernelTarget
from py_runtime.passes.chain import Chain
from py_runtime.program import OpCall, Program, TensorValue, op_names

SEEING = (op_names.ATTEND_WINDOW, op_names.ATTEND_IMAGES)


def run(program: Program, target: KernelTarget) -> Program:
    """Shrink caches [..., context, H, D] to [..., window + tokens - 1, H, D]."""
    chain = Chain(program)
    for _, call in chain.calls_of(op_names.WINDOWED, op_names.OF_IMAGES):
        caches = [chain.arg(call, name) for name in ("k_cache", "v_cache")]
        if all(_is_seen_alike(chain, cache, call) for cache in caches):
            _shorten(chain, call, caches)
    return chain.program()


def _is_seen_alike(chain: Chain, cache: int, call: OpCall) -> bool:
    """Return whether only this call fills the cache and all readers see the same window of it.

    They must read it after it was filled.
    """
    reading = chain.calls_reading(cache)
    if not chain.is_state(cache) or reading is None or reading[0].call != call:
        return False
    return all(
        other.name in SEEING and _view(chain, other) == _view(chain, call)
        for _, other in reading[1:]
    )


def _view(chain: Chain, call: OpCall) -> tuple[object, ...]:
    """Return how far back the call's tokens look, how many there are, and where they begin."""
    window, q = chain.number(chain.arg(call, "window")), chain.dims(chain.arg(call, "q"))
    return window, q[:-2], chain.arg(call, "start_pos")


def _shorten(chain: Chain, call: OpCall, caches: list[int]) -> None:
    window, q = chain.number(chain.arg(call, "window")), chain.dims(chain.arg(call, "q"))
    if window is None or window < 1 or len(q) < 3:
        return
    rows = int(window) + q[-3] - 1  # the first token's window, and the tokens after it
    for cache in caches:
        value = chain.values[cache]
        assert isinstance(value, TensorValue), "it is a state"
        if len(value.dims) == len(q) and rows < value.dims[-3]:
            dims = (*value.dims[:-3], rows, *value.dims[-2:])
            chain.values[cache] = replace(value, dims=dims)
