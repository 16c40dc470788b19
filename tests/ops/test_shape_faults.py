"""Refusals of elementwise, shape and index ops, in words: at load, and at a call."""

from collections.abc import Callable

import numpy as np
import pytest

from py_runtime.base.dtypes import BOOL, F32, I64
from py_runtime.base.errors import GraphError, InputError
from py_runtime.ops.kernels.elementwise import element_bits
from py_runtime.program.json_format import dump_program
from py_runtime.program.writer import ProgramWriter, Ref
from tests.runners import NativeRunner

Write = Callable[[ProgramWriter, Ref, Ref], list[object]]


def run(native: NativeRunner, op: str, write: Write, rows: int = 6) -> None:
    """Run one op on x: [rows, 4] and y: [6, 4], whose first dims are live and at most 6."""
    writer = ProgramWriter()
    x = writer.input("x", (6, 4), F32, dynamic=(0,))
    y = writer.input("y", (6, 4), F32, dynamic=(0,))
    args = write(writer, x, y)
    writer.op(op, *args)
    out = args[-1]
    writer.output(*(out if isinstance(out, list) else [out]))
    arrays = [np.zeros((rows, 4), np.float32), np.zeros((6, 4), np.float32)]
    native.run(
        "tests.in_runtime",
        "run_graph",
        program=dump_program(writer.program()),
        constants={},
        calls=[arrays],
    )


AT_LOAD: dict[str, tuple[str, Write, str]] = {
    "float sum into integers": (
        "aten.add.Tensor",
        lambda w, x, y: [x, y, 1, w.tensor((6, 4), I64)],
        "argument 'out' (value 2) is i64; it must be f32",
    ),
    "comparison into floats": (
        "aten.gt.Tensor",
        lambda w, x, y: [x, y, w.tensor((6, 4), F32)],
        "argument 'out' (value 2) is f32; it must be bool",
    ),
    "rank of a sum": (
        "aten.add.Tensor",
        lambda w, x, y: [x, y, 1, w.tensor((6,), F32)],
        "the output has rank 1; it must be 2",
    ),
    "gelu": (
        "aten.gelu.default",
        lambda w, x, y: [x, "fast", w.tensor((6, 4), F32)],
        "approximate 'fast' is not none or tanh",
    ),
    "clamp without bounds": (
        "aten.clamp.default",
        lambda w, x, y: [x, None, None, w.tensor((6, 4), F32)],
        "both min and max are null; give at least one",
    ),
    "number beyond int32": (
        "aten.full.default",
        lambda w, x, y: [[3], 2**40, None, None, None, None, w.tensor((3,), I64)],
        "1099511627776.0 does not fit the GPU's int32",
    ),
    "permutation": (
        "aten.permute.default",
        lambda w, x, y: [x, [0, 0], w.tensor((6, 4), F32)],
        "[0, 0] is not a permutation of 2 dims",
    ),
    "dim of a reduction": (
        "aten.sum.dim_IntList",
        lambda w, x, y: [x, [2], False, None, w.tensor((6,), F32)],
        "dimension 2 is outside [-2, 1] of a rank 2 tensor",
    ),
    "dims twice": (
        "aten.amax.default",
        lambda w, x, y: [x, [1, -1], False, w.tensor((6,), F32)],
        "dims [1, -1] name a dim twice",
    ),
    "slice step": (
        "aten.slice_copy.Tensor",
        lambda w, x, y: [x, 0, 0, 4, 0, w.tensor((6, 4), F32)],
        "step is 0; it must be at least 1",
    ),
    "two open sizes": (
        "aten.view_copy.default",
        lambda w, x, y: [x, [-1, -1], w.tensor((6, 4), F32)],
        "the size list has the fixed entries [-1, -1]; one -1 at most, nothing below",
    ),
    "view into another type": (
        "aten.view_copy.default",
        lambda w, x, y: [x, [-1], w.tensor((24,), I64)],
        "a view of f32 cannot be i64",
    ),
    "index by a mask": (
        "aten.index.Tensor",
        lambda w, x, y: [x, [w.state("mask", (6,), BOOL)], w.tensor((6, 4), F32)],
        "argument 'indices' (value 2 'mask') is bool; it must be i32 or i64",
    ),
    "where of two types": (
        "aten.where.self",
        lambda w, x, y: [
            w.state("condition", (6, 4), BOOL),
            x,
            w.state("i", (6, 4), I64),
            w.tensor((6, 4), F32),
        ],
        "a is f32, b i64 and the output f32; cast them to one dtype first",
    ),
}

