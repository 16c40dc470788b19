"""update_cache: value [batch, tokens, heads, width] into rows [start_pos, start_pos + tokens)."""

from py_runtime.base.dtypes import BOOL, F32, I32, I64
from py_runtime.base.shapes import numel
from py_runtime.ops.kernels.position_checks import check_rows
from py_runtime.ops.registry import Op, register


@register("update_cache.default", args="value cache start_pos out", mutates="cache")
class UpdateCache(Op):
    """Shapes may lack the batch. `out` is the cache after the write, or a dummy of other shape."""

    def build(self) -> None:
        self.value = self.tensor("value", F32, I32, I64, BOOL)
        self.cache = self.tensor("cache", self.value.dtype, rank=self.value.rank)
        self.start_pos = self.live_int("start_pos")
        self.out = self.tensor("out")
        value, cache = self.value.max_dims, self.cache.max_dims
        self.require(self.value.rank in (3, 4), f"value has rank {len(value)}; it must be 3 or 4")
        self.require(
            value[:-3] == cache[:-3] and value[-2:] == cache[-2:],
            f"value {list(value)} does not fit into the cache {list(cache)}",
        )
        self.returns_cache = self.out.max_dims == cache and self.out.dtype is self.cache.dtype
        if self.returns_cache:
            self.builder.alias_mutated(self.cache, self.out)
        self.update = self.launch(
            "attention/update_cache",
            bind={"value": self.value, "cache": self.cache, "start_pos": self.start_pos},
        )

    def live(self) -> None:
        value, cache = self.value.dims, self.cache.dims
        check_rows(self, self.start_pos, value[-3], cache[-3], "the cache")
        self.require_live(
            value[:-3] == cache[:-3] and value[-2:] == cache[-2:],
            f"value {list(value)} does not fit into the cache {list(cache)}",
        )
        if self.returns_cache:
            self.out.resize(cache)
        count = numel(value)
        self.update.for_each(
            count,
            count=count,
            tokens=value[-3],
            token_size=value[-2] * value[-1],
            capacity=cache[-3],
        )
