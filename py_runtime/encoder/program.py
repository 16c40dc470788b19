"""A text encoder's program: texts go in side by side, each comes out as a vector.

tokens, types: i64 [B, S]; visible: bool [B, 1, 1, S], false behind a text's end; shares: f32
[B, 1, S], what each token gives to its text's vector → vectors: f32 [B, 1, W].
A reranker gives scores instead: f32 [B, 1, 1]; types tell the two texts of a pair apart.

One graph serves any number of texts of any length: B and S are live.
"""

from collections.abc import Mapping

import numpy as np

from py_runtime.base.dtypes import BOOL, F32, I64
from py_runtime.base.shapes import Dims
from py_runtime.decoder.block_ops import BlockOps
from py_runtime.decoder.tensors import WeightKind
from py_runtime.encoder.config import GELU, GELU_TANH, RELU, EncoderConfig
from py_runtime.encoder.families import (
    ATTENTION_NORM,
    DOWN,
    EMBEDDING_NORM,
    GATE,
    KEYS,
    MIXED,
    MLP_NORM,
    POSITIONS,
    QUERIES,
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

TABLES = ("rotary.cos", "rotary.sin")


def write_encoder(config: EncoderConfig, kinds: Mapping[str, WeightKind], name: str) -> Program:
    """Write the program; `kinds` has the kind of every matrix."""
    return _Encoder(config, kinds, name).write()


def rotary_tables(config: EncoderConfig) -> dict[str, np.ndarray]:
    """Return cosines and sines for every position [S, head]; none where positions are learned."""
    if not config.family.is_turned:
        return {}
    steps = np.arange(0, config.head_dim, 2, dtype=np.float32) / np.float32(config.head_dim)
    frequencies = (1 / np.float32(config.theta) ** steps).astype(np.float32)
    angles = np.outer(np.arange(config.context, dtype=np.float32), frequencies)
    both = np.concatenate([angles, angles], axis=1)
    tables = (np.cos(both).astype(np.float32), np.sin(both).astype(np.float32))
    return dict(zip(TABLES, tables, strict=True))


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
            x = self._layer(f"layers.{number}", x)
        pooled = (texts, 1, c.width)
        x = self._computed("aten.bmm.default", pooled, shares, x)
        if c.scores:
            x = self._linear(SCORE_HIDDEN, x, pooled[:2])
            x = self._computed("aten.tanh.default", pooled, x)
            x = self._linear(SCORE, x, pooled[:2])
        writer.output(x)
        return writer.program()

    def _embeddings(self) -> Ref:
        x = self._words()
        if self.types is not None:
            table = self._constant(TYPES, self.shapes[TYPES])
            own = self._computed(
                "aten.embedding.default", self.wide, table, self.types, -1, False, False
            )
            x = self._add(x, own, self.wide)
        if not self.config.family.is_turned:
            x = self._add(x, self._positions(), self.wide)
        return self._layer_norm(EMBEDDING_NORM, x, self.wide, "embedding")

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

    def _layer(self, path: str, x: Ref) -> Ref:
        x = self._add(x, self._attention(path, x), self.wide)
        x = self._layer_norm(f"{path}.{ATTENTION_NORM}", x, self.wide)
        x = self._add(x, self._mlp(path, x), self.wide)
        return self._layer_norm(f"{path}.{MLP_NORM}", x, self.wide, path)

    def _attention(self, path: str, x: Ref) -> Ref:
        """Write attention in which each token sees all of its text."""
        c, writer = self.config, self.writer
        texts, most = self.rows
        split = (texts, most, c.heads, c.head_dim)
        live = (self.count, self.length)
        q, k, v = (
            self._viewed(self._linear(f"{path}.{name}", x, self.rows), split, live)
            for name in (QUERIES, KEYS, VALUES)
        )
        if c.family.is_turned:
            dims = (c.context, c.head_dim)
            tables = [self._constant(name, dims) for name in TABLES]
            turned = [writer.tensor(split, F32), writer.tensor(split, F32)]
            writer.op("et_vk.apply_rotary_emb_hf.default", q, k, *tables, 0, turned)
            q, k = turned
        by_heads = (texts, c.heads, most, c.head_dim)
        q, k, v = (self._swapped(part, by_heads) for part in (q, k, v))
        scale = c.head_dim**-0.5
        mixed = self._computed("et_vk.sdpa.default", by_heads, q, k, v, self.visible, scale)
        flat = self._viewed(self._swapped(mixed, split), self.wide, live)
        return self._linear(f"{path}.{MIXED}", flat, self.rows)

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
