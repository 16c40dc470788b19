"""Modules as people write them, none with this project in mind, and how to call them."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from export.torch_ops import sdpa_with_kv_cache
from tests.export.plain_llama import Llama
from tests.export.published_modules import PUBLISHED

MAX_S = 24
LIVE_SIZES = (24, 7, 1, 2, 23, 24)
PLACES = ((24, 0), (1, 23), (3, 5), (24, 0))  # live size, position


@dataclass(frozen=True)
class Ordinary:
    """A module, its inputs at a live size, and which of their dims are that size."""

    name: str
    module: Callable[[], nn.Module]
    inputs: Callable[[Any], tuple[Tensor, ...]] = lambda s: (torch.randn(2, s, 32),)
    dynamic: tuple[tuple[int, ...], ...] = ((1,),)
    sizes: tuple[Any, ...] = LIVE_SIZES


class Function(nn.Module):
    """A plain function of tensors."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor, y: Tensor | None = None) -> Any:
        return self.function(x) if y is None else self.function(x, y)


def of(function: Callable[..., Any]) -> Callable[[], nn.Module]:
    return lambda: Function(function)


class SelfAttention(nn.Module):
    def __init__(self, is_causal: bool, kv_heads: int = 4) -> None:
        super().__init__()
        self.is_causal, self.kv_heads = is_causal, kv_heads
        self.q, self.o = nn.Linear(32, 32), nn.Linear(32, 32)
        self.kv = nn.Linear(32, 2 * 8 * kv_heads)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, _ = x.shape
        q = self.q(x).view(batch, length, 4, 8).transpose(1, 2)
        k, v = self.kv(x).view(batch, length, 2, self.kv_heads, 8).permute(2, 0, 3, 1, 4)
        attend = F.scaled_dot_product_attention
        out = attend(q, k, v, is_causal=self.is_causal, enable_gqa=self.kv_heads != 4)
        return self.o(out.transpose(1, 2).reshape(batch, length, 32))


class MaskedAttention(nn.Module):
    """A padding mask that comes with the call."""

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        seen = torch.arange(x.shape[1])[None, :] < lengths[:, None]  # [B, S]
        q = x.unflatten(-1, (4, 8)).transpose(1, 2)
        return F.scaled_dot_product_attention(q, q, q, attn_mask=seen[:, None, None, :])


class EagerAttention(nn.Module):
    """Written out, with a mask made by triu."""

    def forward(self, x: Tensor) -> Tensor:
        scores = x @ x.transpose(-2, -1) / math.sqrt(x.shape[-1])
        ahead = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        return scores.masked_fill(ahead, -math.inf).softmax(-1) @ x


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(32, 4, 64, activation="gelu", batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x)


