"""The engine's fused ops as torch custom ops: what an export graph holds, and the oracle for tests.

Each is written the plain way, in whatever float dtype it gets, so float64 is the reference.
`ENGINE_NAMES` says what the engine calls them.
"""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.library import custom_op

from export.attention_ops import attend, rotate
from py_runtime.decoder.mixtures import CLAMPED_ALPHA, CLAMPED_LIMIT
from py_runtime.gguf.plane_values import dense
from py_runtime.program.weight_kinds import BLOCK_KINDS, BlockKind

ENGINE_NAMES = {
    "inpage.rms_norm.default": "et_vk.rms_norm.default",
    "inpage.linear_q4gsw.default": "et_vk.linear_q4gsw.default",
    "inpage.embedding_q4gsw.default": "et_vk.embedding_q4gsw.default",
    "inpage.apply_rotary_emb.default": "et_vk.apply_rotary_emb.default",
    "inpage.apply_rotary_emb_hf.default": "et_vk.apply_rotary_emb_hf.default",
    "inpage.sdpa_with_kv_cache.default": "sdpa_with_kv_cache.default",
    "inpage.sdpa.default": "et_vk.sdpa.default",
    "inpage.update_cache.default": "update_cache.default",
}


@custom_op("inpage::rms_norm", mutates_args=())
def rms_norm(x: Tensor, weight: Tensor | None, eps: float) -> Tensor:
    """x: [..., width], weight: [width]; None: of ones."""
    out = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)
    return out if weight is None else out * weight.to(x.dtype)


@rms_norm.register_fake
def _(x: Tensor, weight: Tensor | None, eps: float) -> Tensor:
    return torch.empty_like(x)


def unpack_nibbles(weight: Tensor, low_first: bool = True) -> Tensor:
    """weight: uint8 [N, K/2] → uint8 [N, K]; byte j holds elements 2j and 2j + 1."""
    low, high = weight & 15, weight >> 4
    return torch.stack((low, high) if low_first else (high, low), dim=-1).flatten(-2)


@custom_op("inpage::linear_q4gsw", mutates_args=())
def linear_q4gsw(
    x: Tensor, weight: Tensor, scales: Tensor, group_size: int, bias: Tensor | None
) -> Tensor:
    """x: [..., K], weight: uint8 [N, K_packed], scales: [G, N padded to 4], bias: [N padded]."""
    rows, inner = weight.shape[0], x.shape[-1]
    quantised = unpack_nibbles(weight)[:, :inner].to(x.dtype) - 8
    per_element = scales[:, :rows].T.to(x.dtype).repeat_interleave(group_size, 1)[:, :inner]
    out = x @ (quantised * per_element).T
    return out if bias is None else out + bias[:rows].to(x.dtype)


@linear_q4gsw.register_fake
def _(x: Tensor, weight: Tensor, scales: Tensor, group_size: int, bias: Tensor | None) -> Tensor:
    return x.new_empty((*x.shape[:-1], weight.shape[0]))


@custom_op("inpage::embedding_q4gsw", mutates_args=())
def embedding_q4gsw(
    weight: Tensor, scales: Tensor, group_size: int, indices: Tensor, is_linear: bool
) -> Tensor:
    """weight: uint8 [V, E/2], scales: [V, E/group_size], indices: integers → [..., E]."""
    quantised = unpack_nibbles(weight[indices], low_first=is_linear).to(scales.dtype) - 8
    return quantised * scales[indices].repeat_interleave(group_size, -1)


@embedding_q4gsw.register_fake
def _(weight: Tensor, scales: Tensor, group_size: int, indices: Tensor, is_linear: bool) -> Tensor:
    return scales.new_empty((*indices.shape, weight.shape[1] * 2))


def dequantise_blocks(kind: str, weight: Tensor, scales: Tensor | None) -> Tensor:
    """Return a weight of one of BLOCK_KINDS as f32 [N, K]."""
    own = None if scales is None else scales.numpy()
    return torch.from_numpy(dense(kind, weight.numpy(), own))


