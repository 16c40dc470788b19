"""Linears whose x is rounded to 8 bits by each row's own range: choose_qparams and the product.

The goldens are torchao's arithmetic in float32, where rounding decides; products are float64.
"""

from collections.abc import Iterator

import numpy as np
import torch

from py_runtime.base.dtypes import F32, I8, I32, DType
from py_runtime.program.writer import ProgramWriter
from tests.golden import QUANTISED, Case
from tests.ops.cases_linear import q4gsw

LIVE_ROWS = (33, 1, 2, 7, 33)
TINY = torch.finfo(torch.float32).tiny


def choose(x: torch.Tensor, least: int, most: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Scale and zero point of each row."""
    smallest = x.amin(-1).clamp(max=0.0)
    largest = x.amax(-1).clamp(min=0.0)
    scale = ((largest - smallest) / float(most - least)).clamp(min=TINY)
    return scale, (least - torch.round(smallest / scale)).clamp(least, most)


def rounded(x: torch.Tensor, scale: torch.Tensor, zero: torch.Tensor) -> torch.Tensor:
    scale, zero = scale[..., None], zero[..., None]
    return (torch.clamp(torch.round(x * (1.0 / scale)) + zero, -128, 127) - zero) * scale


def rows_of(count: int, columns: int, rng: np.random.Generator) -> torch.Tensor:
    """Rows about zero, above it, below it, and all zeros: zero points at both ends and between."""
    shifts = np.array([0.0, 4.0, -4.0, 0.0])[np.arange(count) % 4, None]
    data = rng.standard_normal((1, count, columns)) + shifts
    data[:, 3::4] = 0.0
    return torch.from_numpy(data.astype(np.float32))


def linear_case(
    rows: int, columns: int, group_size: int, zeros: DType, biased: bool, rng: np.random.Generator
) -> Case:
    weights = q4gsw(rows, columns, group_size, rng)
    most = max(LIVE_ROWS)
    writer = ProgramWriter()
    x = writer.input("x", (1, most, columns), F32, dynamic=(1,))
    scales, zero_points = writer.tensor((1, most), F32), writer.tensor((1, most), zeros)
    writer.op(
        "torchao.choose_qparams_affine.default",
        *(x, "ASYMMETRIC", [1, 1, columns], None, -128, 127, None, None, None, False),
        [scales, zero_points],
    )
    sums = writer.constant("sums", np.zeros((columns // group_size, rows), np.int32))
    bias = rng.standard_normal(rows).astype(np.float32)
    out = writer.tensor((1, most, rows), F32)
    writer.op(
        "et_vk.linear_dq8ca_q4gsw.default",
        *(x, scales, zero_points),
        writer.constant("weight", weights.constants["weight"]),
        sums,
        writer.constant("scales", weights.constants["scales"]),
        group_size,
        writer.constant("bias", bias) if biased else None,
        out,
    )
    writer.output(scales, zero_points, out)
    name = f"linear_dq8ca_q4gsw N {rows} K {columns} groups of {group_size} {zeros.name} zeros"
    case = Case(name + " bias" * biased, writer, QUANTISED)
    for count in LIVE_ROWS:
        data = rows_of(count, columns, rng)
        scale, zero = choose(data, -128, 127)
        expected = rounded(data, scale, zero).double() @ weights.values.T
        if biased:
            expected = expected + torch.from_numpy(bias).double()
        host = torch.int8 if zeros is I8 else torch.int32
        case.call([data], [scale, zero.to(host), expected])
    return case


def narrow_case(rng: np.random.Generator) -> Case:
    """Another range, dims that are kept, and a smallest scale."""
    writer = ProgramWriter()
    x = writer.input("x", (5, 12), F32, dynamic=(0,))
    scales, zero_points = writer.tensor((5, 1), F32), writer.tensor((5, 1), I8)
    writer.op(
        "torchao.choose_qparams_affine.default",
        *(x, "ASYMMETRIC", [1, 12], None, -8, 7, 0.5, None, None, True),
        [scales, zero_points],
    )
    writer.output(scales, zero_points)
    case = Case("choose_qparams of 4 bits", writer, QUANTISED)
    for count in (5, 1, 4, 5):
        data = rows_of(count, 12, rng)[0] * 3
        smallest = data.amin(-1, keepdim=True).clamp(max=0.0)
        largest = data.amax(-1, keepdim=True).clamp(min=0.0)
        scale = ((largest - smallest) / 15.0).clamp(min=0.5)
        zero = (-8 - torch.round(smallest / scale)).clamp(-8, 7)
        case.call([data], [scale, zero.to(torch.int8)])
    return case


def cases() -> Iterator[Case]:
    rng = np.random.default_rng(11)
    yield linear_case(16, 64, 32, I8, False, rng)
    yield linear_case(37, 192, 64, I8, True, rng)
    yield linear_case(8, 128, 32, I32, False, rng)
    yield narrow_case(rng)