class MultiHead(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(32, 4, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.attention(x, x, x, need_weights=False)[0]


class PositionedEmbedding(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(50, 32), nn.Embedding(MAX_S, 32)
        self.norm = nn.LayerNorm(32)

    def forward(self, tokens: Tensor) -> Tensor:
        places = torch.arange(tokens.shape[1])
        return self.norm(self.words(tokens) + self.places(places))


class Sinusoids(nn.Module):
    """A table made of constants alone, sliced to the live length."""

    def forward(self, x: Tensor) -> Tensor:
        places, pairs = torch.arange(MAX_S).float(), torch.arange(0, 32, 2).float()
        angles = places[:, None] * torch.exp(pairs * (-math.log(10_000.0) / 32))
        table = torch.stack((angles.sin(), angles.cos()), -1).flatten(1)
        return x + table[: x.shape[1]]


class HalfWeights(nn.Module):
    """Weights kept in 16 bits, computed with in 32."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(16, 32).bfloat16())
        self.scale = nn.Parameter(torch.randn(16).half())

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.weight.float().to(x.dtype).t() * self.scale.to(x.dtype)


class Counter(nn.Module):
    """State that is neither zero at first nor written like a cache."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.tensor(3))
        self.register_buffer("mean", torch.ones(32))

    def forward(self, x: Tensor) -> Tensor:
        before = self.mean.clone()
        self.calls += 1
        self.mean.mul_(0.5).add_(x.mean((0, 1)) * 0.5)
        return x * self.calls - before + self.mean


class Ring(nn.Module):
    """Rows written at places that come as a tensor, and a fixed column."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("rows", torch.zeros(MAX_S, 32))

    def forward(self, x: Tensor, places: Tensor) -> Tensor:
        self.rows[places] = x[0]
        self.rows[:, 0] = 1.0
        return self.rows.clone()


class Window(nn.Module):
    """Slices written at a live place, in the last dims but two or elsewhere, and the old value."""

    def __init__(self, dims: tuple[int, ...], dim: int) -> None:
        super().__init__()
        self.dim = dim
        self.register_buffer("kept", torch.rand(dims))

    def forward(self, x: Tensor, at: Tensor) -> tuple[Tensor, ...]:
        start = at[0].item()
        torch._check(start >= 0)
        torch._check(start + x.shape[self.dim] <= self.kept.shape[self.dim])
        before = self.kept.clone()
        self.kept.narrow(self.dim, start, x.shape[self.dim]).copy_(x)
        return self.kept * 2, self.kept - before, before


class CustomOpTwice(nn.Module):
    """The engine's own in-place op, twice on one cache, with reads before, between and after."""

    def __init__(self) -> None:
        super().__init__()
        for cache in ("k_cache", "v_cache"):
            self.register_buffer(cache, torch.zeros(1, MAX_S, 2, 8))

    def forward(self, x: Tensor, at: Tensor) -> tuple[Tensor, ...]:  # x: [1, S, 2, 8]
        start = at[0].item()
        torch._check(start >= 0)
        torch._check(start + x.shape[1] <= MAX_S)
        caches = self.k_cache, self.v_cache
        before = self.k_cache.clone()
        first = sdpa_with_kv_cache(x, x, x, *caches, start, 1, None, 0.0, True, None)
        between = self.k_cache.clone()
        second = sdpa_with_kv_cache(x, -x, x, *caches, start, 1, None, 0.0, True, None)
        return first, second, before, between, self.k_cache.sum((0, 2, 3))


def mlp(activation: nn.Module) -> Callable[[], nn.Module]:
    return lambda: nn.Sequential(nn.Linear(32, 48), activation, nn.Dropout(0.1), nn.Linear(48, 8))


def shapes(x: Tensor) -> tuple[Tensor, ...]:
    """Use shape ops on x: [2, S, 32]."""
    left, right = x.chunk(2, -1)
    first, rest = x.split([8, 24], -1)
    return (
        torch.cat((left, right, first), -1),
        torch.stack((left, right), 1).flatten(1, 2),
        rest.unsqueeze(0).expand(3, -1, -1, -1),
        x.repeat(1, 2, 1),
        x.repeat_interleave(2, dim=1),
        x.flip(-1).roll(3, -1),
        F.pad(x, (1, 2), value=3.0),
        x.unbind(0)[1].t(),
        x[:, -1],
        x[..., 4::3],
    )


def reductions(x: Tensor) -> tuple[Tensor, ...]:
    highest, where = x.max(-1)
    return (
        x.mean(-1), x.sum((1, 2)), x.amax(1), highest, where, x.argmax(-1), x.min(), x.var(-1),
        x.std(-1, correction=0), x.norm(dim=-1), torch.logsumexp(x, -1), (x > 1).any(-1),
        (x > -5).all(-1), x.sum(), x.cumsum(1), (x > 0).cumsum(-1), (x * 9).long().cumsum(1),
    )  # fmt: skip


def elementwise(x: Tensor) -> tuple[Tensor, ...]:
    return (
        x.clamp(-1, 1), x.clamp(min=0.5), x.pow(3), x.abs().sqrt(), 1 - x, 2 / (x.abs() + 1),
        x.square().rsqrt(), x.floor(), x.ceil(), x.trunc(), x.round(), x.sign(), x.exp().log1p(),
        x.expm1(), x.sin() * x.cos(), torch.maximum(x, -x), torch.lerp(x, x * 2, 0.3),
        torch.addcmul(x, x, x, value=0.5), x % 0.75, x.reciprocal(), 2**x, x.abs().log2(),
        x.tan().clamp(-3, 3),
    )  # fmt: skip


def choices(x: Tensor) -> tuple[Tensor, ...]:
    mask = x > 0
    y = x.clone()
    y[:, 0] = 5.0
    y[mask] = 0.25
    return (
        torch.where(mask, x, 0), x.masked_fill(~mask, -1.0), mask & (x < 1), mask | (x < -1),
        mask ^ (x > 1), x == x.amax(-1, keepdim=True), (x >= 0.5) != mask, x.tril(), x.triu(1),
        mask.float() * 2, mask.sum(-1), x.isnan(), y,
    )  # fmt: skip


def lookups(x: Tensor, at: Tensor) -> tuple[Tensor, ...]:
    """Look elements up in x: [2, S, 32] by at: [4], below 32."""
    return (
        x.index_select(2, at),
        x[..., at],
        x[0, :, at],
        x.gather(2, at.expand(2, x.shape[1], 4)),
        F.one_hot(at, 32).to(x.dtype) @ x[0].T,
    )


class Convolutions(nn.Module):
    """Along a sequence: a filter for each channel, and filters that take all channels."""

    def __init__(self) -> None:
        super().__init__()
        self.by_channel = nn.Conv1d(32, 32, 4, padding=3, groups=32, bias=False)
        self.of_all = nn.Conv1d(32, 8, 3, padding=2, dilation=2)
        self.of_places = nn.Conv1d(32, 8, 1)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        x = x.transpose(1, 2)  # [2, 32, S]
        return self.by_channel(x)[..., : x.shape[2]], self.of_all(x), self.of_places(x)


def sizes(x: Tensor) -> tuple[Tensor, ...]:
    length = x.shape[1]
    return x * length, x / (length + 1), x.new_full((length, length * 2), 0.5), x.sum(1) / length


def with_indices(s: int) -> tuple[Tensor, ...]:
    return torch.randn(2, s, 32), torch.tensor([3, 0, 31, 7])


ACTIVATIONS = (
    nn.ReLU(), nn.GELU(), nn.GELU("tanh"), nn.SiLU(), nn.Tanh(), nn.Sigmoid(), nn.ELU(), nn.Mish(),
    nn.Softplus(), nn.LeakyReLU(0.1), nn.Hardswish(), nn.Hardtanh(), nn.ReLU6(), nn.Hardsigmoid(),
    nn.LogSigmoid(), nn.CELU(), nn.SELU(), nn.GLU(), nn.PReLU(), nn.Softsign(),
    nn.ReLU(inplace=True),
)  # fmt: skip

MODULES = (
    *(
        Ordinary(
            f"mlp {str(activation).lower()}",
            mlp(activation) if not isinstance(activation, nn.GLU) else of(activation),
        )
        for activation in ACTIVATIONS
    ),
    Ordinary("layer norm", lambda: nn.LayerNorm(32)),
    Ordinary("layer norm without weights", of(lambda x: F.layer_norm(x, (32,)))),
    Ordinary("rms norm", lambda: nn.RMSNorm(32)),
    Ordinary("group norm", of(lambda x: nn.functional.group_norm(x.transpose(1, 2), 4))),
    Ordinary(
        "batch norm", lambda: nn.Sequential(nn.Flatten(0, 1), nn.BatchNorm1d(32), nn.Linear(32, 8))
    ),
    Ordinary("attention", lambda: SelfAttention(False)),
    Ordinary("causal attention", lambda: SelfAttention(True)),
    Ordinary("grouped attention", lambda: SelfAttention(True, kv_heads=2)),
    Ordinary(
        "attention with a mask", MaskedAttention,
        lambda s: (torch.randn(2, s, 32), torch.tensor([s, (s + 1) // 2])), ((1,), ()),
    ),
    Ordinary("eager attention", EagerAttention),
    Ordinary("nn.MultiheadAttention", MultiHead),
    Ordinary("nn.TransformerEncoderLayer", Encoder),
    Ordinary("embeddings", PositionedEmbedding, lambda s: (torch.randint(50, (2, s)),)),
    Ordinary("sinusoids", Sinusoids),
    Ordinary("softmax head", lambda: nn.Sequential(nn.Linear(32, 50), nn.Softmax(-1))),
    Ordinary("log softmax head", lambda: nn.Sequential(nn.Linear(32, 50), nn.LogSoftmax(-1))),
    Ordinary("16-bit weights", HalfWeights),
    Ordinary("shapes", of(shapes)),
    Ordinary("reductions", of(reductions)),
    Ordinary("elementwise", of(elementwise)),
    Ordinary("choices", of(choices)),
    Ordinary("lookups", of(lookups), with_indices, ((1,), ())),
    Ordinary("live sizes", of(sizes)),
    Ordinary(
        "einsum", of(lambda x, y: torch.einsum("bsd,btd->bst", x, y)),
        lambda s: (torch.randn(2, s, 32), torch.randn(2, s, 32)), ((1,), (1,)),
    ),
    Ordinary("convolutions", Convolutions),
    Ordinary("counter", Counter),
    Ordinary(
        "writes at places", Ring,
        lambda s: (torch.randn(1, s, 32), torch.randperm(MAX_S)[:s]), ((1,), (0,)),
    ),
    Ordinary(
        "slices of rows", lambda: Window((2, 32, 3, 8), 1),
        lambda at: (torch.randn(2, at[0], 3, 8), torch.tensor([at[1]])), ((1,), ()), PLACES,
    ),
    Ordinary(
        "slices of columns", lambda: Window((3, 32), 1),
        lambda at: (torch.randn(3, at[0]), torch.tensor([at[1]])), ((1,), ()), PLACES,
    ),
    Ordinary(
        "custom op twice", CustomOpTwice,
        lambda at: (torch.randn(1, at[0], 2, 8), torch.tensor([at[1]])), ((1,), ()), PLACES,
    ),
    *(
        Ordinary(f"transformers {name}", module, lambda s: (torch.randint(97, (1, s)),))
        for name, module in PUBLISHED.items()
    ),
    *(
        Ordinary(
            f"llama {style}", partial(Llama, style),
            lambda at: (torch.randint(97, (1, at[0])), torch.tensor([at[1]])), ((1,), ()),
            ((24, 0), *((1, position) for position in range(24, 32)), (7, 0), (1, 7), (16, 8)),
        )
        for style in Llama.STYLES
    ),
)  # fmt: skip
BY_NAME = {entry.name: entry for entry in MODULES}
