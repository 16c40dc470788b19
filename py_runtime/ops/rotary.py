"""Rotary position embeddings: pairs of a head's dims turn by an angle that the position gives."""

from py_runtime.base.dtypes import F32
from py_runtime.base.shapes import numel
from py_runtime.live.values import LiveInt
from py_runtime.ops.kernels.position_checks import check_rows
from py_runtime.ops.registry import Op, register


class RotaryOfQAndK(Op):
    """xq and xk [batch, tokens, heads, width], or without the batch; two outputs, one kernel."""

    def build_rotary(self, cos: str, sin: str, start_pos: LiveInt) -> None:
        self.xq = self.tensor("xq", F32)
        rank = self.xq.rank
        self.require(rank in (3, 4), f"xq has rank {rank}; it must be 3 or 4")
        self.xk = self.tensor("xk", F32, rank=rank)
        self.cos, self.sin = self.tensor(cos, F32, rank=2), self.tensor(sin, F32, rank=2)
        outputs = self.tensors("out", F32)
        self.require(len(outputs) == 2, f"out lists {len(outputs)} tensors; it must list 2")
        self.xq_out, self.xk_out = outputs
        self.start_pos = start_pos
        q, k = self.xq.max_dims, self.xk.max_dims
        self.require(
            q[-1] == k[-1] and q[-1] % 2 == 0,
            f"heads of xq {list(q)} and xk {list(k)} must have the same, even width",
        )
        self.require(
            self.cos.max_dims == self.sin.max_dims,
            f"tables {list(self.cos.max_dims)} and {list(self.sin.max_dims)} differ",
        )
        self.rotate = self.launch(
            "attention/rotary",
            bind={
                "xq": self.xq,
                "xk": self.xk,
                "cos_table": self.cos,
                "sin_table": self.sin,
                "xq_out": self.xq_out,
                "xk_out": self.xk_out,
                "start_pos": start_pos,
            },
        )

    def live_rotary(self, rotated: int, pair_step: int, pair_gap: int, column_gap: int) -> None:
        q, k = self.xq.dims, self.xk.dims
        self.require_live(
            q[:-2] == k[:-2] and q[-1] == k[-1],
            f"xq {list(q)} and xk {list(k)} may differ in their heads only",
        )
        self.require_live(
            self.cos.dims == self.sin.dims,
            f"tables {list(self.cos.dims)} and {list(self.sin.dims)} differ",
        )
        self.xq_out.resize(q)
        self.xk_out.resize(k)
        q_pairs, k_pairs = numel(q) // 2, numel(k) // 2
        self.rotate.for_each(
            q_pairs + k_pairs,
            q_pairs=q_pairs,
            k_pairs=k_pairs,
            tokens=q[-3],
            q_heads=q[-2],
            k_heads=k[-2],
            width=q[-1],
            rotated=rotated,
            pair_step=pair_step,
            pair_gap=pair_gap,
            table_width=self.cos.dims[1],
            column_gap=column_gap,
        )


@register("et_vk.apply_rotary_emb.default", args="xq xk freqs_cos freqs_sin out")
class ApplyRotaryEmb(RotaryOfQAndK):
    """Pairs (2i, 2i + 1); row s of the tables [rows, width / 2] belongs to token s of the call.

    The tables may hold more rows than the call has tokens: their first ones are used.
    """

    def build(self) -> None:
        from_zero = LiveInt(-1, "position 0", 0, is_symint=False)
        self.build_rotary("freqs_cos", "freqs_sin", from_zero)
        width, columns = self.xq.max_dims[-1], self.cos.max_dims[1]
        self.require(
            columns * 2 == width,
            f"tables have {columns} columns; heads of {width} need {width // 2}",
        )

    def live(self) -> None:
        tokens, rows = self.xq.dims[-3], self.cos.dims[0]
        self.require_live(
            tokens <= rows, f"xq has {tokens} tokens, but the tables have {rows} rows"
        )
        width = self.xq.dims[-1]
        self.live_rotary(rotated=width, pair_step=2, pair_gap=1, column_gap=0)


