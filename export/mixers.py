"""Token mixers of a layer, in PyTorch: attention, a short convolution, a gated delta net, Mamba-2.

They are a part of the oracle in export/decoder.py, which says why the decoder is written twice.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from export import attention_ops, state_ops, torch_ops
from export.weight_modules import Norm, Taps, Vector, Weight
from py_runtime.decoder.config import (
    DELTA_NET,
    HEADS,
    MAMBA,
    QUERY,
    SHORT_CONV,
    TABLES,
    DecoderConfig,
)
from py_runtime.decoder.tensors import WeightKind, qk_norm_columns

# By which names layers have them.
MIXERS = {SHORT_CONV: "conv", DELTA_NET: "linear_attn", MAMBA: "mamba"}


@dataclass
class Call:
    """The state that all layers of one call share."""

    tables: dict[str, Tensor]
    start: int
    caches: dict[int, tuple[Tensor, Tensor]] = field(default_factory=dict)  # by layer, so far


class Attention(nn.Module):
    """Causal attention with grouped heads, over a KV cache of its own or another's."""

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
        c, part, kind = config, config.attention, config.layer_kind(number)
        self.config, self.part, self.kind, self.number = c, part, kind, number
        self.head_dim = part.head_dim_of(kind)
        q_rows, kv_rows = part.heads * self.head_dim, part.kv_heads * self.head_dim

        def weight(name: str, rows: int, columns: int, bias: bool) -> Weight:
            return Weight(kinds[f"{path}.{name}.weight"], rows, columns, bias)

        self.q_proj = weight("q_proj", q_rows, c.width, part.qkv_bias)
        if kind.shares is None:
            self.k_proj = weight("k_proj", kv_rows, c.width, part.qkv_bias)
            self.v_proj = weight("v_proj", kv_rows, c.width, part.qkv_bias)
            for cache in ("k_cache", "v_cache"):
                self.register_buffer(cache, torch.zeros(1, c.context, part.kv_heads, self.head_dim))
        if part.is_gated:
            self.g_proj = weight("g_proj", q_rows, c.width, part.qkv_bias)
        self.o_proj = weight("o_proj", c.width, q_rows, part.o_bias)
        norms = [Norm(columns, c.norms.eps) for columns in qk_norm_columns(c, kind)]
        self.q_norm, self.k_norm = norms or (None, None)
        if kind.shares is not None:
            self.k_norm = None
        self.register_buffer("sinks", torch.empty(part.heads) if part.sinks else None)

    def forward(self, x: Tensor, call: Call) -> Tensor:
        shared = self.kind.shares is not None
        attended = self._attend_shared(x, call) if shared else self._attend_own(x, call)
        flat = attended.view(1, x.shape[1], self.part.heads * self.head_dim)
        return self.o_proj(flat * torch.sigmoid(self.g_proj(x)) if self.part.is_gated else flat)

    def _attend_own(self, x: Tensor, call: Call) -> Tensor:
        part = self.part
        q = self._heads(self.q_proj(x), self.q_norm, part.heads)
        k = self._heads(self.k_proj(x), self.k_norm, part.kv_heads)
        v = self._heads(self.v_proj(x), None, part.kv_heads)
        if part.qk_norm == HEADS and self.q_norm is not None and self.k_norm is not None:
            q, k = self.q_norm(q), self.k_norm(k)
        if part.value_norm:
            v = torch_ops.rms_norm(v, None, self.config.norms.eps)
        q, k = self._turned(q, k, call)
        call.caches[self.number] = self.k_cache, self.v_cache
        scale, window, cap = part.scale, self.kind.window, part.score_cap
        given = (q, k, v, self.k_cache, self.v_cache, call.start)
        if window is None and cap is None and self.sinks is None:
            return torch_ops.sdpa_with_kv_cache(*given, q.shape[1], None, 0.0, True, scale)
        return torch_ops.windowed_attention(*given, scale, window, cap, self.sinks)

    def _attend_shared(self, x: Tensor, call: Call) -> Tensor:
        """Attend over caches that an earlier layer has filled, for these tokens too."""
        part, window, cap = self.part, self.kind.window, self.part.score_cap
        assert self.kind.shares is not None, "it has none of its own"
        q = self._heads(self.q_proj(x), self.q_norm, part.heads)
        if part.qk_norm == HEADS and self.q_norm is not None:
            q = self.q_norm(q)
        if self.kind.tables is not None:
            ending = QUERY if self.config.rope.scaled_queries else self.kind.tables
            q = self._turned_alone(q, ending, call)
        given = (q, *call.caches[self.kind.shares], call.start, part.scale)
        if window is None and cap is None and self.sinks is None:
            return attention_ops.attend_kv_cache(*given)
        return attention_ops.attend_window(*given, window, cap, self.sinks)

    def _heads(self, x: Tensor, norm: Norm | None, heads: int) -> Tensor:
        """Turn [1, S, heads * head_dim] into [1, S, heads, head_dim].

        A norm over all heads together, where the model has one, comes first.
        """
        if norm is not None and self.part.qk_norm != HEADS:
            x = norm(x)
        return x.view(1, x.shape[1], heads, self.head_dim)

    def _turned(self, q: Tensor, k: Tensor, call: Call) -> tuple[Tensor, Tensor]:
        if self.kind.tables is None:
            return q, k
        if self.config.rope.scaled_queries:
            q = self._turned_alone(q, QUERY, call)
            return q, self._turned_alone(k, self.kind.tables, call)
        tables = self._tables(self.kind.tables, call)
        q, k = torch_ops.apply_rotary_emb_hf(q, k, *tables, call.start)
        return q, k

    def _turned_alone(self, x: Tensor, ending: str, call: Call) -> Tensor:
        return attention_ops.rotary_of_one(x, *self._tables(ending, call), call.start)

    def _tables(self, ending: str, call: Call) -> tuple[Tensor, Tensor]:
        cos, sin = (call.tables[f"{name}{ending}"] for name in TABLES)
        return cos, sin


