"""The mixers that carry a state on, in the decoder's program: what stands in for attention."""

from py_runtime.base.dtypes import F32
from py_runtime.decoder.written_ops import WrittenOps
from py_runtime.program import op_names
from py_runtime.program.writer import Ref


class StateMixers(WrittenOps):
    """Short convolutions, gated delta nets and Mamba-2."""

    def _short_conv(self, path: str, x: Ref) -> Ref:
        """Write out(c · conv(b · u)), of which the last columns are carried on."""
        c, rows = self.config, self.rows
        projected = self._linear(f"{path}.in_proj", x, rows)
        taps = c.mixer.conv_taps
        weight = self._constant(f"{path}.conv.weight", (c.width, taps))
        state = self.writer.state(f"{path}.conv_state", (1, taps - 1, c.width), F32)
        given = (projected, weight, state, self.start)
        mixed = self._computed("inpage.short_conv.default", (*rows, c.width), *given)
        return self._linear(f"{path}.out_proj", mixed, rows)

    def _delta_net(self, path: str, x: Ref) -> Ref:
        """Write out(gated delta rule over convolved queries, keys and values)."""
        c, rows, sizes = self.config, self.rows, self.config.mixer.delta
        assert sizes is not None, "a config with such layers has their sizes"
        qkv = self._linear(f"{path}.in_proj_qkv", x, rows)
        taps = c.mixer.conv_taps
        weight = self._constant(f"{path}.conv1d.weight", (sizes.columns, taps))
        columns = self.writer.state(f"{path}.conv_state", (1, taps - 1, sizes.columns), F32)
        given = (qkv, weight, columns, self.start)
        mixed = self._computed("inpage.conv_silu.default", (*rows, sizes.columns), *given)
        gates = [self._linear(f"{path}.in_proj_{part}", x, rows) for part in "zba"]
        heads = (sizes.value_heads,)
        decay = self._constant(f"{path}.decay.weight", heads)
        dt_bias = self._constant(f"{path}.dt.bias", heads)
        norm = self._constant(f"{path}.norm.weight", (sizes.value_dim,))
        dims = (1, sizes.value_heads, sizes.key_dim, sizes.value_dim)
        state = self.writer.state(f"{path}.delta_state", dims, F32)
        how = (c.norms.eps, sizes.key_heads, sizes.tiled, state, self.start)
        out = self._computed(
            "inpage.gated_delta.default",
            (*rows, sizes.values),
            *(mixed, *gates, decay, dt_bias, norm, *how),
        )
        return self._linear(f"{path}.out_proj", out, rows)

    def _mamba(self, path: str, x: Ref) -> Ref:
        """Write out(norm(selective scan over convolved values, under its gate))."""
        c, rows, sizes = self.config, self.rows, self.config.mixer.scan
        assert sizes is not None, "a config with such layers has their sizes"
        projected = self._linear(f"{path}.in_proj", x, rows)  # [1, S, gates, convolved, steps]
        taps = c.mixer.conv_taps
        weight = self._constant(f"{path}.conv1d.weight", (sizes.columns, taps))
        bias = self._constant(f"{path}.conv1d.bias", (sizes.columns,)) if sizes.conv_bias else None
        columns = self.writer.state(f"{path}.conv_state", (1, taps - 1, sizes.columns), F32)
        given = (projected, weight, bias, sizes.values, columns, self.start)
        mixed = self._computed("inpage.conv_part_silu.default", (*rows, sizes.columns), *given)
        heads = (sizes.heads,)
        rates = [
            self._constant(f"{path}.{name}", heads)
            for name in ("decay.weight", "dt.bias", "skip.weight")
        ]
        held = (1, sizes.heads, sizes.state_dim, sizes.head_dim)
        state = self.writer.state(f"{path}.scan_state", held, F32)
        out = self._computed(
            "inpage.selective_scan.default",
            (*rows, sizes.values),
            *(mixed, projected, *rates, sizes.groups, state, self.start),
        )
        normed = self._normed_by_groups(path, out) if sizes.norm_groups else out
        return self._linear(f"{path}.out_proj", normed, rows)

    def _normed_by_groups(self, path: str, x: Ref) -> Ref:
        """Write a norm over each group of columns; the weight is all columns'."""
        rows, sizes = self.rows, self.config.mixer.scan
        assert sizes is not None, "a config with such layers has their sizes"
        dims = (*rows, sizes.values)
        weight = self._constant(f"{path}.norm.weight", (sizes.values,))
        if sizes.norm_groups == 1:
            return self._computed(op_names.RMS_NORM, dims, x, weight, sizes.norm_eps)
        apart = (*rows, sizes.norm_groups, sizes.values // sizes.norm_groups)
        groups = self._heads(x, apart)
        groups = self._computed(op_names.RMS_NORM, apart, groups, None, sizes.norm_eps)
        return self._computed(op_names.MUL, dims, self._heads(groups, dims), weight)