def _linear_blocks(
    kind: str, x: Tensor, weight: Tensor, scales: Tensor | None, bias: Tensor | None
) -> Tensor:
    out = x @ dequantise_blocks(kind, weight, scales).to(x.dtype).T
    return out if bias is None else out + bias.to(x.dtype)


def _embedding_blocks(kind: str, weight: Tensor, scales: Tensor | None, indices: Tensor) -> Tensor:
    rows = dequantise_blocks(kind, weight, scales)[indices.flatten()]
    return rows.view(*indices.shape, -1)


def _define_block_kind(kind: BlockKind) -> None:
    """inpage::linear_KIND [x, weight, scales, bias] and inpage::embedding_KIND."""

    def linear(x: Tensor, weight: Tensor, scales: Tensor, bias: Tensor | None) -> Tensor:
        return _linear_blocks(kind.name, x, weight, scales, bias)

    def linear_fake(x: Tensor, weight: Tensor, scales: Tensor, bias: Tensor | None) -> Tensor:
        return x.new_empty((*x.shape[:-1], weight.shape[0]))

    def embedding(weight: Tensor, scales: Tensor, indices: Tensor) -> Tensor:
        return _embedding_blocks(kind.name, weight, scales, indices)

    def embedding_fake(weight: Tensor, scales: Tensor, indices: Tensor) -> Tensor:
        return _rows_of(kind, weight, indices)

    _define(kind, linear, linear_fake, embedding, embedding_fake)


