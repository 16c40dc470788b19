"""One decoder for every family of py_runtime/decoder/families.py, in one sitting.

Plain PyTorch over the engine's ops (export/torch_ops.py); py_runtime/decoder/program.py writes the
same graph without PyTorch. Built on the meta device it weighs nothing, and that is how it is
exported: the data goes from the checkpoint to the model folder tensor by tensor.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from export import attention_ops, state_ops, torch_ops
from export.support import DTYPE_OF
from py_runtime.decoder.config import (
    AFTER,
    AROUND,
    BEFORE,
    DELTA_NET,
    FLOAT,
    HEADS,
    LAYER_NORMS,
    LAYER_SCALAR,
    PER_LAYER_GATE,
    PER_LAYER_IN,
    PER_LAYER_IN_NORM,
    PER_LAYER_NORM,
    PER_LAYER_OUT,
    PER_LAYER_TABLE,
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


@dataclass
class Call:
    """What all layers of one call have together."""

    tables: dict[str, Tensor]
    start: int
    caches: dict[int, tuple[Tensor, Tensor]] = field(default_factory=dict)  # by layer, so far


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
    """Causal, with grouped heads, rotary embeddings and a KV cache of its own, or another's."""

    q_norm: Norm | None
    k_norm: Norm | None
    sinks: Tensor | None

    def __init__(
        self,
        config: DecoderConfig,
        number: int,
        kinds: Mapping[str, WeightKind],
        path: str,
    ) -> None:
        super().__init__()
        c, kind = config, config.layer_kind(number)
        self.config, self.kind, self.number = config, kind, number
        self.head_dim = c.head_dim_of(kind)
        q_rows, kv_rows = c.heads * self.head_dim, c.kv_heads * self.head_dim

        def weight(name: str, rows: int, columns: int, bias: bool) -> Weight:
            return Weight(kinds[f"{path}.{name}.weight"], rows, columns, bias)

        self.q_proj = weight("q_proj", q_rows, c.width, c.qkv_bias)
        if kind.shares is None:
            self.k_proj = weight("k_proj", kv_rows, c.width, c.qkv_bias)
            self.v_proj = weight("v_proj", kv_rows, c.width, c.qkv_bias)
            for cache in ("k_cache", "v_cache"):
                self.register_buffer(cache, torch.zeros(1, c.context, c.kv_heads, self.head_dim))
        if c.gated_attention:
            self.g_proj = weight("g_proj", q_rows, c.width, c.qkv_bias)
        self.o_proj = weight("o_proj", c.width, q_rows, c.o_bias)
        norms = [Norm(columns, c.eps) for columns in qk_norm_columns(c, kind)]
        self.q_norm, self.k_norm = norms or (None, None)
        if kind.shares is not None:
            self.k_norm = None
        self.register_buffer("sinks", torch.empty(c.heads) if c.sinks else None)

    def forward(self, x: Tensor, call: Call) -> Tensor:
        c, length = self.config, x.shape[1]
        shared = self.kind.shares is not None
        attended = self._attend_shared(x, call) if shared else self._attend_own(x, call)
        flat = attended.view(1, length, c.heads * self.head_dim)
        return self.o_proj(flat * torch.sigmoid(self.g_proj(x)) if c.gated_attention else flat)

    def _attend_own(self, x: Tensor, call: Call) -> Tensor:
        c = self.config
        q = self._heads(self.q_proj(x), self.q_norm, c.heads)
        k = self._heads(self.k_proj(x), self.k_norm, c.kv_heads)
        v = self._heads(self.v_proj(x), None, c.kv_heads)
        if c.qk_norm == HEADS and self.q_norm is not None and self.k_norm is not None:
            q, k = self.q_norm(q), self.k_norm(k)
        if c.value_norm:
            v = torch_ops.rms_norm(v, None, c.eps)
        q, k = self._turned(q, k, call)
        call.caches[self.number] = self.k_cache, self.v_cache
        scale, window, cap = c.attention_scale, self.kind.window, c.score_cap
        given = (q, k, v, self.k_cache, self.v_cache, call.start)
        if window is None and cap is None and self.sinks is None:
            return torch_ops.sdpa_with_kv_cache(*given, q.shape[1], None, 0.0, True, scale)
        return torch_ops.windowed_attention(*given, scale, window, cap, self.sinks)

    def _attend_shared(self, x: Tensor, call: Call) -> Tensor:
        """Over caches that an earlier layer has filled, for these tokens too."""
        c, window, cap = self.config, self.kind.window, self.config.score_cap
        assert self.kind.shares is not None, "it has none of its own"
        q = self._heads(self.q_proj(x), self.q_norm, c.heads)
        if c.qk_norm == HEADS and self.q_norm is not None:
            q = self.q_norm(q)
        if self.kind.tables is not None:
            q = attention_ops.rotary_of_one(q, *self._tables(call), call.start)
        given = (q, *call.caches[self.kind.shares], call.start, c.attention_scale)
        if window is None and cap is None and self.sinks is None:
            return attention_ops.attend_kv_cache(*given)
        return attention_ops.attend_window(*given, window, cap, self.sinks)

    def _heads(self, x: Tensor, norm: Norm | None, heads: int) -> Tensor:
        """[1, S, heads * head_dim] → [1, S, heads, head_dim], where need be after a norm of all."""
        if norm is not None and self.config.qk_norm != HEADS:
            x = norm(x)
        return x.view(1, x.shape[1], heads, self.head_dim)

    def _turned(self, q: Tensor, k: Tensor, call: Call) -> tuple[Tensor, Tensor]:
        if self.kind.tables is None:
            return q, k
        q, k = torch_ops.apply_rotary_emb_hf(q, k, *self._tables(call), call.start)
        return q, k

    def _tables(self, call: Call) -> tuple[Tensor, Tensor]:
        cos, sin = (call.tables[f"{name}{self.kind.tables}"] for name in TABLES)
        return cos, sin


