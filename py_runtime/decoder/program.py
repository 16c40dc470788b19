"""The decoder's program: the one description of what the engine computes for every family.

The exporter writes it into model folders, and GGUF files are run by it in the page. The same
decoder in PyTorch, export/decoder.py, is its oracle: it makes goldens, and tests compare the two in
numbers and, traced by torch.export, op for op. They have the same order and names.

tokens: i64 [1, S], pos: i64 [1] → logits of the last token: [1, vocabulary]. Where the model sees:
is_image: bool [1, S, 1] and images: f32 [1, S, W · (1 + deep)], which stand in for the embeddings
there and are added behind the first layers. together: i64 [1, 1, 1], so many first
tokens see each other. places: i64 [1, S, 3], those of tokens from the position on.
"""

from collections.abc import Mapping
from functools import cached_property

from py_runtime.base.dtypes import BOOL, F32, I64
from py_runtime.base.shapes import Dims
from py_runtime.decoder.config import (
    AFTER,
    AROUND,
    BEFORE,
    BESIDE,
    DELTA_NET,
    HEADS,
    MAMBA,
    QUERY,
    RELU_SQUARED,
    ROWS,
    SHORT_CONV,
    SIGMOID,
    SILU,
    TABLES,
    DecoderConfig,
    LayerKind,
)
from py_runtime.decoder.state_mixers import StateMixers
from py_runtime.decoder.tensors import (
    CHOICE,
    EXPERTS,
    LAYER_SCALAR,
    PER_LAYER_GATE,
    PER_LAYER_IN,
    PER_LAYER_IN_NORM,
    PER_LAYER_NORM,
    PER_LAYER_OUT,
    PER_LAYER_TABLE,
    ROUTER,
    SHARED,
    WeightKind,
)
from py_runtime.decoder.words import AXES, PLACES, TOGETHER
from py_runtime.program import Program, op_names
from py_runtime.program.writer import Ref


def write_decoder(config: DecoderConfig, kinds: Mapping[str, WeightKind], name: str) -> Program:
    """Write the program; `kinds` has the kind of every one of weight_names(config)."""
    return DecoderWriter(config, kinds, name).write()