def _define_float_kind(kind: BlockKind) -> None:
    """Define the ops of a kind without scales."""

    def linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        return _linear_blocks(kind.name, x, weight, None, bias)

    def linear_fake(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        return x.new_empty((*x.shape[:-1], weight.shape[0]))

    def embedding(weight: Tensor, indices: Tensor) -> Tensor:
        return _embedding_blocks(kind.name, weight, None, indices)

    def embedding_fake(weight: Tensor, indices: Tensor) -> Tensor:
        return _rows_of(kind, weight, indices)

    _define(kind, linear, linear_fake, embedding, embedding_fake)


def _rows_of(kind: BlockKind, weight: Tensor, indices: Tensor) -> Tensor:
    width = weight.shape[1] * kind.block // kind.elements
    return weight.new_empty((*indices.shape, width), dtype=torch.float32)


def _define(
    kind: BlockKind,
    linear: Callable[..., Tensor],
    linear_fake: Callable[..., Tensor],
    embedding: Callable[..., Tensor],
    embedding_fake: Callable[..., Tensor],
) -> None:
    custom_op(f"inpage::linear_{kind.name}", linear, mutates_args=()).register_fake(linear_fake)
    look_up = custom_op(f"inpage::embedding_{kind.name}", embedding, mutates_args=())
    look_up.register_fake(embedding_fake)


for _kind in BLOCK_KINDS.values():
    (_define_block_kind if _kind.has_scales else _define_float_kind)(_kind)


@custom_op("inpage::apply_rotary_emb", mutates_args=())
def apply_rotary_emb(
    xq: Tensor, xk: Tensor, freqs_cos: Tensor, freqs_sin: Tensor
) -> tuple[Tensor, Tensor]:
    """xq, xk: [B, S, H, D], pairs (2i, 2i + 1); freqs: [S, D/2], row s for token s."""

    def rotate(x: Tensor) -> Tensor:
        cos = freqs_cos[: x.shape[1]].to(x.dtype)[:, None, :]  # [S, 1, D/2]
        sin = freqs_sin[: x.shape[1]].to(x.dtype)[:, None, :]
        even, odd = x[..., 0::2], x[..., 1::2]
        return torch.stack((even * cos - odd * sin, even * sin + odd * cos), -1).flatten(-2)

    return rotate(xq), rotate(xk)


@apply_rotary_emb.register_fake
def _(xq: Tensor, xk: Tensor, freqs_cos: Tensor, freqs_sin: Tensor) -> tuple[Tensor, Tensor]:
    return torch.empty_like(xq), torch.empty_like(xk)


@custom_op("inpage::apply_rotary_emb_hf", mutates_args=())
def apply_rotary_emb_hf(
    xq: Tensor, xk: Tensor, cos: Tensor, sin: Tensor, start_pos: int
) -> tuple[Tensor, Tensor]:
    """xq, xk: [B, S, H, D]; cos, sin: [max_positions, R]; halves (i, i + R/2); R < D passes on."""
    return rotate(xq, cos, sin, start_pos), rotate(xk, cos, sin, start_pos)


@apply_rotary_emb_hf.register_fake
def _(xq: Tensor, xk: Tensor, cos: Tensor, sin: Tensor, start_pos: int) -> tuple[Tensor, Tensor]:
    return torch.empty_like(xq), torch.empty_like(xk)


@custom_op("inpage::sdpa_with_kv_cache", mutates_args=("k_cache", "v_cache"))
def sdpa_with_kv_cache(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    k_cache: Tensor,
    v_cache: Tensor,
    start_pos: int,
    seq_len: int,
    attn_mask: Tensor | None,
    dropout_p: float,
    is_causal: bool,
    scale: float | None,
) -> Tensor:
    """q: [1, S, Hq, D]; k, v: [1, S, Hkv, D]; caches: [1, C, Hkv, D], written at start_pos.

    seq_len, attn_mask and dropout_p are there for the engine's argument order and have one value.
    """
    end = start_pos + q.shape[1]
    k_cache[:, start_pos:end] = k
    v_cache[:, start_pos:end] = v
    return attend(q, k_cache, v_cache, start_pos, scale, None, None, None)


@sdpa_with_kv_cache.register_fake
def _(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    k_cache: Tensor,
    v_cache: Tensor,
    start_pos: int,
    seq_len: int,
    attn_mask: Tensor | None,
    dropout_p: float,
    is_causal: bool,
    scale: float | None,
) -> Tensor:
    return torch.empty_like(q)


@custom_op("inpage::windowed_attention", mutates_args=("k_cache", "v_cache"))
def windowed_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    k_cache: Tensor,
    v_cache: Tensor,
    start_pos: int,
    scale: float | None,
    window: int | None,
    softcap: float | None,
    sinks: Tensor | None,
) -> Tensor:
    """Attend as sdpa_with_kv_cache does, but only to the last `window` tokens, itself included.

    Scores s become softcap * tanh(s / softcap), where there is one. Sinks, one for each query head,
    take part in the softmax, and add nothing to the result.
    """
    end = start_pos + q.shape[1]
    k_cache[:, start_pos:end] = k
    v_cache[:, start_pos:end] = v
    return attend(q, k_cache, v_cache, start_pos, scale, window, softcap, sinks)


@windowed_attention.register_fake
def _(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    k_cache: Tensor,
    v_cache: Tensor,
    start_pos: int,
    scale: float | None,
    window: int | None,
    softcap: float | None,
    sinks: Tensor | None,
) -> Tensor:
    return torch.empty_like(q)


@custom_op("inpage::sdpa", mutates_args=())
def sdpa(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, scale: float | None) -> Tensor:
    """q: [B, Hq, S, D]; k, v: [B, Hkv, L, D]; mask: bool (seen) or float (added), to the scores."""
    attention = torch.nn.functional.scaled_dot_product_attention
    return attention(q, k, v, mask, scale=scale, enable_gqa=q.shape[1] != k.shape[1]).contiguous()


@sdpa.register_fake
def _(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, scale: float | None) -> Tensor:
    return q.new_empty(q.shape)


@custom_op("inpage::update_cache", mutates_args=("cache",))
def update_cache(value: Tensor, cache: Tensor, start_pos: int) -> Tensor:
    """value: [(B,) S, H, D] into rows [start_pos, start_pos + S) of cache [(B,) C, H, D]."""
    cache.narrow(-3, start_pos, value.shape[-3]).copy_(value)
    return cache.clone()