class ShortConv(nn.Module):
    """out(c · conv(b · u)), of which the last columns are carried on."""

    def __init__(self, config: DecoderConfig, kinds: Mapping[str, WeightKind], path: str) -> None:
        super().__init__()
        width, taps = config.width, config.conv_taps
        self.in_proj = Weight(kinds[f"{path}.in_proj.weight"], 3 * width, width)
        self.conv = Taps(width, taps)
        self.out_proj = Weight(kinds[f"{path}.out_proj.weight"], width, width)
        self.register_buffer("conv_state", torch.zeros(1, taps - 1, width))

    def forward(self, x: Tensor, call: Call) -> Tensor:
        given = (self.in_proj(x), self.conv.weight, self.conv_state, call.start)
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

    def forward(self, x: Tensor, call: Call) -> Tensor:
        qkv = self.in_proj_qkv(x)
        mixed = state_ops.conv_silu(qkv, self.conv1d.weight, self.conv_state, call.start)
        gates = (self.in_proj_z(x), self.in_proj_b(x), self.in_proj_a(x))
        constants = (self.decay.weight, self.dt.bias, self.norm.weight, self.eps)
        how = (self.sizes.key_heads, self.sizes.tiled, self.delta_state, call.start)
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

    def __init__(
        self, config: DecoderConfig, kind: LayerKind, kinds: Mapping[str, WeightKind], path: str
    ) -> None:
        super().__init__()
        width, hidden = config.width, kind.hidden or config.hidden
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
    what came in; then what tokens have for this layer."""

    def __init__(self, config: DecoderConfig, number: int, kinds: Mapping[str, WeightKind]) -> None:
        super().__init__()
        self.config, self.number = config, number
        kind, path = config.layer_kind(number), f"layers.{number}"
        self.mixer = MIXERS.get(kind.mixer, "self_attn")
        if kind.mixer == SHORT_CONV:
            self.conv = ShortConv(config, kinds, f"{path}.conv")
        elif kind.mixer == DELTA_NET:
            self.linear_attn = DeltaNet(config, kinds, f"{path}.linear_attn")
        else:
            self.self_attn = Attention(config, number, kinds, f"{path}.self_attn")
        if config.experts is None or kind.is_dense:
            self.mlp: nn.Module = Mlp(config, kind, kinds, f"{path}.mlp")
        else:
            self.mlp = Mixture(config, kinds, f"{path}.mlp")
        for name in LAYER_NORMS[config.norms]:
            self.add_module(name, Norm(config.width, config.eps))
        if config.per_layer:
            shapes = {
                PER_LAYER_GATE: (config.per_layer, config.width),
                PER_LAYER_OUT: (config.width, config.per_layer),
            }
            for name, dims in shapes.items():
                self.add_module(name, Weight(kinds[f"{path}.{name}.weight"], *dims))
            self.add_module(PER_LAYER_NORM, Norm(config.width, config.eps))
        if config.layer_scalars:
            self.add_module(LAYER_SCALAR, Vector("weight", 1))

    def forward(self, x: Tensor, call: Call, per_layer: Tensor | None) -> Tensor:
        where = self.config.norms
        mix = getattr(self, self.mixer)
        added = mix(x if where == AFTER else self.input_layernorm(x), call)
        x = x + (added if where == BEFORE else self.post_attention_layernorm(added))
        ahead = x
        if where == BEFORE:
            ahead = self.post_attention_layernorm(x)
        elif where == AROUND:
            ahead = self.pre_feedforward_layernorm(x)
        added = self.mlp(ahead)
        x = x + (added if where == BEFORE else self.post_feedforward_layernorm(added))
        if per_layer is not None:
            gate = nn.functional.gelu(getattr(self, PER_LAYER_GATE)(x), approximate="tanh")
            product = gate * per_layer[:, :, self.number]
            x = x + getattr(self, PER_LAYER_NORM)(getattr(self, PER_LAYER_OUT)(product))
        return x * getattr(self, LAYER_SCALAR).weight if self.config.layer_scalars else x


class Decoder(nn.Module):
    """tokens: int64 [1, S], pos: int64 [1] → logits of the last token: [1, vocabulary]."""

    def __init__(self, config: DecoderConfig, kinds: Mapping[str, WeightKind]) -> None:
        super().__init__()
        self.config = config
        embedding = kinds["embed_tokens.weight"]
        self.embed_tokens = Weight(embedding, config.vocabulary, config.width)
        self.layers = nn.ModuleList(Layer(config, number, kinds) for number in range(config.layers))
        self.norm = Norm(config.width, config.eps)
        if not config.tied:
            self.lm_head = Weight(kinds["lm_head.weight"], config.vocabulary, config.width)
        for table in config.tables:
            columns = config.table_columns(table.removeprefix("cos").removeprefix("sin"))
            self.register_buffer(table, torch.empty(config.context, columns))
        if config.per_layer:
            columns = config.layers * config.per_layer
            shapes = {
                PER_LAYER_TABLE: (config.vocabulary, columns),
                PER_LAYER_IN: (columns, config.width),
            }
            for name, dims in shapes.items():
                self.add_module(name, Weight(kinds[f"{name}.weight"], *dims))
            # What is normalised was to be divided by the root of the width: eps grows instead.
            norm = Norm(config.per_layer, config.eps * config.width)
            self.add_module(PER_LAYER_IN_NORM, norm)

    def forward(self, tokens: Tensor, pos: Tensor) -> Tensor:
        start: Any = pos[-1].item()  # an int that stays symbolic while torch.export looks on
        torch._check(start >= 0)  # bounds for torch.export; the engine checks them at each call
        torch._check(start + tokens.shape[1] <= self.config.context)
        return self.logits(self.hidden(tokens, start)[:, -1])

    def hidden(self, tokens: Tensor, start: int) -> Tensor:  # [1, S] → [1, S, width]
        x = self.embed_tokens.look_up(tokens)
        if self.config.embedding_scale != 1:
            x = x * self.config.embedding_scale
        per_layer = self._per_layer_inputs(tokens, x) if self.config.per_layer else None
        call = Call({name: getattr(self, name) for name in self.config.tables}, start)
        for layer in self.layers:
            x = layer(x, call, per_layer)
        return x

    def _per_layer_inputs(self, tokens: Tensor, x: Tensor) -> Tensor:
        """[1, S, layers, columns]: a token's own rows, and what its embedding gives."""
        c = self.config
        dims = (1, tokens.shape[1], c.layers, c.per_layer)
        own = (getattr(self, PER_LAYER_TABLE).look_up(tokens) * c.per_layer**0.5).view(dims)
        given = getattr(self, PER_LAYER_IN)(x).view(dims)
        return (own + getattr(self, PER_LAYER_IN_NORM)(given)) * 2**-0.5

    def logits(self, x: Tensor) -> Tensor:  # [..., width] → [..., vocabulary]
        head = self.embed_tokens if self.config.tied else self.lm_head
        logits, cap = head(self.norm(x)), self.config.logit_cap
        if self.config.logit_divisor != 1:
            logits = logits / self.config.logit_divisor
        return logits if cap is None else torch.tanh(logits / cap) * cap
