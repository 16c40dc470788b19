"""sdpa_with_kv_cache (causal, over a cache it fills) and et_vk.sdpa (with an optional mask)."""

from py_runtime.base.dtypes import BOOL, F32
from py_runtime.base.shapes import (
    Dims,
    broadcast_strides,
    broadcasts_to,
    numel,
    strides_of,
)
from py_runtime.ops.kernels.attention_options import (
    live_together,
    take_sinks,
    take_softcap,
    take_together,
    take_window,
)
from py_runtime.ops.kernels.attentions import attention_over_cache, make_attention
from py_runtime.ops.kernels.kv_caches import CacheUpdate, take_caches
from py_runtime.ops.kernels.position_checks import check_cache
from py_runtime.ops.kernels.streaming_attention import (
    BOOL_MASK,
    FLOAT_MASK,
    Problem,
    problem_over_cache,
)
from py_runtime.ops.registry import Op, register


class AttentionOverCache(Op):
    """An op that writes k and v into the caches at start_pos, then attends causally over them.

    Shapes are [batch, tokens, heads, width], or without the batch. A subclass calls
    `build_attention` in `build`.
    """

    def build_attention(self, window: int | None = None, softcap: float | None = None) -> None:
        self.window = window
        self.q = self.tensor("q", F32)
        sinks = take_sinks(self, self.q.max_dims[-2]) if self.takes("sinks") else None
        rank = self.q.rank
        self.require(rank in (3, 4), f"q has rank {rank}; it must be 3 or 4")
        self.k, self.v = self.tensor("k", F32, rank=rank), self.tensor("v", F32, rank=rank)
        self.k_cache, self.v_cache = take_caches(self, rank)
        self.start_pos = self.live_int("start_pos")
        self.together = take_together(self)
        self.out = self.tensor("out", F32, rank=rank)
        self._check_graph()
        width = self.q.max_dims[-1]
        self.scale = self.number("scale") if self.has("scale") else width**-0.5
        caches = (self.k_cache, self.v_cache)
        self.update = CacheUpdate(self, self.k, self.v, caches, self.start_pos)
        self.attention = attention_over_cache(
            self, self.q, caches, self.start_pos, self.out, window, softcap, sinks
        )

    def _check_graph(self) -> None:
        self.require(self.k_cache is not self.v_cache, "k_cache and v_cache are the same tensor")
        q, k, cache = self.q.max_dims, self.k.max_dims, self.k_cache.max_dims
        heads, kv_heads = q[-2], k[-2]
        self.require(
            heads % kv_heads == 0,
            f"{heads} query heads cannot share {kv_heads} key and value heads evenly",
        )
        self.require(
            k == self.v.max_dims and q[:-2] == k[:-2] and q[-1] == k[-1],
            f"q {list(q)}, k {list(k)} and v {list(self.v.max_dims)} do not fit together",
        )
        self.require(
            cache == self.v_cache.max_dims and cache[:-3] == k[:-3] and cache[-2:] == k[-2:],
            f"caches {list(cache)} and {list(self.v_cache.max_dims)} do not fit k {list(k)}",
        )

    def live(self) -> None:
        q, k, v = self.q.dims, self.k.dims, self.v.dims
        cache, v_cache = self.k_cache.dims, self.v_cache.dims
        check_cache(self, self.start_pos, q[-3], cache[-3], self.window)
        context = self.start_pos.value + q[-3]
        self.require_live(
            k == v == (*q[:-2], *self.k.max_dims[-2:]) and q[-2:] == self.q.max_dims[-2:],
            f"q {list(q)}, k {list(k)} and v {list(v)} do not fit together",
        )
        self.require_live(
            cache == v_cache and cache[:-3] == k[:-3],
            f"caches {list(cache)} and {list(v_cache)} do not fit k {list(k)}",
        )
        self.out.resize(q)
        self.update(numel(k[:-3]), k[-3], k[-2] * k[-1], cache[-3])
        together = live_together(self, self.together, q[-3])
        self.attention(problem_over_cache(q, cache), context, self.scale, together=together)


@register(
    "sdpa_with_kv_cache.default",
    args="q k v k_cache v_cache start_pos seq_len attn_mask dropout_p is_causal scale out",
    mutates="k_cache v_cache",
)
class SdpaWithKvCache(AttentionOverCache):
    """Causal attention; `seq_len` is ignored, as exporters differ in it and q has the tokens."""

    def build(self) -> None:
        self.require(
            not self.has("attn_mask"), "attn_mask must be null; the mask is the causal one"
        )
        self.require(self.number("dropout_p") == 0, "dropout_p must be 0")
        causal = not self.has("is_causal") or self.boolean("is_causal")
        self.require(causal, "is_causal must be true or null")
        self.build_attention()


