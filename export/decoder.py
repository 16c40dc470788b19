"""One decoder for every family of py_runtime/decoder/families.py, in one sitting.

Plain PyTorch over the engine's ops (export/torch_ops.py); py_runtime/decoder/program.py writes the
same graph without PyTorch. Built on the meta device it weighs nothing, and that is how it is
exported: the data goes from the checkpoint to the model folder tensor by tensor.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from export import state_ops, torch_ops
from export.support import DTYPE_OF
from py_runtime.decoder.config import (
    AFTER,
    AROUND,
    BEFORE,
    DELTA_NET,
    FLOAT,
    HEADS,
    LAYER_NORMS,
    Q4GSW,
    SHORT_CONV,
    SIGMOID,
    SILU,
    TABLES,
    DecoderConfig,
    LayerKind,
    WeightKind,
    bias_rows,
    qk_norm_columns,
    weight_parts,
)

MIXERS = {SHORT_CONV: "conv", DELTA_NET: "linear_attn"}  # by which names layers have them
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

    q_norm: Norm | None
    k_norm: Norm | None
    sinks: Tensor | None

    def __init__(
        self,
        config: DecoderConfig,
        kind: LayerKind,
        kinds: Mapping[str, WeightKind],
        path: str,
    ) -> None:
        super().__init__()
        c = config
        self.config, self.kind = config, kind

        def weight(name: str, rows: int, columns: int, bias: bool) -> Weight:
            return Weight(kinds[f"{path}.{name}.weight"], rows, columns, bias)

        self.q_proj = weight("q_proj", c.heads * c.head_dim, c.width, c.qkv_bias)
        self.k_proj = weight("k_proj", c.kv_heads * c.head_dim, c.width, c.qkv_bias)
        self.v_proj = weight("v_proj", c.kv_heads * c.head_dim, c.width, c.qkv_bias)
        if c.gated_attention:
            self.g_proj = weight("g_proj", c.heads * c.head_dim, c.width, c.qkv_bias)
        self.o_proj = weight("o_proj", c.width, c.heads * c.head_dim, c.o_bias)
        norms = [Norm(columns, c.eps) for columns in qk_norm_columns(c)]
        self.q_norm, self.k_norm = norms or (None, None)
        self.register_buffer("sinks", torch.empty(c.heads) if c.sinks else None)
        for cache in ("k_cache", "v_cache"):
            self.register_buffer(cache, torch.zeros(1, c.context, c.kv_heads, c.head_dim))

    def forward(self, x: Tensor, tables: dict[str, Tensor], start: int) -> Tensor:
        c, length = self.config, x.shape[1]
        q = self._heads(self.q_proj(x), self.q_norm, c.heads)
        k = self._heads(self.k_proj(x), self.k_norm, c.kv_heads)
        v = self._heads(self.v_proj(x), None, c.kv_heads)
        if c.qk_norm == HEADS and self.q_norm is not None and self.k_norm is not None:
            q, k = self.q_norm(q), self.k_norm(k)
        if self.kind.tables is not None:
            cos, sin = (tables[f"{name}{self.kind.tables}"] for name in TABLES)
            q, k = torch_ops.apply_rotary_emb_hf(q, k, cos, sin, start)
        attended = self._attend(q, k, v, start)
        flat = attended.view(1, length, c.heads * c.head_dim)
        return self.o_proj(flat * torch.sigmoid(self.g_proj(x)) if c.gated_attention else flat)

    def _heads(self, x: Tensor, norm: Norm | None, heads: int) -> Tensor:
        """[1, S, heads * head_dim] → [1, S, heads, head_dim], where need be after a norm of all."""
        if norm is not None and self.config.qk_norm != HEADS:
            x = norm(x)
        return x.view(1, x.shape[1], heads, self.config.head_dim)

    def _attend(self, q: Tensor, k: Tensor, v: Tensor, start: int) -> Tensor:
        scale, window, cap = self.config.attention_scale, self.kind.window, self.config.score_cap
        given = (q, k, v, self.k_cache, self.v_cache, start)
        if window is None and cap is None and self.sinks is None:
            return torch_ops.sdpa_with_kv_cache(*given, q.shape[1], None, 0.0, True, scale)
        return torch_ops.windowed_attention(*given, scale, window, cap, self.sinks)


class ShortConv(nn.Module):
    """out(c · conv(b · u)), of which the last columns are carried on."""

    def __init__(self, config: DecoderConfig, kinds: Mapping[str, WeightKind], path: str) -> None:
        super().__init__()
        width, taps = config.width, config.conv_taps
        self.in_proj = Weight(kinds[f"{path}.in_proj.weight"], 3 * width, width)
        self.conv = Taps(width, taps)
        self.out_proj = Weight(kinds[f"{path}.out_proj.weight"], width, width)
        self.register_buffer("conv_state", torch.zeros(1, taps - 1, width))

    def forward(self, x: Tensor, tables: dict[str, Tensor], start: int) -> Tensor:
        given = (self.in_proj(x), self.conv.weight, self.conv_state, start)
        return self.out_proj(state_ops.short_conv(*given))


class DeltaNet(nn.Module):
    """out(gated delta rule over convolved queries, keys and values)."""

    def __init__(self, config: DecoderConfig, kinds: Mapping[str, WeightKind], path: str) -> None:
        super().__init__()
        sizes, width = config.delta, config.width
        assert sizes is not None, "a config with such layers has their sizes"
        self.sizes, self.eps = sizes, config.eps

        def weight(name: str, rows: int, columns: int) -> Weight:
            return Weight(kinds[f"{path}.{name}.weight"], rows, columns)

        self.in_proj_qkv = weight("in_proj_qkv", sizes.columns, width)
        self.conv1d = Taps(sizes.columns, config.conv_taps)
        self.in_proj_z = weight("in_proj_z", sizes.values, width)
        self.in_proj_b = weight("in_proj_b", sizes.value_heads, width)
        self.in_proj_a = weight("in_proj_a", sizes.value_heads, width)
        self.decay = Vector("weight", sizes.value_heads)
        self.dt = Vector("bias", sizes.value_heads)
        self.norm = Vector("weight", sizes.value_dim)
        self.out_proj = weight("out_proj", width, sizes.values)
        held = (1, config.conv_taps - 1, sizes.columns)
        self.register_buffer("conv_state", torch.zeros(held))
        dims = (1, sizes.value_heads, sizes.key_dim, sizes.value_dim)
        self.register_buffer("delta_state", torch.zeros(dims))

    def forward(self, x: Tensor, tables: dict[str, Tensor], start: int) -> Tensor:
        qkv = self.in_proj_qkv(x)
        mixed = state_ops.conv_silu(qkv, self.conv1d.weight, self.conv_state, start)
        gates = (self.in_proj_z(x), self.in_proj_b(x), self.in_proj_a(x))
        constants = (self.decay.weight, self.dt.bias, self.norm.weight, self.eps)
        how = (self.sizes.key_heads, self.sizes.tiled, self.delta_state, start)
        return self.out_proj(state_ops.gated_delta(mixed, *gates, *constants, *how))


class Vector(nn.Module):
    """A few numbers, under this name."""

    weight: Tensor
    bias: Tensor

    def __init__(self, name: str, length: int) -> None:
        super().__init__()
        self.register_buffer(name, torch.empty(length))


class Taps(nn.Module):
    """What a convolution multiplies a channel's last values with."""

    weight: Tensor

    def __init__(self, width: int, taps: int) -> None:
        super().__init__()
        self.register_buffer("weight", torch.empty(width, taps))


