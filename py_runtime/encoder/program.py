"""A text encoder's program: texts go in side by side, each comes out as a vector.

tokens, types: i64 [B, S]; visible: bool [B, 1, 1, S], false behind a text's end; shares: f32
[B, 1, S], what each token gives to its text's vector → vectors: f32 [B, 1, W].
A reranker gives scores instead: f32 [B, 1, 1]; types tell the two texts of a pair apart.

One graph serves any number of texts of any length: B and S are live.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from py_runtime.base.dtypes import BOOL, F32, I64
from py_runtime.base.shapes import Dims
from py_runtime.decoder.block_ops import BlockOps
from py_runtime.decoder.tensors import WeightKind
from py_runtime.encoder.config import GELU, GELU_TANH, RELU, EncoderConfig
from py_runtime.encoder.family import (
    AFTER,
    ATTENTION_NORM,
    BEFORE_ATTENTION,
    BEFORE_MLP,
    DENSE,
    DOWN,
    EMBEDDING_NORM,
    GATE,
    KEY_NORM,
    KEYS,
    LAST_NORM,
    MIXED,
    MLP_NORM,
    POSITIONS,
    QUERIES,
    QUERY_NORM,
    SCORE,
    SCORE_HIDDEN,
    TYPES,
    UP,
    VALUES,
    WORDS,
)
from py_runtime.encoder.tensors import expected_shapes
from py_runtime.program import Program, op_names
from py_runtime.program.weight_kinds import BLOCK_KINDS, FLOAT
from py_runtime.program.writer import Ref

TABLES, LOCAL_TABLES = (("rotary.cos", "rotary.sin"), ("rotary_local.cos", "rotary_local.sin"))


def write_encoder(config: EncoderConfig, kinds: Mapping[str, WeightKind], name: str) -> Program:
    """Write the program; `kinds` has the kind of every matrix."""
    return _Encoder(config, kinds, name).write()


def rotary_tables(config: EncoderConfig) -> dict[str, np.ndarray]:
    """Return cosines and sines for every position [S, head]; none where positions are learned."""
    tables: dict[str, np.ndarray] = {}
    if config.family.is_turned:
        tables |= _tables(config, TABLES, config.theta)
    if any(reach is not None for reach in config.reaches):
        tables |= _tables(config, LOCAL_TABLES, config.local_theta)
    return tables


def _tables(config: EncoderConfig, names: Sequence[str], theta: float) -> dict[str, np.ndarray]:
    steps = np.arange(0, config.head_dim, 2, dtype=np.float32) / np.float32(config.head_dim)
    frequencies = (1 / np.float32(theta) ** steps).astype(np.float32)
    angles = np.outer(np.arange(config.context, dtype=np.float32), frequencies)
    both = np.concatenate([angles, angles], axis=1)
    tables = (np.cos(both).astype(np.float32), np.sin(both).astype(np.float32))
    return dict(zip(names, tables, strict=True))


class _Encoder(BlockOps):
    def __init__(self, config: EncoderConfig, kinds: Mapping[str, WeightKind], name: str) -> None:
        super().__init__(kinds, expected_shapes(config), config.eps, name)
        self.config = config
        self.rows = (config.texts, config.context)  # [B, S]
        self.wide = (*self.rows, config.width)

    def write(self) -> Program:
        c, writer = self.config, self.writer
        texts, most = self.rows
        self.tokens = writer.input("tokens", self.rows, I64, dynamic=(0, 1))
        self.types = writer.input("types", self.rows, I64, dynamic=(0, 1)) if c.types else None
        self.visible = writer.input("visible", (texts, 1, 1, most), BOOL, dynamic=(0, 3))
        shares = writer.input("shares", (texts, 1, most), F32, dynamic=(0, 2))
        self.count, self.length = writer.symint("count"), writer.symint("length")
        writer.op("sym_size.int", self.tokens, 0, self.count)
        writer.op("sym_size.int", self.tokens, 1, self.length)
        x = self._embeddings()
        for number in range(c.layers):
            x = self._layer(number, x)
        if c.family.norms != AFTER:
            x = self._norm(LAST_NORM, x)
        pooled = (texts, 1, c.width)
        x = self._computed("aten.bmm.default", pooled, shares, x)
        if c.scores:
            x = self._linear(SCORE_HIDDEN, x, pooled[:2])
            x = self._computed("aten.tanh.default", pooled, x)
            x = self._linear(SCORE, x, pooled[:2])
        for number in range(len(c.dense)):
            x = self._linear(DENSE.format(number=number), x, pooled[:2])
        writer.output(x)
        return writer.program()

    def _embeddings(self) -> Ref:
        x = self._words()
        if self.config.embedding_scale != 1:
            scale = self.config.embedding_scale
            x = self._computed(op_names.MUL, self.wide, x, scale)
        if self.types is not None:
            table = self._constant(TYPES, self.shapes[TYPES])
            own = self._computed(
                "aten.embedding.default", self.wide, table, self.types, -1, False, False
            )
            x = self._add(x, own, self.wide)
        if not self.config.family.is_turned:
            x = self._add(x, self._positions(), self.wide)
        if not self.config.family.has_embedding_norm:
            return x
        return self._norm(EMBEDDING_NORM, x, "embedding")

    def _words(self) -> Ref:
        kind = self.kinds[WORDS]
        parts = self._parts(WORDS)
        if kind.name == FLOAT:
            given = (*parts, self.tokens, -1, False, False)  # the rest is of training
            return self._computed("aten.embedding.default", self.wide, *given)
        embedding = BLOCK_KINDS[kind.name].embedding
        return self._computed(embedding, self.wide, *parts, self.tokens)

    def _positions(self) -> Ref:
        """Take the first rows of the table, as many as the longest text has tokens: [S, W]."""
        c, end = self.config, self.length
        if c.first_position:
            end = self.writer.symint("end")
            self.writer.op("add", self.length, c.first_position, end)
        table = self._constant(POSITIONS, self.shapes[POSITIONS])
        how = (0, c.first_position, end, 1)
        return self._computed("aten.slice_copy.Tensor", self.wide[1:], table, *how)

    def _layer(self, number: int, x: Ref) -> Ref:
        """Add attention and MLP, with norms ahead of each and behind it where the layer has some.

        Where norms come after in BERT's way, they are of the sum.
        """
        path, norms = f"layers.{number}", self.config.family.norms_of(number)
        of_sums = self.config.family.norms == AFTER

        def normed(norm: str, given: Ref, name: str = "") -> Ref:
            return self._norm(f"{path}.{norm}", given, name) if norm in norms else given

        found = self._attention(number, normed(BEFORE_ATTENTION, x))
        if of_sums:
            x = normed(ATTENTION_NORM, self._add(x, found, self.wide))
            return normed(MLP_NORM, self._add(x, self._mlp(path, x), self.wide), path)
        x = self._add(x, normed(ATTENTION_NORM, found), self.wide)
        found = self._mlp(path, normed(BEFORE_MLP, x))
        return self._add(x, normed(MLP_NORM, found), self.wide)

    def _norm(self, path: str, x: Ref, name: str = "") -> Ref:
        family = self.config.family
        if family.is_rms:
            return self._rms_norm(path, x, self.wide)
        return self._layer_norm(path, x, self.wide, name, has_bias=family.norm_biases)

    def _rms_norm(self, path: str, x: Ref, dims: Dims) -> Ref:
        weight = self._constant(f"{path}.weight", dims[-1:])
        return self._computed(op_names.RMS_NORM, dims, x, weight, self.eps)

    def _attention(self, number: int, x: Ref) -> Ref:
        """Write attention in which each token sees all of its text, or what lies in its reach."""
        c, path, reach = self.config, f"layers.{number}", self.config.reach(number)
        texts, most = self.rows
        live = (self.count, self.length)
        shared = (texts, most, c.kv_heads, c.head_dim)
        split = (texts, most, c.heads, c.head_dim)
        q, k, v = (
            self._viewed(self._linear(f"{path}.{name}", x, self.rows), dims, live)
            for name, dims in ((QUERIES, split), (KEYS, shared), (VALUES, shared))
        )
        if c.family.qk_norms:
            q = self._rms_norm(f"{path}.{QUERY_NORM}", q, split)
            k = self._rms_norm(f"{path}.{KEY_NORM}", k, shared)
        if c.family.is_turned:
            q, k = self._turned(q, k, TABLES if reach is None else LOCAL_TABLES)
        by_heads, by_few = ((texts, dims[2], most, c.head_dim) for dims in (split, shared))
        q, k, v = self._swapped(q, by_heads), self._swapped(k, by_few), self._swapped(v, by_few)
        given = (q, k, v, self.visible, c.score_scale or c.head_dim**-0.5)
        if reach is None:
            mixed = self._computed("et_vk.sdpa.default", by_heads, *given)
        else:
            mixed = self._computed("inpage.window_sdpa.default", by_heads, *given, reach + 1)
        flat = (texts, most, c.heads * c.head_dim)
        x = self._viewed(self._swapped(mixed, split), flat, live)
        return self._linear(f"{path}.{MIXED}", x, self.rows)

    def _turned(self, q: Ref, k: Ref, names: Sequence[str]) -> tuple[Ref, Ref]:
        c, writer = self.config, self.writer
        tables = [self._constant(name, (c.context, c.head_dim)) for name in names]
        turned = [
            writer.tensor((*self.rows, heads, c.head_dim), F32) for heads in (c.heads, c.kv_heads)
        ]
        writer.op("et_vk.apply_rotary_emb_hf.default", q, k, *tables, 0, turned)
        return turned[0], turned[1]

    def _mlp(self, path: str, x: Ref) -> Ref:
        c = self.config
        dims = (*self.rows, c.hidden)
        up = self._linear(f"{path}.{UP}", x, self.rows)
        if not c.family.is_gated:
            return self._linear(f"{path}.{DOWN}", self._activated(up, dims), self.rows)
        gate = self._activated(self._linear(f"{path}.{GATE}", x, self.rows), dims)
        product = self._computed(op_names.MUL, dims, gate, up)
        return self._linear(f"{path}.{DOWN}", product, self.rows)

    def _activated(self, x: Ref, dims: Dims) -> Ref:
        kind = self.config.activation
        if kind in (GELU, GELU_TANH):
            return self._gelu(x, dims, is_exact=kind == GELU)
        return self._computed("aten.relu.default" if kind == RELU else op_names.SILU, dims, x)
