"""One decoder for Llama 2 and 3.x, SmolLM2, TinyLlama, Mistral, Qwen2.5 and Qwen3, in one sitting.

Plain PyTorch over the engine's ops (export/torch_ops.py); py_runtime/decoder/program.py writes the
same graph without PyTorch. Built on the meta device it weighs nothing, and that is how it is
exported: the data goes from the checkpoint to the model folder tensor by tensor.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from export import torch_ops
from export.support import DTYPE_OF
from py_runtime.decoder.config import (
    FLOAT,
    Q4GSW,
    DecoderConfig,
    WeightKind,
    bias_rows,
    weight_parts,
)

TORCH_DTYPES = {dtype: torch_dtype for torch_dtype, dtype in DTYPE_OF.items()}


class Weight(nn.Module):
    """A matrix [rows, columns] in its stored form; can multiply and be looked up."""

    weight: Tensor
    scales: Tensor
    bias: Tensor | None

    def __init__(self, kind: WeightKind, rows: int, columns: int, bias: bool = False) -> None:
        super().__init__()
        self.kind, self.rows, self.columns = kind, rows, columns
        parts = weight_parts(kind, rows, columns)
        self.part_names = tuple(parts)
        for name, (dims, dtype) in parts.items():
            self.register_buffer(name, torch.empty(dims, dtype=TORCH_DTYPES[dtype]))
        self.register_buffer("bias", torch.empty(bias_rows(kind, rows)) if bias else None)

    def forward(self, x: Tensor) -> Tensor:  # [..., columns] → [..., rows]
        if self.kind.name == FLOAT:
            return nn.functional.linear(x, self.weight, self.bias)
        if self.kind.name == Q4GSW:
            group_size = self.kind.group_size
            return torch_ops.linear_q4gsw(x, self.weight, self.scales, group_size, self.bias)
        linear = getattr(torch.ops.inpage, f"linear_{self.kind.name}")
        return linear(x, *self._parts(), self.bias)

    def look_up(self, tokens: Tensor) -> Tensor:  # [1, S] → [1, S, columns]
        if self.kind.name == FLOAT:
            return nn.functional.embedding(tokens, self.weight)
        embedding = getattr(torch.ops.inpage, f"embedding_{self.kind.name}")
        return embedding(*self._parts(), tokens)

    def _parts(self) -> list[Tensor]:
        return [getattr(self, name) for name in self.part_names]


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
