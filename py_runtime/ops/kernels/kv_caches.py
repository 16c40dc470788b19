"""KV caches, stored as f32, or as f16 where the adapter knows it."""

from py_runtime.base.dtypes import F16, F32
from py_runtime.live.values import LiveTensor
from py_runtime.ops.registry import Op

KINDS = (F32, F16)


def take_caches(op: Op, rank: int | None = None) -> tuple[LiveTensor, LiveTensor]:
    """Take an op's k_cache and v_cache, which have the same dtype."""
    kinds = (F32,) if op.builder.target.cpu else KINDS  # a CPU takes longer to unpack halves
    k_cache, v_cache = (op.tensor(name, *kinds, rank=rank) for name in ("k_cache", "v_cache"))
    op.require(
        k_cache.dtype is v_cache.dtype,
        f"caches are {k_cache.dtype.name} and {v_cache.dtype.name}; both must be the same",
    )
    op.require(
        k_cache.dtype is F32 or k_cache.max_dims[-1] % 4 == 0,
        f"caches of halves have heads of {k_cache.max_dims[-1]}; it must be a multiple of 4",
    )
    return k_cache, v_cache