class Mlp(nn.Module):
    """down(activation(gate(x)) * up(x))."""

    def __init__(self, config: DecoderConfig, kinds: Mapping[str, WeightKind], path: str) -> None:
        super().__init__()
        width, hidden = config.width, config.hidden
        bias = config.mlp_bias
        self.gate_proj = Weight(kinds[f"{path}.gate_proj.weight"], hidden, width, bias)
        self.up_proj = Weight(kinds[f"{path}.up_proj.weight"], hidden, width, bias)
        self.down_proj = Weight(kinds[f"{path}.down_proj.weight"], width, hidden, bias)
        self.activation = config.activation

    def forward(self, x: Tensor) -> Tensor:  # SwiGLU or GeGLU
        gate = self.gate_proj(x)
        functional = nn.functional
        is_silu = self.activation == SILU
        activated = functional.silu(gate) if is_silu else functional.gelu(gate, approximate="tanh")
        return self.down_proj(activated * self.up_proj(x))


class Mixture(nn.Module):
    """The same by a few of many experts, which the token's logits for them choose."""

    expert_bias: Tensor | None

    def __init__(self, config: DecoderConfig, kinds: Mapping[str, WeightKind], path: str) -> None:
        super().__init__()
        assert config.experts is not None, "a config with experts has their sizes"
        self.sizes, width = config.experts, config.width
        rows, has_bias = self.sizes.count * self.sizes.hidden, self.sizes.has_bias
        self.gate = Weight(kinds[f"{path}.gate.weight"], self.sizes.count, width, has_bias)
        is_biased = self.sizes.scoring == SIGMOID
        self.register_buffer("expert_bias", torch.empty(self.sizes.count) if is_biased else None)
        self.experts = nn.ModuleDict(
            {
                name: Weight(kinds[f"{path}.experts.{name}.weight"], *dims, has_bias)
                for name, dims in {
                    "gate_proj": (rows, width),
                    "up_proj": (rows, width),
                    "down_proj": (self.sizes.count * width, self.sizes.hidden),
                }.items()
            }
        )

    def forward(self, x: Tensor) -> Tensor:
        held: list[Any] = list(self.experts.values())
        kinds = " ".join(weight.kind.name for weight in held)
        names = ("weight", "scales", "bias")
        parts = [getattr(weight, part, None) for weight in held for part in names]
        sizes = self.sizes
        how = (sizes.used, sizes.renormalised, sizes.scoring, sizes.scale, kinds)
        last = (held[0].kind.group_size, sizes.activation)
        return torch_ops.experts(x, self.gate(x), self.expert_bias, *how, *parts, *last)


