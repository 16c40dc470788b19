"""Linear layers of every weight kind against float64 products with the exact weights."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from py_runtime.base.dtypes import F32
from py_runtime.program.weight_kinds import pack_linear_scales, pack_nibbles
from py_runtime.program.writer import ProgramWriter
from tests.golden import MATMUL, QUANTISED, Case, Tolerance

LIVE_ROWS = (128, 1, 2, 7, 32, 127, 128)


@dataclass
class Weights:
    """The arguments of a linear between x and bias, and the values they stand for."""

    op: str
    values: torch.Tensor  # [N, K], float64
    constants: dict[str, np.ndarray]
    extra: list[Any] = field(default_factory=list)
    tolerance: Tolerance = QUANTISED
    takes_bias: bool = True


def q4gsw(rows: int, columns: int, group_size: int, rng: np.random.Generator) -> Weights:
    groups = -(-columns // group_size)
    scales = (rng.uniform(0.1, 0.4, (rows, groups)) / np.sqrt(columns)).astype(np.float32)
    nibbles = rng.integers(0, 16, (rows, columns), np.uint8)
    spread = np.repeat(scales.astype(np.float64), group_size, axis=1)[:, :columns]
    return Weights(
        "et_vk.linear_q4gsw.default",
        torch.from_numpy((nibbles.astype(np.float64) - 8) * spread),
        {"weight": pack_nibbles(nibbles), "scales": pack_linear_scales(scales)},
        [group_size],
    )


def channels(bits: int, rows: int, columns: int, rng: np.random.Generator) -> Weights:
    """Make weights with one scale a row; 4 bits have even columns in the high nibble.

    Rows are not padded.
    """
    scales = (rng.uniform(0.1, 0.4, rows) / np.sqrt(columns)).astype(np.float32)
    if bits == 8:
        op, weight = "aten._weight_int8pack_mm.default", rng.integers(-128, 128, (rows, columns))
        values, weight = weight.astype(np.float64), weight.astype(np.int8)
    else:
        op, nibbles = "et_vk.linear_qcs4w.default", rng.integers(0, 16, (rows, columns), np.uint8)
        values, weight = nibbles.astype(np.float64) - 8, nibbles[:, 0::2] << 4 | nibbles[:, 1::2]
    exact = torch.from_numpy(values * scales[:, None].astype(np.float64))
    return Weights(op, exact, {"weight": weight, "scales": scales}, takes_bias=False)


def blocks(kind: str, rows: int, columns: int, rng: np.random.Generator) -> Weights:
    """Make groups of 32 with f16 scales: q4_0, q4_1, q8_0."""
    shape = (rows, columns // 32)
    step = 0.02 if kind == "q8_0" else 0.4
    scales = (rng.uniform(0.1, 1.0, shape) * step / np.sqrt(columns)).astype(np.float16)
    spread = np.repeat(scales.astype(np.float64), 32, axis=1)
    if kind == "q8_0":
        weight = rng.integers(-128, 128, (rows, columns), np.int8)
        values = weight * spread
    else:
        nibbles = rng.integers(0, 16, (rows, columns), np.uint8)
        weight = pack_nibbles(nibbles)
        values = (nibbles.astype(np.float64) - (8 if kind == "q4_0" else 0)) * spread
    if kind == "q4_1":
        minimum = (-8 * scales * rng.uniform(0.8, 1.2, shape)).astype(np.float16)
        values = values + np.repeat(minimum.astype(np.float64), 32, axis=1)
        scales = np.stack([scales, minimum], axis=-1)
    constants = {"weight": weight, "scales": scales}
    return Weights(f"inpage.linear_{kind}.default", torch.from_numpy(values), constants)


def f32(rows: int, columns: int, rng: np.random.Generator) -> Weights:
    weight = (rng.standard_normal((rows, columns)) / np.sqrt(columns)).astype(np.float32)
    values = torch.from_numpy(weight).double()
    return Weights("aten.linear.default", values, {"weight": weight}, tolerance=MATMUL)


def write_linear(writer: ProgramWriter, weights: Weights, x: Any, out: Any, bias: Any) -> None:
    constants = [writer.constant(name, data) for name, data in weights.constants.items()]
    biases = [bias] if weights.takes_bias else []
    writer.op(weights.op, x, *constants, *weights.extra, *biases, out)


def linear_case(name: str, weights: Weights, with_bias: bool, rng: np.random.Generator) -> Case:
    """[1, S, K] at every live S on one graph."""
    rows, columns = weights.values.shape
    writer = ProgramWriter()
    x = writer.input("x", (1, max(LIVE_ROWS), columns), F32, dynamic=(1,))
    out = writer.tensor((1, max(LIVE_ROWS), rows), F32)
    # Padded to a multiple of 4, as exporters do; what is past the end must not matter.
    bias = np.full(-(-rows // 4) * 4, 1e3, np.float32)
    bias[:rows] = rng.standard_normal(rows)
    bias_ref = writer.constant("bias", bias) if with_bias else None
    write_linear(writer, weights, x, out, bias_ref)
    writer.output(out)
    case = Case(f"{name} N {rows} K {columns}{' bias' * with_bias}", writer, weights.tolerance)
    for count in LIVE_ROWS:
        data = torch.from_numpy(rng.standard_normal((1, count, columns)).astype(np.float32))
        expected = data.double() @ weights.values.T
        if with_bias:
            expected = expected + torch.from_numpy(bias[:rows]).double()
        case.call([data], [expected])
    return case


def ranks_case(lives: list[tuple[int, ...]], rng: np.random.Generator) -> Case:
    """Make a case of any number of leading dims, the last of them live; the largest come first."""
    lead = lives[0]
    weights = blocks("q4_1", 24, 64, rng)
    writer = ProgramWriter()
    dynamic = (len(lead) - 1,) if lead else ()
    x = writer.input("x", (*lead, 64), F32, dynamic)
    out = writer.tensor((*lead, 24), F32)
    write_linear(writer, weights, x, out, None)
    writer.output(out)
    case = Case(f"linear_q4_1 leading dims {list(lead)}", writer, QUANTISED)
    for live in lives:
        data = torch.from_numpy(rng.standard_normal((*live, 64)).astype(np.float32))
        case.call([data], [data.double() @ weights.values.T])
    return case


def chain_case(rng: np.random.Generator) -> Case:
    """Two linears after each other switch between their routes together."""
    up, down = blocks("q8_0", 64, 32, rng), q4gsw(37, 64, 32, rng)
    writer = ProgramWriter()
    x = writer.input("x", (9, 32), F32, dynamic=(0,))
    between, out = writer.tensor((9, 64), F32), writer.tensor((9, 37), F32)
    write_linear(writer, up, x, between, None)
    renamed = {f"down {name}": data for name, data in down.constants.items()}
    down.constants = renamed
    write_linear(writer, down, between, out, None)
    writer.output(out)
    case = Case("linear chain of two kinds", writer, QUANTISED)
    for count in (9, 1, 4, 1, 9):
        data = torch.from_numpy(rng.standard_normal((count, 32)).astype(np.float32))
        case.call([data], [data.double() @ up.values.T @ down.values.T])
    return case


def computed_weight_case(rng: np.random.Generator) -> Case:
    """Make a case whose weight is an input itself, live in both of its dims."""
    writer = ProgramWriter()
    x = writer.input("x", (6, 12), F32, dynamic=(0, 1))
    weight = writer.input("weight", (10, 12), F32, dynamic=(0, 1))
    out = writer.tensor((6, 10), F32)
    writer.op("aten.linear.default", x, weight, None, out)
    writer.output(out)
    case = Case("linear with a computed weight", writer, MATMUL)
    for lines, rows, columns in ((6, 10, 12), (1, 3, 5), (5, 10, 11), (6, 10, 12)):
        data = torch.from_numpy(rng.standard_normal((lines, columns)).astype(np.float32))
        other = torch.from_numpy(rng.standard_normal((rows, columns)).astype(np.float32))
        case.call([data, other], [data.double() @ other.double().T])
    return case


def cases() -> Iterator[Case]:
    rng = np.random.default_rng(7)
    for rows, columns, group_size in (
        (8, 32, 32),
        (37, 64, 32),
        (576, 576, 64),
        (37, 576, 576),
        (40, 256, 128),
        (37, 100, 100),  # K % 8 == 4 (U7): one group,
        (5, 100, 32),  # a last group that is cut short,
        (6, 44, 8),  # and groups that are not a multiple of 32
        (37, 48, 24),
        (1, 12, 40),
    ):
        for with_bias in (False, True):
            weights = q4gsw(rows, columns, group_size, rng)
            yield linear_case(f"linear_q4gsw groups of {group_size}", weights, with_bias, rng)
    for bits in (4, 8):
        for rows, columns in ((8, 32), (37, 100), (5, 4), (67, 576)):
            weights = channels(bits, rows, columns, rng)
            yield linear_case(f"linear_qcs{bits}w", weights, False, rng)
    for kind in ("q4_0", "q4_1", "q8_0"):
        for rows, columns in ((8, 32), (37, 64), (5, 96), (67, 576)):
            for with_bias in (False, True):
                weights = blocks(kind, rows, columns, rng)
                yield linear_case(f"linear_{kind}", weights, with_bias, rng)
    for rows, columns in ((8, 32), (37, 100), (67, 576), (3, 4), (37, 33), (5, 1)):
        for with_bias in (False, True):
            yield linear_case("linear f32", f32(rows, columns, rng), with_bias, rng)
    yield ranks_case([()], rng)
    yield ranks_case([(5,), (1,), (3,), (5,)], rng)
    yield ranks_case([(2, 3, 4), (2, 3, 1), (2, 3, 4)], rng)
    yield chain_case(rng)
    yield computed_weight_case(rng)
