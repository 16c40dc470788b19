"""One decoder for Llama 2 and 3.x, SmolLM2, TinyLlama, Mistral, Qwen2.5 and Qwen3, in one sitting.

Plain PyTorch over the engine's ops (export/torch_ops.py). Weights have names as in Hugging Face
checkpoints without the leading `model.`; a quantised one has its parts beside it
(`layers.0.self_attn.q_proj.weight` and `.scales`). Built on the meta device it weighs nothing, and
that is how it is exported: the data goes from the checkpoint to the model folder tensor by tensor.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from export import torch_ops
from py_runtime.base.shapes import ceil_div
from py_runtime.program.weight_kinds import q4gsw_row_bytes

FLOAT = "f32"
Q4GSW = "q4gsw"


@dataclass(frozen=True)
class DecoderConfig:
    """The sizes and choices in which the families differ."""

    vocabulary: int
    width: int
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    context: int  # positions the caches hold
    max_chunk: int  # most tokens in one call
    eps: float
    rotary: int  # how many of head_dim's elements are rotated
    qkv_bias: bool = False
    o_bias: bool = False
    mlp_bias: bool = False
    qk_norm: bool = False
    tied: bool = False  # the head is the embedding


@dataclass(frozen=True)
class WeightKind:
    """How one weight matrix is stored."""

    name: str  # f32, q4gsw, or one of torch_ops.BLOCK_KINDS
    group_size: int = 32


class Weight(nn.Module):
    """A matrix [rows, columns] in its stored form; can multiply and be looked up."""

    weight: Tensor
    scales: Tensor
    bias: Tensor | None

    def __init__(self, kind: WeightKind, rows: int, columns: int, bias: bool = False) -> None:
        super().__init__()
        self.kind, self.rows, self.columns = kind, rows, columns
        for name, (dims, dtype) in weight_parts(kind, rows, columns).items():
            self.register_buffer(name, torch.empty(dims, dtype=dtype))
        bias_rows = ceil_div(rows, 4) * 4 if kind.name == Q4GSW else rows
        self.register_buffer("bias", torch.empty(bias_rows) if bias else None)

    def forward(self, x: Tensor) -> Tensor:  # [..., columns] → [..., rows]
        if self.kind.name == FLOAT:
            return nn.functional.linear(x, self.weight, self.bias)
        if self.kind.name == Q4GSW:
            group_size = self.kind.group_size
            return torch_ops.linear_q4gsw(x, self.weight, self.scales, group_size, self.bias)
        linear = getattr(torch.ops.inpage, f"linear_{self.kind.name}")
        return linear(x, self.weight, self.scales, self.bias)

    def look_up(self, tokens: Tensor) -> Tensor:  # [1, S] → [1, S, columns]
        if self.kind.name == FLOAT:
            return nn.functional.embedding(tokens, self.weight)
        embedding = getattr(torch.ops.inpage, f"embedding_{self.kind.name}")
        return embedding(self.weight, self.scales, tokens)


def weight_parts(
    kind: WeightKind, rows: int, columns: int
) -> dict[str, tuple[tuple[int, ...], torch.dtype]]:
    """Dims and dtype of what a weight of this kind consists of."""
    groups = columns // 32
    match kind.name:
        case "f32":
            return {"weight": ((rows, columns), torch.float32)}
        case "q4gsw":
            scales = (ceil_div(columns, kind.group_size), ceil_div(rows, 4) * 4)
            packed = (rows, q4gsw_row_bytes(columns))
            return {"weight": (packed, torch.uint8), "scales": (scales, torch.float32)}
        case "q4_0":
            packed, scales = (rows, columns // 2), (rows, groups)
            return {"weight": (packed, torch.uint8), "scales": (scales, torch.float16)}
        case "q4_1":
            pairs = (rows, groups, 2)
            return {"weight": ((rows, columns // 2), torch.uint8), "scales": (pairs, torch.float16)}
        case "q8_0":
            whole, scales = (rows, columns), (rows, groups)
            return {"weight": (whole, torch.int8), "scales": (scales, torch.float16)}
    raise ValueError(f"no weight kind '{kind.name}'")


class Norm(nn.Module):
    """RMS norm over the last dim, in float32."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.eps = eps
        self.register_buffer("weight", torch.empty(width))

    def forward(self, x: Tensor) -> Tensor:  # [..., width]
        return torch_ops.rms_norm(x, self.weight, self.eps)


