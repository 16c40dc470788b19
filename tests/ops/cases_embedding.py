"""Embedding tables of every weight kind: the rows must come out exactly."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from py_runtime.base.dtypes import F32, I32, I64, DType
from py_runtime.program.weight_kinds import pack_nibbles
from py_runtime.program.writer import ProgramWriter, Ref
from tests.golden import EXACT, Case

FOLDING_COLUMNS = 65
FOLDING_INDICES = 65_535 * 64 // FOLDING_COLUMNS + 2  # a workgroup copies 64 values


def lookup_case(name: str, table: np.ndarray, op: str, args: Any, index_dtype: DType = I64) -> Case:
    """[2, S] indices at several live S; `args` puts the constants around the indices."""
    rows, columns = table.shape
    rng = np.random.default_rng(rows)
    writer = ProgramWriter()
    indices = writer.input("indices", (2, 16), index_dtype, dynamic=(1,))
    out = writer.tensor((2, 16, columns), F32)
    writer.op(op, *args(writer, indices), out)
    writer.output(out)
    case = Case(f"{name} V {rows} E {columns} {index_dtype.name}", writer, EXACT)
    for count in (16, 1, 5, 16):
        ids = rng.integers(0, rows, (2, count)).astype(index_dtype.host)
        ids[0, 0], ids[1, -1] = rows - 1, 0
        case.call([ids], [torch.from_numpy(table[ids])])
    outside = np.array([[-1, rows, 1], [-(2**31), 2**31 - 1, 0]], index_dtype.host)
    case.call([outside], [torch.from_numpy(table[np.clip(outside, 0, rows - 1)])])
    return case


def q4gsw_case(rows: int, columns: int, group_size: int, is_linear: bool) -> Case:
    rng = np.random.default_rng(columns)
    nibbles = rng.integers(0, 16, (rows, columns), np.uint8)
    scales = rng.uniform(-0.4, 0.4, (rows, columns // group_size)).astype(np.float32)
    table = (nibbles.astype(np.float32) - 8) * np.repeat(scales, group_size, axis=1)
    packed = pack_nibbles(nibbles)
    if not is_linear:
        packed = packed << 4 | packed >> 4

    def args(writer: ProgramWriter, indices: Ref) -> list[Any]:
        weight, scale = writer.constant("weight", packed), writer.constant("scales", scales)
        return [weight, scale, group_size, indices, is_linear]

    order = "low" if is_linear else "high"
    name = f"embedding_q4gsw groups of {group_size} {order} nibble first"
    return lookup_case(name, table, "et_vk.embedding_q4gsw.default", args)


def block_case(kind: str, rows: int, columns: int) -> Case:
    """q4_0, q4_1, q8_0 on the constants of the linear, values rounded to f32 once."""
    rng = np.random.default_rng(columns)
    shape = (rows, columns // 32)
    scales = rng.uniform(-0.4, 0.4, shape)
    scales[rows // 2 :] *= 1e-4  # subnormal in f16, as the scales of small 8-bit weights are
    scales = scales.astype(np.float16)
    spread = np.repeat(scales.astype(np.float64), 32, axis=1)
    if kind == "q8_0":
        weight = rng.integers(-128, 128, (rows, columns), np.int8)
        table = weight * spread
    else:
        nibbles = rng.integers(0, 16, (rows, columns), np.uint8)
        weight = pack_nibbles(nibbles)
        table = (nibbles.astype(np.float64) - (8 if kind == "q4_0" else 0)) * spread
    if kind == "q4_1":
        minimum = rng.uniform(-3, 3, shape).astype(np.float16)
        table = table + np.repeat(minimum.astype(np.float64), 32, axis=1)
        scales = np.stack([scales, minimum], axis=-1)

    def args(writer: ProgramWriter, indices: Ref) -> list[Any]:
        return [writer.constant("weight", weight), writer.constant("scales", scales), indices]

    return lookup_case(
        f"embedding_{kind}", table.astype(np.float32), f"inpage.embedding_{kind}.default", args
    )


def f32_case(rows: int, columns: int, index_dtype: DType) -> Case:
    table = np.random.default_rng(rows).standard_normal((rows, columns)).astype(np.float32)

    def args(writer: ProgramWriter, indices: Ref) -> list[Any]:
        return [writer.constant("weight", table), indices, -1, False, False]

    return lookup_case("embedding f32", table, "aten.embedding.default", args, index_dtype)


def one_index_case() -> Case:
    """Look up by an index of rank 0."""
    table = np.arange(12, dtype=np.float32).reshape(4, 3)
    writer = ProgramWriter()
    index, out = writer.input("index", (), I64), writer.tensor((3,), F32)
    weight = writer.constant("weight", table)
    writer.op("aten.embedding.default", weight, index, -1, False, False, out)
    writer.output(out)
    case = Case("embedding f32 of one index", writer, EXACT)
    case.call([np.array(2)], [torch.from_numpy(table[2])])
    return case


def folding_case() -> Case:
    """More workgroups than one dimension of a grid holds (U9)."""
    table = np.arange(5 * FOLDING_COLUMNS, dtype=np.float32).reshape(5, FOLDING_COLUMNS)
    writer = ProgramWriter()
    indices = writer.input("indices", (FOLDING_INDICES,), I32)
    out = writer.tensor((FOLDING_INDICES, FOLDING_COLUMNS), F32)
    weight = writer.constant("weight", table)
    writer.op("aten.embedding.default", weight, indices, -1, False, False, out)
    writer.output(out)
    case = Case("embedding f32 of more than 65,535 workgroups", writer, EXACT)
    ids = np.arange(FOLDING_INDICES, dtype=np.int32) % 5
    case.call([ids], [torch.from_numpy(table[ids])])
    return case


def cases() -> Iterator[Case]:
    for is_linear in (True, False):
        yield q4gsw_case(50, 64, 32, is_linear)
        yield q4gsw_case(7, 576, 64, is_linear)
        yield q4gsw_case(3, 24, 8, is_linear)
    for kind in ("q4_0", "q4_1", "q8_0"):
        yield block_case(kind, 50, 32)
        yield block_case(kind, 7, 96)
        yield block_case(kind, 33, 576)
    for index_dtype in (I32, I64):
        yield f32_case(50, 64, index_dtype)
        yield f32_case(7, 5, index_dtype)
    yield one_index_case()
    yield folding_case()
