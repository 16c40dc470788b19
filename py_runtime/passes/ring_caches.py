"""Caches of layers that see a window become rings: they hold what the tokens of one call see, and
no more, whatever the context.

A position takes the row of one so many before it. A cache that anything else looks at keeps all of
its rows.
"""

from dataclasses import replace

from py_runtime.gpu.kernel_target import KernelTarget
from py_runtime.passes.chain import Chain
from py_runtime.program import OpCall, Program, TensorValue

WINDOWED = "inpage.windowed_attention.default"


def run(program: Program, target: KernelTarget) -> Program:
    chain = Chain(program)
    for place, call in chain.places(WINDOWED):
        caches = [chain.arg(call, name) for name in ("k_cache", "v_cache")]
        if all(_is_its_own(chain, cache, (place, call)) for cache in caches):
            _shorten(chain, call, caches)
    return chain.program()


def _is_its_own(chain: Chain, cache: int, attention: tuple[int, OpCall]) -> bool:
    """Whether this call alone knows the cache."""
    return chain.is_state(cache) and chain.only_call_reading(cache) == attention


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