class Attention(nn.Module):
    """Causal, with grouped heads, rotary embeddings and a KV cache of its own."""

    def __init__(self, config: DecoderConfig, kinds: Mapping[str, WeightKind], path: str) -> None:
        super().__init__()
        c = config
        self.config = config

        def weight(name: str, rows: int, columns: int, bias: bool) -> Weight:
            return Weight(kinds[f"{path}.{name}.weight"], rows, columns, bias)

        self.q_proj = weight("q_proj", c.heads * c.head_dim, c.width, c.qkv_bias)
        self.k_proj = weight("k_proj", c.kv_heads * c.head_dim, c.width, c.qkv_bias)
        self.v_proj = weight("v_proj", c.kv_heads * c.head_dim, c.width, c.qkv_bias)
        self.o_proj = weight("o_proj", c.width, c.heads * c.head_dim, c.o_bias)
        self.q_norm = Norm(c.head_dim, c.eps) if c.qk_norm else None
        self.k_norm = Norm(c.head_dim, c.eps) if c.qk_norm else None
        for cache in ("k_cache", "v_cache"):
            self.register_buffer(cache, torch.zeros(1, c.context, c.kv_heads, c.head_dim))

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, start: int) -> Tensor:
        c, length = self.config, x.shape[1]
        q = self.q_proj(x).view(1, length, c.heads, c.head_dim)
        k = self.k_proj(x).view(1, length, c.kv_heads, c.head_dim)
        v = self.v_proj(x).view(1, length, c.kv_heads, c.head_dim)
        if self.q_norm is not None and self.k_norm is not None:
            q, k = self.q_norm(q), self.k_norm(k)
        q, k = torch_ops.apply_rotary_emb_hf(q, k, cos, sin, start)
        attended = torch_ops.sdpa_with_kv_cache(
            q, k, v, self.k_cache, self.v_cache, start, length, None, 0.0, True, None
        )
        return self.o_proj(attended.view(1, length, c.heads * c.head_dim))


class Mlp(nn.Module):
    """down(silu(gate(x)) * up(x))."""

    def __init__(self, config: DecoderConfig, kinds: Mapping[str, WeightKind], path: str) -> None:
        super().__init__()
        width, hidden = config.width, config.hidden
        bias = config.mlp_bias
        self.gate_proj = Weight(kinds[f"{path}.gate_proj.weight"], hidden, width, bias)
        self.up_proj = Weight(kinds[f"{path}.up_proj.weight"], hidden, width, bias)
        self.down_proj = Weight(kinds[f"{path}.down_proj.weight"], width, hidden, bias)

    def forward(self, x: Tensor) -> Tensor:  # SwiGLU
        return self.down_proj(nn.functional.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    """Attention and MLP, each behind a norm and added to what came in."""

    def __init__(self, config: DecoderConfig, kinds: Mapping[str, WeightKind], path: str) -> None:
        super().__init__()
        self.input_layernorm = Norm(config.width, config.eps)
        self.self_attn = Attention(config, kinds, f"{path}.self_attn")
        self.post_attention_layernorm = Norm(config.width, config.eps)
        self.mlp = Mlp(config, kinds, f"{path}.mlp")

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, start: int) -> Tensor:
        x = x + self.self_attn(self.input_layernorm(x), cos, sin, start)
        return x + self.mlp(self.post_attention_layernorm(x))


class Decoder(nn.Module):
    """tokens: int64 [1, S], pos: int64 [1] → logits of the last token: [1, vocabulary]."""

    def __init__(self, config: DecoderConfig, kinds: Mapping[str, WeightKind]) -> None:
        super().__init__()
        self.config = config
        embedding = kinds["embed_tokens.weight"]
        self.embed_tokens = Weight(embedding, config.vocabulary, config.width)
        self.layers = nn.ModuleList(
            Layer(config, kinds, f"layers.{number}") for number in range(config.layers)
        )
        self.norm = Norm(config.width, config.eps)
        if not config.tied:
            self.lm_head = Weight(kinds["lm_head.weight"], config.vocabulary, config.width)
        self.register_buffer("cos", torch.empty(config.context, config.rotary))
        self.register_buffer("sin", torch.empty(config.context, config.rotary))

    def forward(self, tokens: Tensor, pos: Tensor) -> Tensor:
        start: Any = pos[-1].item()  # an int that stays symbolic while torch.export looks on
        torch._check(start >= 0)  # bounds for torch.export; the engine checks them at each call
        torch._check(start + tokens.shape[1] <= self.config.context)
        return self.logits(self.hidden(tokens, start)[:, -1])

    def hidden(self, tokens: Tensor, start: int) -> Tensor:  # [1, S] → [1, S, width]
        x = self.embed_tokens.look_up(tokens)
        for layer in self.layers:
            x = layer(x, self.cos, self.sin, start)
        return x

    def logits(self, x: Tensor) -> Tensor:  # [..., width] → [..., vocabulary]
        head = self.embed_tokens if self.config.tied else self.lm_head
        return head(self.norm(x))


def weight_names(config: DecoderConfig) -> list[str]:
    """Every matrix that has a kind."""
    names = ["embed_tokens.weight"] + ([] if config.tied else ["lm_head.weight"])
    for number in range(config.layers):
        attention = [f"self_attn.{part}_proj.weight" for part in "qkvo"]
        mlp = [f"mlp.{part}_proj.weight" for part in ("gate", "up", "down")]
        names += [f"layers.{number}.{name}" for name in (*attention, *mlp)]
    return names