class DecoderWriter(StateMixers):
    """A decoder's program that is being written."""

    def __init__(self, config: DecoderConfig, kinds: Mapping[str, WeightKind], name: str) -> None:
        super().__init__(config, kinds, name)
        self.caches: dict[int, list[Ref]] = {}  # of the layers that have their own

    def write(self) -> Program:
        c, writer = self.config, self.writer
        self._take_tokens()
        if c.sees:
            self.is_image = writer.input("is_image", (*self.rows, 1), BOOL, dynamic=(1,))
            columns = c.width * (1 + c.sees.deep)
            self.images = writer.input("images", (*self.rows, columns), F32, dynamic=(1,))
        if c.sees and c.sees.whole:
            self.together = writer.symint("together")
            together = writer.input(TOGETHER, (1, 1, 1), I64)
            writer.op("et_vk.select_as_symint.default", together, 0, -1, self.together)
        if c.sees and c.sees.axes:
            places = writer.input(PLACES, (*self.rows, 3), I64, dynamic=(1,))
            self.turning = self._tables_by_axes(places)
        x = self._embedding()  # [1, S, W]
        per_layer = self._per_layer_inputs(x) if c.per_layer else None
        for number in range(c.layers):
            kind = c.layer_kind(number)
            is_end = not c.layer_scalars and per_layer is None
            x = self._layer(number, kind, x, is_end)
            if per_layer is not None:
                x = self._with_per_layer(number, x, per_layer, not c.layer_scalars)
            if c.sees and number < c.sees.deep:
                both = self._add(x, self._rows_of_images(1 + number))
                given = (self.is_image, both, x)
                x = self._computed("aten.where.self", (*self.rows, c.width), *given)
            if c.layer_scalars:
                scalar = self._constant(f"layers.{number}.{LAYER_SCALAR}.weight", (1,))
                dims = (*self.rows, c.width)
                x = self._computed(op_names.MUL, dims, x, scalar, name=f"layers.{number}")
        if c.foresees:
            normed = self._norm("norm", x, (*self.rows, c.width))
            self._keep(self._heads(normed, (*self.rows, 1, c.width)), self.start)
        last = self._last(x)
        self._give_logits(self._norm("norm", last, (1, c.width), name="norm"))
        return writer.program()

    def _take_tokens(self) -> None:
        writer = self.writer
        self.tokens = writer.input("tokens", self.rows, I64, dynamic=(1,))
        pos = writer.input("pos", (1,), I64)
        self.length, self.start = writer.symint("length"), writer.symint("start")
        writer.op("sym_size.int", self.tokens, 1, self.length)
        writer.op("et_vk.select_as_symint.default", pos, 0, -1, self.start)

    def _last(self, x: Ref) -> Ref:
        last = self._tensor((1, self.config.width))
        self.writer.op(op_names.SELECT, x, 1, -1, last)
        return last

    def _give_logits(self, normed: Ref) -> None:
        head = "embed_tokens" if self.config.tied else "lm_head"
        self.writer.output(self._finished(self._linear(head, normed, (1,))))

    @cached_property
    def ends(self) -> Ref:
        """The ends of tokens' ways through the layers, by position: what a head reads."""
        return self.writer.state("ends", (1, self.config.context, 1, self.config.width), F32)

    def _keep(self, rows: Ref, start: Ref) -> None:
        """Keep the ends [1, S, 1, W] of tokens from a position on."""
        self.writer.op("update_cache.default", rows, self.ends, start, self._tensor((1,)))

    def _finished(self, logits: Ref) -> Ref:
        c, dims = self.config, (1, self.config.vocabulary)
        if c.logit_divisor != 1:
            logits = self._computed("aten.div.Tensor", dims, logits, c.logit_divisor)
        if c.logit_cap is not None:
            small = self._computed("aten.div.Tensor", dims, logits, c.logit_cap)
            bent = self._computed("aten.tanh.default", dims, small)
            logits = self._computed(op_names.MUL, dims, bent, c.logit_cap)
        return logits

    def _embedding(self) -> Ref:
        c = self.config
        dims, scale = (*self.rows, c.width), c.embedding_scale
        is_scaled, name = scale != 1, "" if c.sees else "embedding"
        out = self._looked_up("embed_tokens", dims, "" if is_scaled else name)
        if is_scaled:
            out = self._computed(op_names.MUL, dims, out, scale, name=name)
        if not c.sees:
            return out
        given = (self.is_image, self._rows_of_images(0), out)
        return self._computed("aten.where.self", dims, *given, name="embedding")

    def _rows_of_images(self, part: int) -> Ref:
        """Return the columns of the rows of images that stand for embeddings, or for a layer."""
        c = self.config
        if c.sees is None or not c.sees.deep:
            return self.images
        how = (-1, part * c.width, (part + 1) * c.width, 1)
        return self._computed("aten.slice_copy.Tensor", (*self.rows, c.width), self.images, *how)

    def _tables_by_axes(self, places: Ref) -> list[Ref]:
        """Write the rotary tables of these tokens, whose pairs turn by one of three places."""
        c, writer = self.config, self.writer
        columns = c.table_columns("")
        length, most = (c.context, columns), self.rows[1]
        at = writer.tensor((*self.rows, 3), I64)
        writer.op(op_names.ADD, places, self.start, 1, at)
        found = []
        for name in TABLES:
            table, sums = self._constant(name, length), None
            for axis in range(3):
                own = writer.tensor(self.rows, I64)
                writer.op(op_names.SELECT, at, 2, axis, own)
                nothing = (-1, False, False)
                dims = (*self.rows, columns)
                rows = self._computed("aten.embedding.default", dims, table, own, *nothing)
                share = self._constant(f"{AXES}.{axis}", (columns,))
                rows = self._computed(op_names.MUL, dims, rows, share)
                sums = rows if sums is None else self._computed(op_names.ADD, dims, sums, rows, 1)
            flat = self._tensor((most, columns))
            writer.op("aten.view.default", sums, [self.length, columns], flat)
            found.append(flat)
        return found

    def _per_layer_inputs(self, x: Ref) -> Ref:
        """Write a token's own rows plus what its embedding gives: [1, S, layers, columns]."""
        c, rows = self.config, self.rows
        dims = (*rows, c.layers, c.per_layer)
        own = self._looked_up(PER_LAYER_TABLE, (*rows, c.layers * c.per_layer))
        own = self._computed(op_names.MUL, (*rows, c.layers * c.per_layer), own, c.per_layer**0.5)
        own = self._heads(own, dims)
        given = self._heads(self._linear(PER_LAYER_IN, x, rows), dims)
        # Transformers divides by the root of the width first, which a larger eps does as well.
        given = self._norm(PER_LAYER_IN_NORM, given, dims, eps=c.norms.eps * c.width)
        both = self._computed(op_names.ADD, dims, own, given, 1)
        return self._computed(op_names.MUL, dims, both, 2**-0.5)

    def _with_per_layer(self, number: int, x: Ref, per_layer: Ref, is_end: bool) -> Ref:
        """Write x + norm(out(gelu(gate(x)) * a token's own row of this layer))."""
        c, path, rows = self.config, f"layers.{number}", self.rows
        dims = (*rows, c.per_layer)
        gate = self._linear(f"{path}.{PER_LAYER_GATE}", x, rows)
        gate = self._computed(op_names.GELU, dims, gate, "tanh")
        own = self._computed(op_names.SELECT, dims, per_layer, 2, number)
        product = self._computed(op_names.MUL, dims, gate, own)
        added = self._linear(f"{path}.{PER_LAYER_OUT}", product, rows)
        added = self._norm(f"{path}.{PER_LAYER_NORM}", added, (*rows, c.width))
        return self._add(x, added, name=path if is_end else "")

    def _layer(self, number: int, kind: LayerKind, x: Ref, is_end: bool) -> Ref:
        c, path = self.config, f"layers.{number}"
        dims = (*self.rows, c.width)
        if kind.is_one_part:
            ahead = self._norm(f"{path}.input_layernorm", x, dims)
            mixes = kind.mixes
            added = self._mixed(number, kind, ahead) if mixes else self._fed(kind, path, ahead)
            return self._add(x, added, name=path if is_end else "")
        ahead = x if c.norms.place == AFTER else self._norm(f"{path}.input_layernorm", x, dims)
        added = self._mixed(number, kind, ahead)
        if c.norms.place != BEFORE:
            added = self._norm(f"{path}.post_attention_layernorm", added, dims)
        x = self._add(x, added)
        if kind.mixer == BESIDE:
            x = self._add(x, self._mamba(f"{path}.mamba", ahead))
        ahead = x
        if c.norms.place != AFTER:
            is_third = c.norms.place == AROUND
            name = "pre_feedforward_layernorm" if is_third else "post_attention_layernorm"
            ahead = self._norm(f"{path}.{name}", x, dims)
        added = self._fed(kind, path, ahead)
        if c.norms.place != BEFORE:
            added = self._norm(f"{path}.post_feedforward_layernorm", added, dims)
        experts = None if kind.is_dense else c.mlp.experts
        if experts is not None and experts.shared:
            x = self._add(x, added)
            added = self._mlp(f"{path}.{SHARED}", experts.shared, ahead)
        return self._add(x, added, name=path if is_end else "")

    def _mixed(self, number: int, kind: LayerKind, x: Ref) -> Ref:
        path = f"layers.{number}"
        if kind.mixer == SHORT_CONV:
            return self._short_conv(f"{path}.conv", x)
        if kind.mixer == DELTA_NET:
            return self._delta_net(f"{path}.linear_attn", x)
        if kind.mixer == MAMBA:
            return self._mamba(f"{path}.mamba", x)
        return self._attention(number, kind, x)

    def _attention(self, number: int, kind: LayerKind, x: Ref) -> Ref:
        """Write causal attention with grouped heads, over a KV cache of its own or another's."""
        path, part, rows = f"layers.{number}.self_attn", self.config.attention, self.rows
        dims = (*rows, part.heads * part.head_dim_of(kind))
        if kind.shares is None:
            attended = self._attend_own(number, kind, x)
        else:
            attended = self._attend_shared(path, kind, x, self.caches[kind.shares])
        flat = self._heads(attended, dims)
        if part.is_gated:
            gate = self._linear(f"{path}.g_proj", x, rows)
            gate = self._computed("aten.sigmoid.default", dims, gate)
            flat = self._computed(op_names.MUL, dims, flat, gate)
        return self._linear(f"{path}.o_proj", flat, rows)

    def _attend_own(self, number: int, kind: LayerKind, x: Ref) -> Ref:
        c, path, part = self.config, f"layers.{number}.self_attn", self.config.attention
        head_dim = part.head_dim_of(kind)
        q_dims, kv_dims = (*self.rows, part.heads, head_dim), (*self.rows, part.kv_heads, head_dim)
        q = self._projected(f"{path}.q", x, q_dims, part.qk_norm == ROWS)
        k = self._projected(f"{path}.k", x, kv_dims, part.qk_norm == ROWS)
        v = self._projected(f"{path}.v", x, kv_dims, normed=False)
        if part.qk_norm == HEADS:
            q = self._norm(f"{path}.q_norm", q, q_dims)
            k = self._norm(f"{path}.k_norm", k, kv_dims)
        if part.value_norm:
            v = self._computed(op_names.RMS_NORM, kv_dims, v, None, c.norms.eps)
        q, k = self._turned(kind, q, q_dims, k, kv_dims)
        dims = (1, c.context, part.kv_heads, head_dim)
        caches = [self.writer.state(f"{path}.{name}", dims, F32) for name in ("k_cache", "v_cache")]
        self.caches[number] = caches
        attended = self._tensor(q_dims)
        given = (q, k, v, *caches, self.start)
        how: tuple[object, ...]
        if kind.window is None and part.score_cap is None and not part.sinks:
            masked = (None, 0.0, True)  # no mask of one's own, no dropout, causal
            name, how = op_names.SDPA, (self.length, *masked, part.scale)
        else:
            name = op_names.WINDOWED
            how = (part.scale, kind.window, part.score_cap, self._sinks(path))
        if c.sees and c.sees.whole:
            name = op_names.OF_IMAGES
            seen = (part.scale, kind.window, part.score_cap, self._sinks(path))
            how = (*seen, self.together)
        self.writer.op(name, *given, *how, attended)
        return attended

    def _attend_shared(self, path: str, kind: LayerKind, x: Ref, caches: list[Ref]) -> Ref:
        """Attend over caches that an earlier layer has filled, for these tokens too."""
        part = self.config.attention
        dims = (*self.rows, part.heads, part.head_dim_of(kind))
        q = self._projected(f"{path}.q", x, dims, part.qk_norm == ROWS)
        if part.qk_norm == HEADS:
            q = self._norm(f"{path}.q_norm", q, dims)
        if kind.tables is not None:
            ending = QUERY if self.config.rope.scaled_queries else kind.tables
            q = self._turned_alone(q, dims, ending)
        given = (q, *caches, self.start, part.scale)
        if kind.window is None and part.score_cap is None and not part.sinks:
            return self._computed(op_names.ATTEND_KV_CACHE, dims, *given)
        seen = (kind.window, part.score_cap, self._sinks(path))
        return self._computed(op_names.ATTEND_WINDOW, dims, *given, *seen)

    def _sinks(self, path: str) -> Ref | None:
        part = self.config.attention
        return self._constant(f"{path}.sinks", (part.heads,)) if part.sinks else None

    def _turned(
        self, kind: LayerKind, q: Ref, q_dims: Dims, k: Ref, k_dims: Dims
    ) -> tuple[Ref, Ref]:
        if kind.tables is None:
            return q, k
        if self.config.rope.scaled_queries:
            q = self._turned_alone(q, q_dims, QUERY)
            return q, self._turned_alone(k, k_dims, kind.tables)
        how: tuple[object, ...] = (*self._tables(kind.tables), self.start)
        if self.config.sees and self.config.sees.axes:
            how = (*self.turning, 0)
        turned = [self._tensor(q_dims), self._tensor(k_dims)]
        self.writer.op("et_vk.apply_rotary_emb_hf.default", q, k, *how, turned)
        return turned[0], turned[1]

    def _turned_alone(self, x: Ref, dims: Dims, ending: str) -> Ref:
        how = (*self._tables(ending), self.start)
        return self._computed("inpage.rotary_of_one.default", dims, x, *how)

    def _tables(self, ending: str) -> list[Ref]:
        dims = (self.config.context, self.config.table_columns(ending))
        return [self._constant(f"{name}{ending}", dims) for name in TABLES]

    def _projected(self, path: str, x: Ref, dims: Dims, normed: bool) -> Ref:
        """Project x to heads; `normed` where a norm goes over all of them together."""
        out = self._linear(f"{path}_proj", x, dims[:2])
        if normed:
            out = self._norm(f"{path}_norm", out, (*dims[:2], dims[2] * dims[3]))
        return self._heads(out, dims)

    def _fed(self, kind: LayerKind, path: str, x: Ref) -> Ref:
        if self.config.mlp.experts is None or kind.is_dense:
            return self._mlp(f"{path}.mlp", kind.hidden or self.config.mlp.hidden, x)
        return self._mixture(path, x)

    def _mlp(self, path: str, hidden: int, x: Ref) -> Ref:
        """Write down(activation(gate(x)) * up(x)), or down(relu(up(x))²)."""
        c, rows = self.config, self.rows
        dims = (*rows, hidden)
        if c.mlp.activation == RELU_SQUARED:
            up = self._linear(f"{path}.up_proj", x, rows)
            positive = self._computed("aten.relu.default", dims, up)
            squared = self._computed(op_names.MUL, dims, positive, positive)
            return self._linear(f"{path}.down_proj", squared, rows)
        gate = self._linear(f"{path}.gate_proj", x, rows)
        if c.mlp.activation == SILU:
            activated = self._computed(op_names.SILU, dims, gate)
        else:
            activated = self._computed(op_names.GELU, dims, gate, "tanh")
        up = self._linear(f"{path}.up_proj", x, rows)
        product = self._computed(op_names.MUL, dims, activated, up)
        return self._linear(f"{path}.down_proj", product, rows)

    def _mixture(self, path: str, x: Ref) -> Ref:
        """Write the same by a few of many experts, which the token's logits for them choose."""
        c, rows, sizes = self.config, self.rows, self.config.mlp.experts
        assert sizes is not None, "a config with experts has their sizes"
        logits = self._linear(f"{path}.{ROUTER}", x, rows)
        names = [f"{path}.{EXPERTS}.{name}_proj" for name in ("gate", "up", "down")]
        kinds = [self.kinds[f"{name}.weight"] for name in names]
        parts = [(*[*self._parts(name), None][:2], self._bias(name)) for name in names]
        given = [part for own in parts for part in own]  # null: without scales, or without bias
        choice = None
        if sizes.scoring == SIGMOID:
            choice = self._constant(f"{path}.{CHOICE}", (sizes.count,))
        how = (sizes.used, sizes.renormalised, sizes.scoring, sizes.scale)
        stored = (" ".join(kind.name for kind in kinds), *given, kinds[0].group_size)
        return self._computed(
            op_names.EXPERTS,
            (*rows, c.width),
            *(x, logits, choice, *how, *stored, sizes.activation),
        )