@register(
    "inpage.windowed_attention.default",
    args="q k v k_cache v_cache start_pos scale window softcap sinks out",
    mutates="k_cache v_cache",
)
class WindowedAttention(AttentionOverCache):
    """Attention of which a token sees the last `window` positions, its own included; null: all.

    Caches may be rings that hold what the tokens of a call see. With `softcap`, scores s become
    softcap * tanh(s / softcap). With `sinks` [query heads], one more score of each head takes part
    in the softmax, without a value.
    """

    def build(self) -> None:
        self.build_attention(take_window(self), take_softcap(self))


@register(
    "inpage.image_attention.default",
    args="q k v k_cache v_cache start_pos scale window softcap sinks together out",
    mutates="k_cache v_cache",
)
class ImageAttention(WindowedAttention):
    """The same, but the first `together` tokens of the call see each other: those of an image."""


@register("et_vk.sdpa.default", args="q k v mask scale out")
class Sdpa(Op):
    """Attention over k and v [batch, heads, tokens, width]; the mask broadcasts to the scores.

    A float mask is added to the scores; a bool mask is true where a position is visible.
    """

    def build(self) -> None:
        self.q = self.tensor("q", F32, rank=4)
        self.k, self.v = self.tensor("k", F32, rank=4), self.tensor("v", F32, rank=4)
        self.out = self.tensor("out", F32, rank=4)
        self.mask = self.tensor("mask", F32, BOOL) if self.has("mask") else None
        q, k = self.q.max_dims, self.k.max_dims
        self.require(
            k == self.v.max_dims and q[0] == k[0] and q[3] == k[3],
            f"q {list(q)}, k {list(k)} and v {list(self.v.max_dims)} do not fit together",
        )
        self.require(
            q[1] % k[1] == 0,
            f"{q[1]} query heads cannot share {k[1]} key and value heads evenly",
        )
        self.window = take_window(self) if self.takes("window") else None
        self.scale = self.number("scale") if self.has("scale") else q[3] ** -0.5
        self.attention = make_attention(
            self,
            self._problem(q, k),
            k[2],
            {"q": self.q, "k": self.k, "v": self.v, "mask": self.mask or self.q},
            self.out,
            "tensor",
            self.window,
        )

    def live(self) -> None:
        q, k = self.q.dims, self.k.dims
        self.require_live(
            k == self.v.dims and q[0] == k[0],
            f"q {list(q)}, k {list(k)} and v {list(self.v.dims)} do not fit together",
        )
        same_heads = q[1] == self.q.max_dims[1] and k[1] == self.k.max_dims[1]
        self.require_live(
            same_heads and q[3] == k[3] == self.q.max_dims[3],
            f"q {list(q)} and k {list(k)}: heads and their width cannot change",
        )
        self.require_live(
            self.window is None or q[2] == k[2],
            f"a window over {k[2]} positions for {q[2]} tokens, which must be the same",
        )
        self.out.resize(q)
        if self.mask is None:
            self.attention(self._problem(q, k), k[2], self.scale)
            return
        scores, mask = (q[0], q[1], q[2], k[2]), self.mask.dims
        self.require_live(
            broadcasts_to(mask, scores),
            f"mask {list(mask)} does not stretch to scores {list(scores)}",
        )
        kind = BOOL_MASK if self.mask.dtype is BOOL else FLOAT_MASK
        strides = broadcast_strides(mask, scores)
        self.attention(self._problem(q, k), k[2], self.scale, kind, strides)

    def _problem(self, q: Dims, k: Dims) -> Problem:
        q_batch, q_head, q_token, _ = strides_of(q)
        kv_batch, kv_head, kv_token, _ = strides_of(k)
        return Problem(
            q[0],
            q[2],
            q[1],
            k[2],
            k[1],
            q[3],
            k[2],
            q_strides=(q_batch, q_token, q_head),
            kv_strides=(kv_batch, kv_token, kv_head),
        )


@register("inpage.window_sdpa.default", args="q k v mask scale window out")
class WindowSdpa(Sdpa):
    """The same, but a token sees those alone that are less than `window` positions away."""
