"""A Llama in ordinary PyTorch, in three styles: no op of the engine is named here.

halves: caches [B, C, H, D], written as slices; rope by rotate_half; heads shared by enable_gqa.
heads first: caches [B, H, C, D], written by index_copy_; heads repeated; mask as floats.
pairs: caches written through narrow(); rope over pairs; a mask table in a buffer.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

CONTEXT, WIDTH, HEADS, KV_HEADS, HEAD_DIM = 32, 64, 4, 2, 16


class RmsNorm(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(width) + 0.5)

    def forward(self, x: Tensor) -> Tensor:
        scale = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5)
        return self.weight * (x * scale)


def rotate_half(x: Tensor) -> Tensor:
    first, second = x[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2 :]
    return torch.cat((-second, first), dim=-1)


def rotate_pairs(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:  # cos: [S, 1, D/2]
    even, odd = x.unflatten(-1, (-1, 2)).unbind(-1)
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1).flatten(-2)


class Attention(nn.Module):
    def __init__(self, style: str) -> None:
        super().__init__()
        self.style = style
        self.q = nn.Linear(WIDTH, HEADS * HEAD_DIM, bias=False)
        self.k = nn.Linear(WIDTH, KV_HEADS * HEAD_DIM, bias=False)
        self.v = nn.Linear(WIDTH, KV_HEADS * HEAD_DIM, bias=False)
        self.o = nn.Linear(HEADS * HEAD_DIM, WIDTH, bias=False)
        dims = (1, CONTEXT, KV_HEADS, HEAD_DIM)
        if style == "heads first":
            dims = (1, KV_HEADS, CONTEXT, HEAD_DIM)
        self.register_buffer("k_cache", torch.zeros(dims))
        self.register_buffer("v_cache", torch.zeros(dims))

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, mask: Tensor, start: int) -> Tensor:
        batch, length, _ = x.shape
        q = self.q(x).view(batch, length, HEADS, HEAD_DIM)
        k = self.k(x).view(batch, length, KV_HEADS, HEAD_DIM)
        v = self.v(x).view(batch, length, KV_HEADS, HEAD_DIM)
        attend = getattr(self, f"_{self.style.replace(' ', '_')}")
        out = attend(q, k, v, cos, sin, mask, start)  # [B, H, S, D]
        return self.o(out.transpose(1, 2).reshape(batch, length, HEADS * HEAD_DIM))

    def _halves(
        self, q: Tensor, k: Tensor, v: Tensor, cos: Tensor, sin: Tensor, mask: Tensor, start: int
    ) -> Tensor:
        cos, sin = cos[:, None], sin[:, None]  # [S, 1, D]
        q, k = q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin
        end = start + q.shape[1]
        self.k_cache[:, start:end] = k
        self.v_cache[:, start:end] = v
        keys, values = self.k_cache[:, :end].transpose(1, 2), self.v_cache[:, :end].transpose(1, 2)
        return F.scaled_dot_product_attention(
            q.transpose(1, 2), keys, values, attn_mask=mask, enable_gqa=True
        )

    def _heads_first(
        self, q: Tensor, k: Tensor, v: Tensor, cos: Tensor, sin: Tensor, mask: Tensor, start: int
    ) -> Tensor:
        q, k, v = q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)
        q, k = q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin
        places = torch.arange(q.shape[2]) + start
        self.k_cache.index_copy_(2, places, k)
        self.v_cache.index_copy_(2, places, v)
        shared = HEADS // KV_HEADS
        keys = self.k_cache.repeat_interleave(shared, dim=1)
        values = self.v_cache.repeat_interleave(shared, dim=1)
        return F.scaled_dot_product_attention(q, keys, values, attn_mask=mask)

    def _pairs(
        self, q: Tensor, k: Tensor, v: Tensor, cos: Tensor, sin: Tensor, mask: Tensor, start: int
    ) -> Tensor:
        cos, sin = cos[:, None], sin[:, None]  # [S, 1, D/2]
        q, k = rotate_pairs(q, cos, sin), rotate_pairs(k, cos, sin)
        self.k_cache.narrow(1, start, q.shape[1]).copy_(k)
        self.v_cache.narrow(1, start, q.shape[1]).copy_(v)
        end = start + q.shape[1]
        keys, values = self.k_cache[:, :end].transpose(1, 2), self.v_cache[:, :end].transpose(1, 2)
        return F.scaled_dot_product_attention(
            q.transpose(1, 2), keys, values, attn_mask=mask, enable_gqa=True
        )


class Block(nn.Module):
    def __init__(self, style: str) -> None:
        super().__init__()
        self.attention_norm, self.mlp_norm = RmsNorm(WIDTH), RmsNorm(WIDTH)
        self.attention = Attention(style)
        self.gate, self.up = nn.Linear(WIDTH, 96, bias=False), nn.Linear(WIDTH, 96, bias=False)
        self.down = nn.Linear(96, WIDTH, bias=False)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, mask: Tensor, start: int) -> Tensor:
        x = x + self.attention(self.attention_norm(x), cos, sin, mask, start)
        h = self.mlp_norm(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Llama(nn.Module):
    """A model of tokens: int64 [1, S], pos: int64 [1] → logits of the last token: [1, 97]."""

    STYLES = ("halves", "heads first", "pairs")

    def __init__(self, style: str, layers: int = 2) -> None:
        super().__init__()
        self.style = style
        self.embedding = nn.Embedding(97, WIDTH)
        self.blocks = nn.ModuleList(Block(style) for _ in range(layers))
        self.norm = RmsNorm(WIDTH)
        self.head = nn.Linear(WIDTH, 97, bias=False)
        frequencies = 10_000.0 ** (-torch.arange(0, HEAD_DIM, 2) / HEAD_DIM)
        angles = torch.outer(torch.arange(CONTEXT).float(), frequencies)
        if style != "pairs":
            angles = torch.cat((angles, angles), -1)
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())
        self.register_buffer("causal", torch.ones(CONTEXT, CONTEXT, dtype=torch.bool).tril())

    def forward(self, tokens: Tensor, pos: Tensor) -> Tensor:
        start = pos[-1].item()
        end = start + tokens.shape[1]
        torch._check(start >= 0)
        torch._check(end <= CONTEXT)
        cos, sin, mask = self.cos[start:end], self.sin[start:end], self.mask(start, end)
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x, cos, sin, mask, start)
        return self.head(self.norm(x)[:, -1])

    def mask(self, start: int, end: int) -> Tensor:
        if self.style == "pairs":
            return self.causal[start:end, :end]
        if self.style == "halves":
            return torch.arange(end)[None, :] <= torch.arange(start, end)[:, None]
        unseen = torch.arange(CONTEXT)[None, :] > torch.arange(start, end)[:, None]
        return torch.zeros(unseen.shape, dtype=self.cos.dtype).masked_fill(unseen, -math.inf)