AT_A_CALL: dict[str, tuple[str, Write, str]] = {
    "broadcast": (
        "aten.mul.Tensor",
        lambda w, x, y: [x, y, w.tensor((6, 4), F32)],
        "shapes [3, 4] and [6, 4] do not broadcast",
    ),
    "fixed size list on a live shape": (
        "aten.view_copy.default",
        lambda w, x, y: [x, [4, 6], w.tensor((4, 6), F32)],
        "[3, 4] has 12 elements and cannot be viewed as [4, 6]",
    ),
    "open size that does not divide": (
        "aten.view_copy.default",
        lambda w, x, y: [x, [-1, 8], w.tensor((3, 8), F32)],
        "[3, 4] has 12 elements and cannot be viewed as [-1, 8]",
    ),
    "empty slice": (
        "aten.slice_copy.Tensor",
        lambda w, x, y: [x, 0, 4, 6, 1, w.tensor((2, 4), F32)],
        "[3:3] of dim 0, which has size 3, is empty",
    ),
    "select": (
        "aten.select_copy.int",
        lambda w, x, y: [x, 0, 5, w.tensor((4,), F32)],
        "index 5 is outside dim 0, which has size 3",
    ),
    "split": (
        "aten.split_with_sizes_copy.default",
        lambda w, x, y: [x, [2, 4], 0, [w.tensor((2, 4), F32), w.tensor((4, 4), F32)]],
        "sizes [2, 4] add up to 6, but dim 0 has size 3",
    ),
    "cat": (
        "aten.cat.default",
        lambda w, x, y: [[x, y], 1, w.tensor((6, 8), F32)],
        "value 1 'y' has dims [6, 4], which do not fit [3, 4] along dim 1",
    ),
    "expand": (
        "aten.expand_copy.default",
        lambda w, x, y: [x, [6, 4], False, w.tensor((6, 4), F32)],
        "[3, 4] does not expand to [6, 4]",
    ),
    "layer norm of a live shape": (
        "aten.native_layer_norm.default",
        lambda w, x, y: [
            *(x, [6, 4], None, None, 1e-5),
            [w.tensor((6, 4), F32), w.tensor((1, 1), F32), w.tensor((1, 1), F32)],
        ],
        "[3, 4] does not end with the normalised [6, 4]",
    ),
    "pad": (
        "aten.constant_pad_nd.default",
        lambda w, x, y: [x, [0, 0, -2, -1], 0, w.tensor((3, 4), F32)],
        "pads [0, 0, -2, -1] crop all of [3, 4]",
    ),
}


@pytest.mark.parametrize("fault", AT_LOAD)
def test_refused_at_load(fault: str, native: NativeRunner) -> None:
    op, write, text = AT_LOAD[fault]
    with pytest.raises(GraphError) as raised:
        run(native, op, write)
    assert str(raised.value) == f"op 0 ({op}): {text}"


@pytest.mark.parametrize("fault", AT_A_CALL)
def test_refused_at_the_call(fault: str, native: NativeRunner) -> None:
    op, write, text = AT_A_CALL[fault]
    with pytest.raises(InputError) as raised:
        run(native, op, write, rows=3)
    assert str(raised.value) == f"op 0 ({op}): {text}"


def test_numbers_at_the_edge_of_a_word() -> None:
    assert element_bits(2**31 - 1, I64) == 2**31 - 1
    assert element_bits(-(2**31), I64) == 2**31
    for outside in (2**31, -(2**31) - 1):
        with pytest.raises(InputError, match="does not fit the GPU's int32"):
            element_bits(outside, I64)
    assert [element_bits(value, BOOL) for value in (0, 1, 0.5, -1)] == [0, 1, 1, 1]
