"""Refusals of linear, matmul and embedding ops, word for word."""

from collections.abc import Callable

import numpy as np
import pytest

from py_runtime.base.dtypes import F32, I64
from py_runtime.base.shapes import Dims
from py_runtime.program.json_format import dump_program
from py_runtime.program.writer import ProgramWriter
from tests.runners import NativeRunner

GRAPHS = "tests.ops.linear_graphs"
Make = Callable[[ProgramWriter], None]


def zeros(dtype: type, *dims: int) -> np.ndarray:
    return np.zeros(dims, dtype)


def linear(
    op: str,
    weight: np.ndarray,
    *arguments: np.ndarray | int,
    x: Dims = (2, 32),
    out: Dims = (2, 4),
    bias: np.ndarray | None = None,
) -> Make:
    def make(writer: ProgramWriter) -> None:
        args = [
            writer.constant(f"constant {at}", argument)
            if isinstance(argument, np.ndarray)
            else argument
            for at, argument in enumerate((weight, *arguments))
        ]
        bias_ref = None if bias is None else writer.constant("bias", bias)
        result = writer.tensor(out, F32)
        writer.op(op, writer.input("x", x, F32), *args, bias_ref, result)
        writer.output(result)

    return make


def matmul(op: str, a: Dims, b: Dims, out: Dims) -> Make:
    def make(writer: ProgramWriter) -> None:
        ends = [writer.input("a", a, F32), writer.input("b", b, F32), writer.tensor(out, F32)]
        writer.op(op, *ends)
        writer.output(ends[-1])

    return make


def addmm(bias: Dims) -> Make:
    def make(writer: ProgramWriter) -> None:
        ends = [writer.input("a", (2, 3), F32), writer.input("b", (3, 4), F32)]
        out = writer.tensor((2, 4), F32)
        writer.op("aten.addmm.default", writer.input("bias", bias, F32), *ends, 1, 1, out)
        writer.output(out)

    return make


def embedding(
    op: str,
    weight: np.ndarray,
    scales: np.ndarray,
    *,
    out: Dims = (3, 32),
    group: int | None = None,
) -> Make:
    def make(writer: ProgramWriter) -> None:
        table, scale = writer.constant("weight", weight), writer.constant("scales", scales)
        indices, rows = writer.input("indices", (3,), I64), writer.tensor(out, F32)
        middle = [indices] if group is None else [group, indices, True]
        writer.op(op, table, scale, *middle, rows)
        writer.output(rows)

    return make


GSW, Q4_1, Q8_0 = (
    f"{name}.default" for name in ("et_vk.linear_q4gsw", "inpage.linear_q4_1", "inpage.linear_q8_0")
)
TABLE_GSW, TABLE_Q4_0 = "et_vk.embedding_q4gsw.default", "inpage.embedding_q4_0.default"
NIBBLES, SCALES = zeros(np.uint8, 4, 16), zeros(np.float32, 1, 4)

