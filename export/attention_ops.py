"""Attention over a cache, the plain way; ops that read caches which an earlier layer has filled."""

import math

import torch
from torch import Tensor
from torch.library import custom_op


def attend(
    q: Tensor,
    k_cache: Tensor,
    v_cache: Tensor,
    start_pos: int,
    scale: float | None,
    window: int | None,
    softcap: float | None,
    sinks: Tensor | None,
) -> Tensor:
    """q: [1, S, Hq, D] of the tokens at start_pos, whose keys and values the caches hold."""
    length = q.shape[1]
    end = start_pos + length
    repeats = q.shape[2] // k_cache.shape[2]
    keys = k_cache[:, :end].repeat_interleave(repeats, 2)  # [1, ctx, Hq, D]
    values = v_cache[:, :end].repeat_interleave(repeats, 2)
    factor = 1 / math.sqrt(q.shape[3]) if scale is None else scale
    scores = torch.einsum("bshd,bchd->bhsc", q, keys) * factor  # [1, Hq, S, ctx]
    if softcap is not None:
        scores = torch.tanh(scores / softcap) * softcap
    position, token = torch.arange(end)[None, :], torch.arange(length)[:, None] + start_pos
    sees = (position <= token) & (position > token - (end + 1 if window is None else window))
    scores = scores.masked_fill(~sees, -math.inf)
    if sinks is not None:
        column = sinks.to(scores.dtype)[None, :, None, None].expand(*scores.shape[:3], 1)
        scores = torch.cat((scores, column), -1)
    weights = scores.softmax(-1)[..., :end]
    return torch.einsum("bhsc,bchd->bshd", weights, values).contiguous()


@custom_op("inpage::attend_kv_cache", mutates_args=())
def attend_kv_cache(
    q: Tensor, k_cache: Tensor, v_cache: Tensor, start_pos: int, scale: float | None
) -> Tensor:
    """Attend as sdpa_with_kv_cache does, over caches that hold these tokens already."""
    return attend(q, k_cache, v_cache, start_pos, scale, None, None, None)


@custom_op("inpage::attend_window", mutates_args=())
def attend_window(
    q: Tensor,
    k_cache: Tensor,
    v_cache: Tensor,
    start_pos: int,
    scale: float | None,
    window: int | None,
    softcap: float | None,
    sinks: Tensor | None,
) -> Tensor:
    """Attend as windowed_attention does, over caches that hold these tokens already."""
    return attend(q, k_cache, v_cache, start_pos, scale, window, softcap, sinks)


@custom_op("inpage::rotary_of_one", mutates_args=())
def rotary_of_one(x: Tensor, cos: Tensor, sin: Tensor, start_pos: int) -> Tensor:
    """Rotate one tensor as apply_rotary_emb_hf does."""
    return rotate(x, cos, sin, start_pos)


def _like_the_first(x: Tensor, *others: object) -> Tensor:
    return torch.empty_like(x)


for op in (attend_kv_cache, attend_window, rotary_of_one):
    op.register_fake(_like_the_first)


def rotate(x: Tensor, cos: Tensor, sin: Tensor, start_pos: int) -> Tensor:
    """x: [B, S, H, D]; cos, sin: [max_positions, R]; halves (i, i + R/2); R < D passes on."""
    rotary = cos.shape[1]
    rows = slice(start_pos, start_pos + x.shape[1])
    turning, rest = x[..., :rotary], x[..., rotary:]
    first, second = turning.chunk(2, -1)
    half_turned = torch.cat((-second, first), -1)
    table_cos = cos[rows].to(x.dtype)[:, None, :]  # [S, 1, R]
    table_sin = sin[rows].to(x.dtype)[:, None, :]
    return torch.cat((turning * table_cos + half_turned * table_sin, rest), -1)