@update_cache.register_fake
def _(value: Tensor, cache: Tensor, start_pos: int) -> Tensor:
    return torch.empty_like(cache)


@custom_op("inpage::experts", mutates_args=())
def experts(
    x: Tensor,
    logits: Tensor,
    choice: Tensor | None,
    used: int,
    renormalised: bool,
    scoring: str,
    scale: float,
    kinds: str,
    gate: Tensor,
    gate_scales: Tensor | None,
    gate_bias: Tensor | None,
    up: Tensor,
    up_scales: Tensor | None,
    up_bias: Tensor | None,
    down: Tensor,
    down_scales: Tensor | None,
    down_bias: Tensor | None,
    group_size: int,
    activation: str,
) -> Tensor:
    """Send each token through the experts of its largest scores.

    x: [..., W], logits: [..., experts]; gate, up: [experts * hidden, W], down: [experts * W,
    hidden], in these kinds.
    """
    width, count = x.shape[-1], logits.shape[-1]
    stored = ((gate, gate_scales), (up, up_scales), (down, down_scales))
    gates, ups, downs = (
        _dense(kind, group_size, *parts).to(x.dtype).view(count, -1, columns)
        for kind, parts, columns in zip(
            kinds.split(), stored, (width, width, len(gate) // count), strict=True
        )
    )
    biases = [
        torch.zeros(count, 1, dtype=x.dtype) if bias is None else bias.to(x.dtype).view(count, -1)
        for bias in (gate_bias, up_bias, down_bias)
    ]
    own_scores = logits.reshape(-1, count)
    scores = (
        own_scores.softmax(-1) if scoring == "softmax" else own_scores.sigmoid()
    )  # [S, experts]
    chosen = (scores if choice is None else scores + choice).topk(used).indices  # [S, used]
    shares = scores.gather(-1, chosen)
    if renormalised:
        shares = shares / (shares.sum(-1, keepdim=True) + (0 if scoring == "softmax" else 1e-6))
    rows = []
    for line, own, theirs in zip(x.reshape(-1, width), chosen, shares * scale, strict=True):
        first, second = gates[own] @ line + biases[0][own], ups[own] @ line + biases[1][own]
        hidden = _gate(activation, first, second)  # [used, hidden]
        results = (downs[own] @ hidden[..., None])[..., 0] + biases[2][own]
        rows.append((theirs[:, None] * results).sum(0))
    return torch.stack(rows).view(x.shape)


def _gate(activation: str, gate: Tensor, up: Tensor) -> Tensor:
    if activation == "silu":
        return torch.nn.functional.silu(gate) * up
    gate, up = gate.clamp(max=CLAMPED_LIMIT), up.clamp(-CLAMPED_LIMIT, CLAMPED_LIMIT)
    return (up + 1) * gate * torch.sigmoid(CLAMPED_ALPHA * gate)


def _dense(kind: str, group_size: int, weight: Tensor, scales: Tensor | None) -> Tensor:
    """Return a weight of any kind that the exporter writes as f32 [N, K]."""
    if kind == "f32":
        return weight
    if kind in BLOCK_KINDS:
        return dequantise_blocks(kind, weight, scales)
    assert scales is not None, "q4gsw has scales"
    quantised = unpack_nibbles(weight).float() - 8
    return quantised * scales[:, : len(weight)].T.repeat_interleave(group_size, 1)


@experts.register_fake
def _(
    x: Tensor,
    logits: Tensor,
    choice: Tensor | None,
    used: int,
    renormalised: bool,
    scoring: str,
    scale: float,
    kinds: str,
    gate: Tensor,
    gate_scales: Tensor | None,
    gate_bias: Tensor | None,
    up: Tensor,
    up_scales: Tensor | None,
    up_bias: Tensor | None,
    down: Tensor,
    down_scales: Tensor | None,
    down_bias: Tensor | None,
    group_size: int,
    activation: str,
) -> Tensor:
    return torch.empty_like(x)
