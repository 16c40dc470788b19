"""The torch modules of the suite, made of the engine's ops; in float64 their own oracle."""

import torch
from torch import Tensor, nn

from export import torch_ops

EPS = 1e-5


class RmsNorm(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width))

    def forward(self, x: Tensor) -> Tensor:  # x: [1, S, width]
        return torch_ops.rms_norm(x, self.weight, EPS)


class RmsOfRms(RmsNorm):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(super().forward(x))


class RmsPlusInput(RmsNorm):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) + x


class RmsTimesInput(RmsNorm):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) * x


class LinearQ4(nn.Module):
    """4-bit weights with random nibbles and scales: what is tested is the arithmetic."""

    def __init__(self, inner: int, rows: int, group_size: int = 32, bias: bool = False) -> None:
        super().__init__()
        packed = -(-inner // 8) * 4
        groups, padded_rows = -(-inner // group_size), -(-rows // 4) * 4
        self.group_size = group_size
        self.register_buffer("weight", torch.randint(0, 256, (rows, packed), dtype=torch.uint8))
        scales = torch.rand(groups, padded_rows) / inner**0.5 / 4
        self.register_buffer("scales", scales)
        self.register_buffer("bias", torch.randn(padded_rows) if bias else None)

    def forward(self, x: Tensor) -> Tensor:  # x: [..., K] → [..., N]
        return torch_ops.linear_q4gsw(x, self.weight, self.scales, self.group_size, self.bias)


class Embedding(nn.Module):
    def __init__(self, vocabulary: int, width: int) -> None:
        super().__init__()
        self.table = nn.Embedding(vocabulary, width)

    def forward(self, tokens: Tensor) -> Tensor:  # tokens: int64 [1, S] → [1, S, width]
        return self.table(tokens)


class EmbeddingQ4(nn.Module):
    def __init__(self, vocabulary: int, width: int, group_size: int = 32) -> None:
        super().__init__()
        self.group_size = group_size
        packed = torch.randint(0, 256, (vocabulary, width // 2), dtype=torch.uint8)
        self.register_buffer("weight", packed)
        self.register_buffer("scales", torch.rand(vocabulary, width // group_size))

    def forward(self, tokens: Tensor) -> Tensor:
        return torch_ops.embedding_q4gsw(self.weight, self.scales, self.group_size, tokens, True)


class Rotary(nn.Module):
    """Interleaved pairs, both outputs; the freqs are inputs that grow with q and k."""

    def forward(self, q: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
        return torch_ops.apply_rotary_emb(q, k, cos, sin)


class RotaryHf(nn.Module):
    """Half-split pairs from a full table, at a live position."""

    def __init__(self, context: int, rotary: int) -> None:
        super().__init__()
        cos, sin = rotary_table(context, rotary)
        self.register_buffer("cos", cos)
        self.register_buffer("sin", sin)

    def forward(self, q: Tensor, k: Tensor, pos: Tensor) -> tuple[Tensor, Tensor]:
        start = live_position(pos, q.shape[1], self.cos.shape[0])
        return torch_ops.apply_rotary_emb_hf(q, k, self.cos, self.sin, start)


class Attention(nn.Module):
    """sdpa_with_kv_cache with q, k and v as inputs."""

    def __init__(self, context: int, kv_heads: int, head_dim: int) -> None:
        super().__init__()
        self.register_buffer("k_cache", torch.zeros(1, context, kv_heads, head_dim))
        self.register_buffer("v_cache", torch.zeros(1, context, kv_heads, head_dim))

    def forward(self, q: Tensor, k: Tensor, v: Tensor, pos: Tensor) -> Tensor:
        start = live_position(pos, q.shape[1], self.k_cache.shape[1])
        return torch_ops.sdpa_with_kv_cache(
            q, k, v, self.k_cache, self.v_cache, start, 1, None, 0.0, True, None
        )


class Layer(nn.Module):
    def __init__(self, width: int, hidden: int, heads: int, kv_heads: int, context: int) -> None:
        super().__init__()
        self.heads, self.kv_heads, self.head_dim = heads, kv_heads, width // heads
        self.attention_norm, self.mlp_norm = RmsNorm(width), RmsNorm(width)
        self.q = LinearQ4(width, width)
        self.k = LinearQ4(width, kv_heads * self.head_dim)
        self.v = LinearQ4(width, kv_heads * self.head_dim)
        self.o = LinearQ4(width, width)
        self.gate, self.up = LinearQ4(width, hidden), LinearQ4(width, hidden)
        self.down = LinearQ4(hidden, width)
        self.register_buffer("k_cache", torch.zeros(1, context, kv_heads, self.head_dim))
        self.register_buffer("v_cache", torch.zeros(1, context, kv_heads, self.head_dim))

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, start: int) -> Tensor:
        length = x.shape[1]
        h = self.attention_norm(x)  # [1, S, width]
        q = self.q(h).view(1, length, self.heads, self.head_dim)
        k = self.k(h).view(1, length, self.kv_heads, self.head_dim)
        v = self.v(h).view(1, length, self.kv_heads, self.head_dim)
        q, k = torch_ops.apply_rotary_emb_hf(q, k, cos, sin, start)
        attended = torch_ops.sdpa_with_kv_cache(
            q, k, v, self.k_cache, self.v_cache, start, 1, None, 0.0, True, None
        )
        x = x + self.o(attended.view(1, length, self.heads * self.head_dim))
        h = self.mlp_norm(x)
        return x + self.down(nn.functional.silu(self.gate(h)) * self.up(h))


class ToyDecoder(nn.Module):
    """Two layers with everything a decoder has; gives the logits of the last token."""

    def __init__(self, context: int = 64, width: int = 64, vocabulary: int = 97) -> None:
        super().__init__()
        self.context = context
        self.embedding = Embedding(vocabulary, width)
        self.layers = nn.ModuleList(
            Layer(width, 160, heads=4, kv_heads=2, context=context) for _ in range(2)
        )
        self.norm = RmsNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        cos, sin = rotary_table(context, width // 4)
        self.register_buffer("cos", cos)
        self.register_buffer("sin", sin)

    def forward(self, tokens: Tensor, pos: Tensor) -> Tensor:  # [1, S], [1] → [1, vocabulary]
        start = live_position(pos, tokens.shape[1], self.context)
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x, self.cos, self.sin, start)
        return self.head(self.norm(x)[:, -1])


def live_position(pos: Tensor, length: int, context: int) -> int:
    """Return the position as a live scalar, with the bounds that torch.export wants."""
    start = pos[-1].item()
    torch._check(start >= 0)
    torch._check(start + length <= context)
    return start


def rotary_table(context: int, rotary: int) -> tuple[Tensor, Tensor]:
    """Return cos and sin, [context, rotary], both halves alike."""
    frequencies = 10_000 ** (-torch.arange(0, rotary, 2) / rotary)
    angles = torch.outer(torch.arange(context), frequencies).repeat(1, 2)
    return angles.cos(), angles.sin()