REFUSED = {
    "K not a multiple of 4": (
        linear(GSW, zeros(np.uint8, 4, 4), SCALES, 32, x=(2, 6)),
        f"op 0 ({GSW}): rows of 6 columns; K must be a multiple of 4",
    ),
    "weight rows not padded": (
        linear(GSW, zeros(np.uint8, 4, 50), zeros(np.float32, 1, 4), 100, x=(2, 100)),
        f"op 0 ({GSW}): weight rows of 50 bytes; 100 columns take 52",
    ),
    "group of 12": (
        linear(GSW, NIBBLES, zeros(np.float32, 3, 4), 12),
        f"op 0 ({GSW}): groups of 12; they must be a multiple of 8, or all 32 columns",
    ),
    "group of 0": (
        linear(GSW, NIBBLES, SCALES, 0),
        f"op 0 ({GSW}): groups of 0; they must be a multiple of 8, or all 32 columns",
    ),
    "scales not transposed": (
        linear(GSW, NIBBLES, zeros(np.float32, 4, 1), 32),
        f"op 0 ({GSW}): scales are [4, 1]; groups of 32 in a weight of [4, 32] need [1, 4 or more]",
    ),
    "x of another width": (
        linear(Q4_1, NIBBLES, zeros(np.float16, 4, 1, 2), x=(2, 64)),
        f"op 0 ({Q4_1}): x of [2, 64] does not fit weights of 32 columns",
    ),
    "x without columns": (
        linear(GSW, NIBBLES, SCALES, 32, x=()),
        f"op 0 ({GSW}): x of [] does not fit weights of 0 columns",
    ),
    "out of another width": (
        linear(GSW, NIBBLES, SCALES, 32, out=(2, 5)),
        f"op 0 ({GSW}): out is [2, 5]; it must be x's dims with 4 at the end",
    ),
    "short bias": (
        linear(GSW, NIBBLES, SCALES, 32, bias=zeros(np.float32, 3)),
        f"op 0 ({GSW}): the bias is shorter than the 4 rows of the weight",
    ),
    "half a block": (
        linear(Q8_0, zeros(np.int8, 4, 48), zeros(np.float16, 4, 1), x=(2, 48)),
        f"op 0 ({Q8_0}): rows of 48 columns; K must be a multiple of 32",
    ),
    "no minimum": (
        linear(Q4_1, NIBBLES, zeros(np.float16, 4, 1)),
        f"op 0 ({Q4_1}): scales are [4, 1]; a weight of [4, 32] needs [4, 1, 2]",
    ),
    "f32 scales": (
        linear(Q4_1, NIBBLES, zeros(np.float32, 4, 1, 2)),
        f"op 0 ({Q4_1}): argument 'scales' (value 1 'constant 1') is f32; it must be f16",
    ),
    "mm": (
        matmul("aten.mm.default", (2, 3), (4, 5), (2, 5)),
        "op 0 (aten.mm.default): [2, 3] times [4, 5] is not a matrix product",
    ),
    "bmm": (
        matmul("aten.bmm.default", (2, 2, 3), (1, 3, 5), (2, 2, 5)),
        "op 0 (aten.bmm.default): [2, 2, 3] times [1, 3, 5] is not a matrix product",
    ),
    "addmm": (
        addmm((3,)),
        "op 0 (aten.addmm.default): a bias of [3] does not broadcast to [2, 4]",
    ),
    "embedding groups": (
        embedding(TABLE_GSW, NIBBLES, zeros(np.float32, 4, 2), group=24),
        f"op 0 ({TABLE_GSW}): groups of 24; they must be a multiple of 8 that divides 32",
    ),
    "embedding scales": (
        embedding(TABLE_GSW, NIBBLES, zeros(np.float32, 1, 4), group=32),
        f"op 0 ({TABLE_GSW}): scales are [1, 4]; groups of 32 in a table of [4, 32] need [4, 1]",
    ),
    "embedding columns": (
        embedding(TABLE_GSW, zeros(np.uint8, 4, 6), zeros(np.float32, 4, 1), group=8),
        f"op 0 ({TABLE_GSW}): rows of 12 columns; E must be a multiple of 8",
    ),
    "embedding blocks": (
        embedding(TABLE_Q4_0, NIBBLES, zeros(np.float16, 4, 2)),
        f"op 0 ({TABLE_Q4_0}): scales are [4, 2]; a table of [4, 32] needs [4, 1]",
    ),
    "embedding out": (
        embedding(TABLE_Q4_0, NIBBLES, zeros(np.float16, 4, 1), out=(3, 31)),
        f"op 0 ({TABLE_Q4_0}): out is [3, 31]; it must be the dims of the indices with 32 at the "
        "end",
    ),
}


@pytest.mark.parametrize(("make", "text"), REFUSED.values(), ids=REFUSED)
def test_refused_at_load(native: NativeRunner, make: Make, text: str) -> None:
    writer = ProgramWriter()
    make(writer)
    program = dump_program(writer.program())
    assert native.run(GRAPHS, "refusal", program=program, constants=writer.constants) == text


def test_a_live_misfit_leaves_the_graph_usable(native: NativeRunner) -> None:
    writer = ProgramWriter()
    a = writer.input("a", (2, 4), F32, dynamic=(1,))
    b = writer.input("b", (4, 3), F32, dynamic=(0,))
    out = writer.tensor((2, 3), F32)
    writer.op("aten.mm.default", a, b, out)
    writer.output(out)
    calls = [[np.ones((2, k), np.float32), np.ones((2, 3), np.float32)] for k in (3, 2)]
    program = dump_program(writer.program())
    refused, product = native.run(GRAPHS, "answers", program=program, calls=calls)
    assert refused == "op 0 (aten.mm.default): [2, 3] times [2, 3] is not a matrix product"
    np.testing.assert_array_equal(product, np.full((2, 3), 2.0))
