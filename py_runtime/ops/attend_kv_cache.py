"""inpage.attend_kv_cache: causal attention over caches that another op has filled; and
inpage.attend_window, which may look back less far."""

from py_runtime.base.dtypes import F32
from py_runtime.ops.kernels.kv_caches import take_caches
from py_runtime.ops.kernels.position_checks import check_cache
from py_runtime.ops.kernels.streaming_attention import StreamingAttention, problem_over_cache
from py_runtime.ops.kernels.views_of_context import take_sinks, take_softcap, take_window
from py_runtime.ops.registry import Op, register


@register("inpage.attend_kv_cache.default", args="q k_cache v_cache start_pos scale out")
class AttendKvCache(Op):
    """q: [tokens, heads, width] of the tokens at start_pos; caches: [capacity, kv heads, width].

    Each may have a leading batch. A token sees itself and what came before.
    """

    may_sink = False

    def build(self) -> None:
        self.build_attention()

    def build_attention(self, window: int | None = None, softcap: float | None = None) -> None:
        self.window = window
        self.q = self.tensor("q", F32)
        self.sinks = take_sinks(self, self.q.max_dims[-2]) if self.may_sink else None
        self.require(self.q.rank in (3, 4), f"q has rank {self.q.rank}; it must be 3 or 4")
        self.k_cache, self.v_cache = take_caches(self, self.q.rank)
        self.start_pos = self.live_int("start_pos")
        self.out = self.tensor("out", F32, rank=self.q.rank)
        q, cache = self.q.max_dims, self.k_cache.max_dims
        self.require(
            cache == self.v_cache.max_dims
            and cache[:-3] == q[:-3]
            and cache[-1] == q[-1]
            and q[-2] % cache[-2] == 0,
            f"caches {list(cache)} and {list(self.v_cache.max_dims)} do not fit q {list(q)}",
        )
        self.scale = self.number("scale") if self.has("scale") else q[-1] ** -0.5
        self.attention = StreamingAttention(
            self,
            problem_over_cache(q, cache),
            cache[-3],
            {"q": self.q, "k": self.k_cache, "v": self.v_cache, "start_pos": self.start_pos},
            self.out,
            "causal" if window is None else "windowed",
            window,
            softcap,
            self.sinks,
        )

    def live(self) -> None:
        q, cache = self.q.dims, self.k_cache.dims
        check_cache(self, self.start_pos, q[-3], cache[-3], self.window)
        context = self.start_pos.value + q[-3]
        self.require_live(
            cache == self.v_cache.dims
            and cache[:-3] == q[:-3]
            and (cache[-2:], q[-2:]) == (self.k_cache.max_dims[-2:], self.q.max_dims[-2:]),
            f"caches {list(cache)} and {list(self.v_cache.dims)} do not fit q {list(q)}",
        )
        self.out.resize(q)
        self.attention(problem_over_cache(q, cache), context, self.scale)


@register(
    "inpage.attend_window.default",
    args="q k_cache v_cache start_pos scale window softcap sinks out",
)
class AttendWindow(AttendKvCache):
    """A token sees the last `window` positions, its own included; null: all before it. Caches may
    be rings of what the tokens of a call see.

    With `softcap`, scores s become softcap * tanh(s / softcap). With `sinks` [query heads], a score
    more of each head takes part in the softmax, and gives nothing.
    """

    may_sink = True

    def build(self) -> None:
        self.build_attention(take_window(self), take_softcap(self))
