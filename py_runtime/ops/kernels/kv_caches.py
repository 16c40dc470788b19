"""KV caches: their types, and the launches that write keys and values into them.

A cache holds floats, halves, or blocks of 32 values: shaders/attention/fragments/kv_* read them,
store_* write values one by one, and cached_* are the blocks.
"""

from py_runtime.base.dtypes import CACHE_DTYPES, F16, F32
from py_runtime.base.shapes import ceil_div
from py_runtime.live.launch import Bindable
from py_runtime.live.values import LiveInt, LiveTensor
from py_runtime.ops.registry import Op

Caches = tuple[LiveTensor, LiveTensor]  # of keys and values


def take_caches(op: Op, rank: int | None = None) -> Caches:
    """Take an op's k_cache and v_cache, which have the same dtype."""
    kinds = CACHE_DTYPES.values()
    k_cache, v_cache = (op.tensor(name, *kinds, rank=rank) for name in ("k_cache", "v_cache"))
    op.require(
        k_cache.dtype is v_cache.dtype,
        f"caches are {k_cache.dtype.name} and {v_cache.dtype.name}; both must be the same",
    )
    kind, (heads, width) = k_cache.dtype, k_cache.max_dims[-2:]
    op.require(
        kind is F32 or width % 4 == 0,
        f"caches of {kind.name} have heads of {width}; it must be a multiple of 4",
    )
    op.require(
        heads * width % kind.block == 0,
        f"caches of {kind.name} have {heads} heads of {width}, which are not whole blocks of "
        f"{kind.block} values",
    )
    return k_cache, v_cache


def takes_values_alone(op: Op, cache: LiveTensor) -> bool:
    """Return whether kernels that compute keys and values can store them one by one."""
    return cache.dtype is F32 or (cache.dtype is F16 and not op.builder.target.cpu)


def plugs_of_cache(cache: LiveTensor) -> dict[str, str]:
    """Return the fragments by which attention reads a cache."""
    kind = cache.dtype
    return {"kv": kind.name} if kind.block == 1 else {"kv": "blocks", "cached": kind.name}


class CacheUpdate:
    """The launch that writes the keys and values of a call's tokens into the caches."""

    def __init__(
        self, op: Op, k: Bindable, v: Bindable, caches: Caches, start_pos: LiveInt
    ) -> None:
        self.block = caches[0].dtype.block
        bind = {
            **{"k": k, "v": v, "k_cache": caches[0], "v_cache": caches[1]},
            "start_pos": start_pos,
        }
        kind = caches[0].dtype.name
        if self.block == 1:
            self.update = op.launch("attention/update_kv_cache", plugs={"store": kind}, bind=bind)
        else:
            plugs = {"cached": kind}
            self.update = op.launch("attention/update_kv_blocks", plugs=plugs, bind=bind)

    def __call__(self, batches: int, tokens: int, token_size: int, capacity: int) -> None:
        """Set the launch for tokens of so many values."""
        rows = {"tokens": tokens, "capacity": capacity}
        if self.block == 1:
            pairs = ceil_div(token_size, 2)
            count = batches * tokens * pairs
            self.update.for_each(count, pairs=pairs, count=count, token_size=token_size, **rows)
            return
        blocks = token_size // self.block
        count = batches * tokens * blocks
        self.update.for_each(2 * count, blocks=blocks, count=count, **rows)
