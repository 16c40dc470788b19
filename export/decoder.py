"""The decoder in PyTorch: the oracle of what the engine computes for every family.

What is exported is py_runtime/decoder/program.py, which needs no PyTorch. This is the same decoder
written a second time, for another reader: torch runs it in float32 to make goldens and to verify a
model folder (export/reference.py), and tests hold the two together, in numbers and op for op. They
have the same order and names; what mixes tokens is in export/mixers.py, the engine's ops as torch
has them in export/torch_ops.py.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from export import torch_ops
from export.mixers import MIXERS, Attention, Call, DeltaNet, Mamba, ShortConv
from export.weight_modules import Norm, Vector, Weight
from py_runtime.decoder.config import (
    AFTER,
    AROUND,
    BEFORE,
    BESIDE,
    DELTA_NET,
    MAMBA,
    NOTHING,
    RELU_SQUARED,
    SHORT_CONV,
    SIGMOID,
    SILU,
    DecoderConfig,
)
from py_runtime.decoder.tensors import (
    LAYER_SCALAR,
    PER_LAYER_GATE,
    PER_LAYER_IN,
    PER_LAYER_IN_NORM,
    PER_LAYER_NORM,
    PER_LAYER_OUT,
    PER_LAYER_TABLE,
    SHARED,
    WeightKind,
    layer_norms,
)


class Mlp(nn.Module):
    """down(activation(gate(x)) * up(x)), or down(relu(up(x))²)."""

    def __init__(
        self, config: DecoderConfig, hidden: int, kinds: Mapping[str, WeightKind], path: str
    ) -> None:
        super().__init__()
        width, bias = config.width, config.mlp.has_bias
        if config.mlp.activation != RELU_SQUARED:
            self.gate_proj = Weight(kinds[f"{path}.gate_proj.weight"], hidden, width, bias)
        self.up_proj = Weight(kinds[f"{path}.up_proj.weight"], hidden, width, bias)
        self.down_proj = Weight(kinds[f"{path}.down_proj.weight"], width, hidden, bias)
        self.activation = config.mlp.activation

    def forward(self, x: Tensor) -> Tensor:  # SwiGLU, GeGLU, or without a gate
        if self.activation == RELU_SQUARED:
            positive = nn.functional.relu(self.up_proj(x))
            return self.down_proj(positive * positive)
        gate = self.gate_proj(x)
        functional = nn.functional
        is_silu = self.activation == SILU
        activated = functional.silu(gate) if is_silu else functional.gelu(gate, approximate="tanh")
        return self.down_proj(activated * self.up_proj(x))


class Mixture(nn.Module):
    """The same MLP by a few of many experts, which the token's logits for them choose."""

    expert_bias: Tensor | None

    def __init__(self, config: DecoderConfig, kinds: Mapping[str, WeightKind], path: str) -> None:
        super().__init__()
        assert config.mlp.experts is not None, "a config with experts has their sizes"
        self.sizes, width = config.mlp.experts, config.width
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
    """A decoder layer: attention or another mixer, then an MLP, each added to its input.

    Norms come before each of them, after it, or both. Where tokens have an embedding for each
    layer, it is added last.
    """

    def __init__(self, config: DecoderConfig, number: int, kinds: Mapping[str, WeightKind]) -> None:
        super().__init__()
        self.config, self.number = config, number
        kind, path = config.layer_kind(number), f"layers.{number}"
        self.mixer = MIXERS.get(kind.mixer, "self_attn")
        if kind.mixer == SHORT_CONV:
            self.conv = ShortConv(config, kinds, f"{path}.conv")
        elif kind.mixer == DELTA_NET:
            self.linear_attn = DeltaNet(config, kinds, f"{path}.linear_attn")
        elif kind.mixer not in (MAMBA, NOTHING):
            self.self_attn = Attention(config, number, kinds, f"{path}.self_attn")
        if kind.mixer in (MAMBA, BESIDE):
            self.mamba = Mamba(config, kinds, f"{path}.mamba")
        self.kind, self.has_shared = kind, False
        self.mlp: nn.Module
        if not kind.has_mlp:
            pass
        elif config.mlp.experts is None or kind.is_dense:
            self.mlp = Mlp(config, kind.hidden or config.mlp.hidden, kinds, f"{path}.mlp")
        else:
            self.mlp = Mixture(config, kinds, f"{path}.mlp")
            self.has_shared = config.mlp.experts.shared > 0
            if self.has_shared:
                shared = Mlp(config, config.mlp.experts.shared, kinds, f"{path}.{SHARED}")
                self.add_module(SHARED, shared)
        for name in layer_norms(config, kind):
            self.add_module(name, Norm(config.width, config.norms.eps))
        if config.per_layer:
            shapes = {
                PER_LAYER_GATE: (config.per_layer, config.width),
                PER_LAYER_OUT: (config.width, config.per_layer),
            }
            for name, dims in shapes.items():
                self.add_module(name, Weight(kinds[f"{path}.{name}.weight"], *dims))
            self.add_module(PER_LAYER_NORM, Norm(config.width, config.norms.eps))
        if config.layer_scalars:
            self.add_module(LAYER_SCALAR, Vector("weight", 1))

    def forward(self, x: Tensor, call: Call, per_layer: Tensor | None) -> Tensor:
        where = self.config.norms.place
        if self.kind.is_one_part:
            ahead = self.input_layernorm(x)
            mixes = self.kind.mixes
            return x + (getattr(self, self.mixer)(ahead, call) if mixes else self.mlp(ahead))
        mix = getattr(self, self.mixer)
        ahead = x if where == AFTER else self.input_layernorm(x)
        added = mix(ahead, call)
        x = x + (added if where == BEFORE else self.post_attention_layernorm(added))
        if self.kind.mixer == BESIDE:
            x = x + self.mamba(ahead, call)
        ahead = x
        if where == BEFORE:
            ahead = self.post_attention_layernorm(x)
        elif where == AROUND:
            ahead = self.pre_feedforward_layernorm(x)
        added = self.mlp(ahead)
        x = x + (added if where == BEFORE else self.post_feedforward_layernorm(added))
        if self.has_shared:
            x = x + getattr(self, SHARED)(ahead)
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
        self.norm = Norm(config.width, config.norms.eps)
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
            norm = Norm(config.per_layer, config.norms.eps * config.width)
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
        """Return a token's own rows plus what its embedding gives: [1, S, layers, columns]."""
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
