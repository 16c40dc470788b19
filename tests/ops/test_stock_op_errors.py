"""Refusals of stock files' ops, word for word: quantised linears, norms, pixel_shuffle."""

from typing import Any

import numpy as np
import pytest

from py_runtime.base.dtypes import F32, I8, U8, DType
from py_runtime.program.json_format import dump_program
from py_runtime.program.writer import ProgramWriter, Ref
from tests.runners import NativeRunner

GRAPHS = "tests.ops.linear_graphs"
QCS4W, QCS8W = "et_vk.linear_qcs4w.default", "aten._weight_int8pack_mm.default"
CHOOSE, DQ8CA = "torchao.choose_qparams_affine.default", "et_vk.linear_dq8ca_q4gsw.default"
LAYER_NORM, GROUP_NORM = "aten.native_layer_norm.default", "aten.native_group_norm.default"
SHUFFLE = "aten.pixel_shuffle.default"
QUANTISE = "quantized_decomposed.quantize_per_tensor.default"


def zeros(dtype: type, *dims: int) -> np.ndarray:
    return np.zeros(dims, dtype)


def out(*dims: int, dtype: DType = F32) -> tuple[DType, tuple[int, ...]]:
    return dtype, dims


NORMED = [out(2, 8), out(2, 1), out(2, 1)]
PARAMS = [out(2), out(2, dtype=I8)]


def choose(mapping: str = "ASYMMETRIC", blocks: Any = (1, 8), least: int = -128) -> list[Any]:
    return [mapping, list(blocks), None, least, 127, None, None, None, False]


# Op, dims of x, the arguments after it (arrays are constants), outputs, and what is said.
REFUSED = {
    "a scale of zero": (
        *(QUANTISE, (2, 8), [0, 3, -128, 127, 1], out(2, 8, dtype=I8)),
        "the scale 0.0 is not a positive number that float32 can divide by",
    ),
    "a scale whose reciprocal is no float": (
        *(QUANTISE, (2, 8), [1e-39, 3, -128, 127, 1], out(2, 8, dtype=I8)),
        "the scale 1e-39 is not a positive number that float32 can divide by",
    ),
    "a range beyond a byte": (
        *(QUANTISE, (2, 8), [0.1, 3, -128, 255, 1], out(2, 8, dtype=I8)),
        "values from -128 to 255 are not a range of i8",
    ),
    "a range of another dtype": (
        *(QUANTISE, (2, 8), [0.1, 3, -128, 127, 1], out(2, 8, dtype=U8)),
        "values from -128 to 127 are not a range of u8",
    ),
    "K not a multiple of 4": (
        *(QCS4W, (2, 6), [zeros(np.uint8, 4, 3), zeros(np.float32, 4)], out(2, 4)),
        "rows of 6 columns; K must be a multiple of 4",
    ),
    "padded rows": (
        *(QCS4W, (2, 12), [zeros(np.uint8, 4, 8), zeros(np.float32, 4)], out(2, 4)),
        "weight rows of 8 bytes; 12 columns take 6",
    ),
    "too few scales": (
        *(QCS8W, (2, 12), [zeros(np.int8, 4, 12), zeros(np.float32, 3)], out(2, 4)),
        "scales are [3]; a weight of 4 rows needs one each",
    ),
    "too few rows of scales": (
        DQ8CA,
        (3, 32),
        [
            *(zeros(np.float32, 2), zeros(np.int8, 3), zeros(np.uint8, 4, 16)),
            *(zeros(np.int32, 1, 8), zeros(np.float32, 1, 4), 32, None),
        ],
        out(3, 4),
        "value 1 'constant 0' is [2] for 3 rows",
    ),
    "symmetric": (
        *(CHOOSE, (2, 8), choose("SYMMETRIC"), PARAMS),
        "mapping 'SYMMETRIC' is not ASYMMETRIC",
    ),
    "blocks in a row": (
        *(CHOOSE, (2, 8), choose(blocks=(1, 4)), PARAMS),
        "blocks are [1, 4]; [1, 8] are the rows of x",
    ),
    "16 bits": (
        *(CHOOSE, (2, 8), choose(least=-32768), PARAMS),
        "values from -32768 to 127 are not a range of int8",
    ),
    "zero points first": (
        *(CHOOSE, (2, 8), choose(), PARAMS[::-1]),
        "the outputs must be f32 scales and int8 or int32 zero points",
    ),
    "another normalised shape": (
        *(LAYER_NORM, (2, 8), [[4], None, None, 1e-5], NORMED),
        "[2, 8] does not end with the normalised [4]",
    ),
    "more normalised dims than there are": (
        *(LAYER_NORM, (8,), [[2, 8], None, None, 1e-5], [out(8), out(1), out(1)]),
        "[8] does not end with the normalised [2, 8]",
    ),
    "a short weight": (
        *(LAYER_NORM, (2, 8), [[8], zeros(np.float32, 7), None, 1e-5], NORMED),
        "value 1 'constant 1' is [7]; it must be [8]",
    ),
    "no means": (
        *(LAYER_NORM, (2, 8), [[8], None, None, 1e-5], NORMED[:1]),
        "the outputs have ranks [2]; they must be [2, 2, 2]",
    ),
    "uneven groups": (
        *(GROUP_NORM, (2, 8), [None, None, 2, 8, 1, 3, 1e-5], NORMED),
        "3 groups do not share the channels of [2, 8]",
    ),
    "uneven channels": (
        *(SHUFFLE, (6, 2, 2), [2], out(1, 4, 4)),
        "[6, 2, 2] cannot be shuffled by 2",
    ),
}


@pytest.mark.parametrize(("op", "dims", "args", "outs", "text"), REFUSED.values(), ids=REFUSED)
def test_refused_at_load(
    native: NativeRunner,
    op: str,
    dims: tuple[int, ...],
    args: list[Any],
    outs: Any,
    text: str,
) -> None:
    writer = ProgramWriter()
    x = writer.input("x", dims, F32)
    given = [
        writer.constant(f"constant {at}", arg) if isinstance(arg, np.ndarray) else arg
        for at, arg in enumerate(args)
    ]
    made: list[Ref] = [
        writer.tensor(dims, dtype) for dtype, dims in (outs if isinstance(outs, list) else [outs])
    ]
    writer.op(op, x, *given, made if isinstance(outs, list) else made[0])
    writer.output(made[0])
    program = dump_program(writer.program())
    refusal = native.run(GRAPHS, "refusal", program=program, constants=writer.constants)
    assert refusal == f"op 0 ({op}): {text}"
