"""A text encoder's program: texts go in side by side, each comes out as a vector.

tokens, types: i64 [B, S]; visible: bool [B, 1, 1, S], false behind a text's end; shares: f32
[B, 1, S], what each token gives to its text's vector → vectors: f32 [B, 1, W].

One graph serves any number of texts of any length: B and S are live.
"""

from collections.abc import Mapping

import numpy as np

from py_runtime.base.dtypes import BOOL, F32, I64, DType
from py_runtime.base.shapes import Dims
from py_runtime.decoder.tensors import WeightKind, weight_parts
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
    TYPES,
    UP,
    VALUES,
    WORDS,
)
from py_runtime.encoder.tensors import expected_shapes
from py_runtime.program import Program, op_names
from py_runtime.program.weight_kinds import BLOCK_KINDS, FLOAT
from py_runtime.program.writer import ProgramWriter, Ref

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


class _Encoder:
    def __init__(self, config: EncoderConfig, kinds: Mapping[str, WeightKind], name: str) -> None:
        self.config = config
        self.kinds = kinds
        self.shapes = expected_shapes(config)
        self.writer = ProgramWriter(name)
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
        writer.output(self._computed("aten.bmm.default", (texts, 1, c.width), shares, x))
        return writer.program()

    def _embeddings(self) -> Ref:
        x = self._words()
        if self.types is not None:
            table = self._constant(TYPES, self.shapes[TYPES])
            own = self._computed(
                "aten.embedding.default", self.wide, table, self.types, -1, False, False
            )
            x = self._add(x, own)
        if not self.config.family.is_turned:
            x = self._add(x, self._positions())
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

    def _layer(self, path: str, x: Ref) -> Ref:
        added = self._attention(path, x)
        x = self._norm(f"{path}.{ATTENTION_NORM}", self._add(x, added))
        added = self._mlp(path, x)
        return self._norm(f"{path}.{MLP_NORM}", self._add(x, added), path)

    def _attention(self, path: str, x: Ref) -> Ref:
        """Write attention in which each token sees all of its text."""
        c, writer = self.config, self.writer
        texts, most = self.rows
        split = (texts, most, c.heads, c.head_dim)
        q, k, v = (
            self._viewed(self._linear(f"{path}.{name}", x), split)
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
        flat = self._viewed(self._swapped(mixed, split), self.wide)
        return self._linear(f"{path}.{MIXED}", flat)

    def _mlp(self, path: str, x: Ref) -> Ref:
        c = self.config
        dims = (*self.rows, c.hidden)
        up = self._linear(f"{path}.{UP}", x)
        if not c.family.is_gated:
            return self._linear(f"{path}.{DOWN}", self._activated(up, dims))
        gate = self._activated(self._linear(f"{path}.{GATE}", x), dims)
        product = self._computed(op_names.MUL, dims, gate, up)
        return self._linear(f"{path}.{DOWN}", product)

    def _activated(self, x: Ref, dims: Dims) -> Ref:
        kind = self.config.activation
        if kind in (GELU, GELU_TANH):
            return self._computed(op_names.GELU, dims, x, "none" if kind == GELU else "tanh")
        return self._computed("aten.relu.default" if kind == RELU else op_names.SILU, dims, x)

    # Ops ---------------------------------------------------------------------------------------

    def _linear(self, path: str, x: Ref) -> Ref:
        name = f"{path}.weight"
        kind, (rows, _) = self.kinds[name], self.shapes[name]
        bias = None
        if f"{path}.bias" in self.shapes:
            bias = self._constant(f"{path}.bias", (rows,))
        op = op_names.LINEAR if kind.name == FLOAT else BLOCK_KINDS[kind.name].linear
        return self._computed(op, (*self.rows, rows), x, *self._parts(name), bias)

    def _norm(self, path: str, x: Ref, name: str = "") -> Ref:
        width = self.config.width
        given = [self._constant(f"{path}.{part}", (width,)) for part in ("weight", "bias")]
        out = self.writer.tensor(self.wide, F32, name)
        stats = [self.writer.tensor((*self.rows, 1), F32) for _ in range(2)]
        how = ([width], *given, self.config.eps)
        self.writer.op("aten.native_layer_norm.default", x, *how, [out, *stats])
        return out

    def _add(self, x: Ref, y: Ref) -> Ref:
        return self._computed(op_names.ADD, self.wide, x, y, 1)

    def _viewed(self, x: Ref, dims: Dims) -> Ref:
        """View the same elements in other dims, at the call's sizes."""
        size = [self.count, self.length, *dims[2:]]
        return self._computed("aten.view.default", dims, x, size)

    def _swapped(self, x: Ref, dims: Dims) -> Ref:
        """Let tokens and heads change places."""
        return self._computed("aten.permute_copy.default", dims, x, [0, 2, 1, 3])

    def _computed(self, op: str, dims: Dims, *args: object) -> Ref:
        out = self.writer.tensor(dims, F32)
        self.writer.op(op, *args, out)
        return out

    def _parts(self, name: str) -> list[Ref]:
        rows, columns = self.shapes[name]
        owner = name.removesuffix(".weight")
        return [
            self._constant(f"{owner}.{part}", dims, dtype)
            for part, (dims, dtype) in weight_parts(self.kinds[name], rows, columns).items()
        ]

    def _constant(self, name: str, dims: Dims, dtype: DType = F32) -> Ref:
        return self.writer.declare_constant(name, dims, dtype)