@register("et_vk.apply_rotary_emb_hf.default", args="xq xk cos sin start_pos out")
class ApplyRotaryEmbHf(RotaryOfQAndK):
    """Pairs (i, i + R/2) of the first R dims, R the tables' width; the other dims pass through.

    The tables hold every position: token s of the call takes row start_pos + s, and each half of a
    head its own columns.
    """

    def build(self) -> None:
        self.build_rotary("cos", "sin", self.live_int("start_pos"))
        width, rotated = self.xq.max_dims[-1], self.cos.max_dims[1]
        self.require(
            rotated <= width and rotated % 2 == 0,
            f"tables have {rotated} columns; heads of {width} take an even number up to {width}",
        )

    def live(self) -> None:
        rows, rotated = self.cos.dims
        check_rows(self, self.start_pos, self.xq.dims[-3], rows, "the rotary table")
        self.live_rotary(rotated, pair_step=1, pair_gap=rotated // 2, column_gap=rotated // 2)


@register("inpage.rotary_of_one.default", args="x cos sin start_pos out")
class RotaryOfOne(Op):
    """The rotation of apply_rotary_emb_hf for queries alone: x [batch, tokens, heads, width]."""

    def build(self) -> None:
        self.x = self.tensor("x", F32, rank=4)
        self.cos, self.sin = self.tensor("cos", F32, rank=2), self.tensor("sin", F32, rank=2)
        self.start_pos = self.live_int("start_pos")
        self.out = self.tensor("out", F32, rank=4)
        width, (_, rotated) = self.x.max_dims[-1], self.cos.max_dims
        self.require(
            self.cos.max_dims == self.sin.max_dims and rotated <= width and rotated % 2 == 0,
            f"tables {list(self.cos.max_dims)} and {list(self.sin.max_dims)} do not fit heads of "
            f"{width}",
        )
        self.rotate = self.launch(
            "attention/rotary",
            bind={
                "xq": self.x,
                "xk": self.x,
                "cos_table": self.cos,
                "sin_table": self.sin,
                "xq_out": self.out,
                "xk_out": self.scratch("no keys", 16),
                "start_pos": self.start_pos,
            },
        )

    def live(self) -> None:
        dims, (rows, rotated) = self.x.dims, self.cos.dims
        check_rows(self, self.start_pos, dims[-3], rows, "the rotary table")
        self.require_live(
            self.sin.dims == self.cos.dims == (rows, self.cos.max_dims[1]),
            f"tables {list(self.cos.dims)} and {list(self.sin.dims)} do not fit each other",
        )
        self.out.resize(dims)
        pairs = numel(dims) // 2
        self.rotate.for_each(
            pairs,
            q_pairs=pairs,
            k_pairs=0,
            tokens=dims[-3],
            q_heads=dims[-2],
            k_heads=1,
            width=dims[-1],
            rotated=rotated,
            pair_step=1,
            pair_gap=rotated // 2,
            table_width=rotated,
            column_gap=rotated // 2,
        )


@register("et_vk.apply_rotary_emb_interleaved.default", args="x freqs out")
class ApplyRotaryEmbInterleaved(Op):
    """x [..., tokens, width]; freqs [rows, width]: (cosine, sine) for each pair (2i, 2i + 1)."""

    def build(self) -> None:
        self.x = self.tensor("x", F32)
        self.freqs = self.tensor("freqs", F32, rank=2)
        self.out = self.tensor("out", F32)
        x, freqs = self.x.max_dims, self.freqs.max_dims
        self.require(
            self.x.rank >= 2 and x[-1] == freqs[1] and x[-1] % 2 == 0,
            f"x {list(x)} and freqs {list(freqs)} must have the same, even width",
        )
        self.rotate = self.launch(
            "attention/rotary_interleaved", bind={"x": self.x, "freqs": self.freqs, "out": self.out}
        )

    def live(self) -> None:
        x, (rows, columns) = self.x.dims, self.freqs.dims
        self.require_live(x[-1] == columns, f"x {list(x)} does not fit freqs of width {columns}")
        tokens = x[-2]
        self.require_live(tokens <= rows, f"x has {tokens} tokens, but freqs has {rows} rows")
        self.out.resize(x)
        pairs = numel(x) // 2
        self.rotate.for_each(pairs, pairs=pairs, batch_pairs=tokens * x[-1] // 2)