class Layer(nn.Module):
    """Attention, or what stands in its place, and MLP, behind norms or before them, each added to
    what came in."""

    def __init__(
        self,
        config: DecoderConfig,
        kind: LayerKind,
        kinds: Mapping[str, WeightKind],
        path: str,
    ) -> None:
        super().__init__()
        self.config = config
        self.mixer = MIXERS.get(kind.mixer, "self_attn")
        if kind.mixer == SHORT_CONV:
            self.conv = ShortConv(config, kinds, f"{path}.conv")
        elif kind.mixer == DELTA_NET:
            self.linear_attn = DeltaNet(config, kinds, f"{path}.linear_attn")
        else:
            self.self_attn = Attention(config, kind, kinds, f"{path}.self_attn")
        is_mixture = config.experts is not None and not kind.is_dense
        self.mlp = (Mixture if is_mixture else Mlp)(config, kinds, f"{path}.mlp")
        for name in LAYER_NORMS[config.norms]:
            self.add_module(name, Norm(config.width, config.eps))

    def forward(self, x: Tensor, tables: dict[str, Tensor], start: int) -> Tensor:
        where = self.config.norms
        mix = getattr(self, self.mixer)
        added = mix(x if where == AFTER else self.input_layernorm(x), tables, start)
        x = x + (added if where == BEFORE else self.post_attention_layernorm(added))
        ahead = x
        if where == BEFORE:
            ahead = self.post_attention_layernorm(x)
        elif where == AROUND:
            ahead = self.pre_feedforward_layernorm(x)
        added = self.mlp(ahead)
        return x + (added if where == BEFORE else self.post_feedforward_layernorm(added))


class Decoder(nn.Module):
    """tokens: int64 [1, S], pos: int64 [1] → logits of the last token: [1, vocabulary]."""

    def __init__(self, config: DecoderConfig, kinds: Mapping[str, WeightKind]) -> None:
        super().__init__()
        self.config = config
        embedding = kinds["embed_tokens.weight"]
        self.embed_tokens = Weight(embedding, config.vocabulary, config.width)
        self.layers = nn.ModuleList(
            Layer(config, config.layer_kind(number), kinds, f"layers.{number}")
            for number in range(config.layers)
        )
        self.norm = Norm(config.width, config.eps)
        if not config.tied:
            self.lm_head = Weight(kinds["lm_head.weight"], config.vocabulary, config.width)
        for table in config.tables:
            self.register_buffer(table, torch.empty(config.context, config.rotary))

    def forward(self, tokens: Tensor, pos: Tensor) -> Tensor:
        start: Any = pos[-1].item()  # an int that stays symbolic while torch.export looks on
        torch._check(start >= 0)  # bounds for torch.export; the engine checks them at each call
        torch._check(start + tokens.shape[1] <= self.config.context)
        return self.logits(self.hidden(tokens, start)[:, -1])

    def hidden(self, tokens: Tensor, start: int) -> Tensor:  # [1, S] → [1, S, width]
        x = self.embed_tokens.look_up(tokens)
        if self.config.embedding_scale != 1:
            x = x * self.config.embedding_scale
        tables = {name: getattr(self, name) for name in self.config.tables}
        for layer in self.layers:
            x = layer(x, tables, start)
        return x

    def logits(self, x: Tensor) -> Tensor:  # [..., width] → [..., vocabulary]
        head = self.embed_tokens if self.config.tied else self.lm_head
        logits, cap = head(self.norm(x)), self.config.logit_cap
        if self.config.logit_divisor != 1:
            logits = logits / self.config.logit_divisor
        return logits if cap is None else torch.tanh(logits / cap) * cap