class ShortConv(nn.Module):
    """out(c · conv(b · u)), of which the last columns are carried on."""

    def __init__(self, config: DecoderConfig, kinds: Mapping[str, WeightKind], path: str) -> None:
        super().__init__()
        width, taps = config.width, config.mixer.conv_taps
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
        sizes, width = config.mixer.delta, config.width
        assert sizes is not None, "a config with such layers has their sizes"
        self.sizes, self.eps = sizes, config.norms.eps

        def weight(name: str, rows: int, columns: int) -> Weight:
            return Weight(kinds[f"{path}.{name}.weight"], rows, columns)

        self.in_proj_qkv = weight("in_proj_qkv", sizes.columns, width)
        self.conv1d = Taps(sizes.columns, config.mixer.conv_taps)
        self.in_proj_z = weight("in_proj_z", sizes.values, width)
        self.in_proj_b = weight("in_proj_b", sizes.value_heads, width)
        self.in_proj_a = weight("in_proj_a", sizes.value_heads, width)
        self.decay = Vector("weight", sizes.value_heads)
        self.dt = Vector("bias", sizes.value_heads)
        self.norm = Vector("weight", sizes.value_dim)
        self.out_proj = weight("out_proj", width, sizes.values)
        held = (1, config.mixer.conv_taps - 1, sizes.columns)
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


class Mamba(nn.Module):
    """out(norm(selective scan over convolved values, under its gate))."""

    norm: Vector | None

    def __init__(self, config: DecoderConfig, kinds: Mapping[str, WeightKind], path: str) -> None:
        super().__init__()
        sizes, width = config.mixer.scan, config.width
        assert sizes is not None, "a config with such layers has their sizes"
        self.sizes = sizes

        def weight(name: str, rows: int, columns: int) -> Weight:
            return Weight(kinds[f"{path}.{name}.weight"], rows, columns, sizes.proj_bias)

        self.in_proj = weight("in_proj", sizes.projected, width)
        self.conv1d = Taps(sizes.columns, config.mixer.conv_taps, sizes.conv_bias)
        self.decay = Vector("weight", sizes.heads)
        self.dt = Vector("bias", sizes.heads)
        self.skip = Vector("weight", sizes.heads)
        self.norm = Vector("weight", sizes.values) if sizes.norm_groups else None
        self.out_proj = weight("out_proj", width, sizes.values)
        held = (1, config.mixer.conv_taps - 1, sizes.columns)
        self.register_buffer("conv_state", torch.zeros(held))
        dims = (1, sizes.heads, sizes.state_dim, sizes.head_dim)
        self.register_buffer("scan_state", torch.zeros(dims))

    def forward(self, x: Tensor, call: Call) -> Tensor:
        sizes, projected = self.sizes, self.in_proj(x)
        taps = (self.conv1d.weight, self.conv1d.bias, sizes.values)
        mixed = state_ops.conv_part_silu(projected, *taps, self.conv_state, call.start)
        rates = (self.decay.weight, self.dt.bias, self.skip.weight)
        how = (sizes.groups, self.scan_state, call.start)
        out = state_ops.selective_scan(mixed, projected, *rates, *how)
        return self.out_proj(out if self.norm is None else self._normed(out, self.norm.weight))

    def _normed(self, x: Tensor, weight: Tensor) -> Tensor:
        """Normalise each group of columns; the weight is all columns'."""
        groups, eps = self.sizes.norm_groups, self.sizes.norm_eps
        if groups == 1:
            return torch_ops.rms_norm(x, weight, eps)
        apart = x.view(1, x.shape[1], groups, self.sizes.values // groups)
        flat = torch_ops.rms_norm(apart, None, eps).view(1, x.shape[1], self.sizes.values)
        return flat * weight
