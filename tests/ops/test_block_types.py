"""Weights as GGUF files have them: values bit for bit, and products as exact as floats allow."""

from collections.abc import Mapping

import numpy as np
import pytest
from gguf import GGMLQuantizationType, dequantize

from py_runtime.base.dtypes import F32, I32
from py_runtime.gpu.kernel_target import (
    CPU_KERNELS,
    FLOAT_KERNELS,
    GPU_KERNELS,
    MATRIX_KERNELS,
    PORTABLE_KERNELS,
    SUBGROUP_KERNELS,
)
from py_runtime.ops.kernels.cpu_attention import FEW_TOKENS
from py_runtime.program.json_format import dump_program
from py_runtime.program.writer import ProgramWriter, Ref
from tests.gguf.blocks import TYPES, RandomWeight, random_weight
from tests.runners import NativeRunner, Runner

pytestmark = pytest.mark.thorough

ROWS = 37  # odd: the last pair of rows is half a pair, and scales of two blocks share words
MAX_LINES = 40
LINES = (40, 1, 3, 40, 1)
# An odd number of blocks, which is not whole tiles of any kernel.
COLUMNS = {32: 96, 256: 768, 4: 72}
IN_THE_PAGE = ("Q4_K", "Q6_K", "IQ4_XS", "F16")
TWO_PLANES = 5e-5  # columns of x have 15 bits, a block with one scale
TWICE_ROUNDED = 2**-10 * 1.01  # half a unit of the eleven bits of both factors


def program(weight: RandomWeight) -> ProgramWriter:
    """Rows of a table, and a product with it and a bias."""
    writer = ProgramWriter("types")
    rows, columns = weight.values.shape
    indices = writer.input("indices", (MAX_LINES,), I32, dynamic=(0,))
    x = writer.input("x", (MAX_LINES, columns), F32, dynamic=(0,))
    parts = constants(writer, weight.parts())
    bias = writer.constant("bias", np.linspace(-1, 1, rows, dtype=np.float32))
    looked_up = writer.tensor((MAX_LINES, columns), F32)
    writer.op(weight.kind.embedding, *parts, indices, looked_up)
    product = writer.tensor((MAX_LINES, rows), F32)
    writer.op(weight.kind.linear, x, *parts, bias, product)
    writer.output(looked_up)
    writer.output(product)
    return writer


def constants(writer: ProgramWriter, parts: Mapping[str, np.ndarray]) -> list[Ref]:
    return [writer.constant(name, part) for name, part in parts.items()]


def check(name: str, runner: Runner, kernels: str, enough_tiles: int | None = None) -> None:
    rng = np.random.default_rng(len(name))
    unit = {"F16": 4, "BF16": 4}.get(name, 256 if name.endswith(("_K", "_XS")) else 32)
    weight = random_weight(name, ROWS, COLUMNS[unit], rng)
    writer = program(weight)
    calls = [
        [
            rng.integers(0, ROWS, lines).astype(np.int32),
            rng.normal(0, 1, (lines, COLUMNS[unit])).astype(np.float32),
        ]
        for lines in LINES
    ]
    results = runner.run(
        "tests.in_runtime",
        "run_graph",
        program=dump_program(writer.program()),
        constants=writer.constants,
        calls=calls,
        kernels=kernels,
        enough_tiles=enough_tiles,
    )
    exact = weight.values.astype(np.float64)
    bias = np.linspace(-1, 1, ROWS, dtype=np.float32).astype(np.float64)
    for (indices, x), (looked_up, product) in zip(calls, results, strict=True):
        np.testing.assert_array_equal(looked_up, weight.values[indices])
        wanted = x.astype(np.float64) @ exact.T + bias
        size = np.abs(x).astype(np.float64) @ np.abs(exact.T) + np.abs(bias)
        by_planes = len(x) > 1 if kernels != CPU_KERNELS else len(x) <= FEW_TOKENS
        in_floats = kernels in (PORTABLE_KERNELS, FLOAT_KERNELS)
        in_two_planes = not in_floats and by_planes and weight.kind.has_scales
        most = TWO_PLANES if in_two_planes else 2e-6
        if kernels == MATRIX_KERNELS and by_planes and name != "MXFP4":
            most = TWICE_ROUNDED
        assert np.max(np.abs(product - wanted) / size) < most


# Products of weights in blocks share nothing among lanes: with subgroups they are those by memory.
@pytest.mark.parametrize("kernels", [name for name in GPU_KERNELS if name != SUBGROUP_KERNELS])
@pytest.mark.parametrize("name", TYPES)
def test_values_are_those_of_the_file(name: str, kernels: str, native: NativeRunner) -> None:
    check(name, native, kernels)


@pytest.mark.parametrize("name", TYPES)
def test_floats_meet_values_in_large_tiles(name: str, native: NativeRunner) -> None:
    check(name, native, FLOAT_KERNELS, enough_tiles=1)


@pytest.mark.parametrize("name", TYPES)
def test_matrix_units_meet_values(name: str, native: NativeRunner) -> None:
    check(name, native, MATRIX_KERNELS)


@pytest.mark.browser
@pytest.mark.parametrize("name", IN_THE_PAGE)
def test_floats_meet_values_in_large_tiles_in_the_page(name: str, in_page: Runner) -> None:
    check(name, in_page, FLOAT_KERNELS, enough_tiles=1)


def check_extremes(runner: Runner, kernels: str) -> None:
    """Check MXFP4 at both ends of its exponents: row 0 has the least, row 1 the largest."""
    rng = np.random.default_rng(0)
    weight = random_weight("MXFP4", 5, COLUMNS[32], rng)
    blocks = weight.raw.reshape(5, -1, weight.stored.nbytes)
    blocks[0, :, 0], blocks[1, :, 0] = 0, 254
    blocks[1, :, 1:] &= 0b10111011  # values up to 1.5, which no float is too small for
    values = dequantize(weight.raw, GGMLQuantizationType.MXFP4)
    writer = program(RandomWeight(weight.stored, weight.raw, values))
    calls = [
        [
            np.arange(5, dtype=np.int32).repeat(-(-lines // 5))[:lines],
            (2.0**118 * rng.normal(0, 1, (lines, COLUMNS[32]))).astype(np.float32),
        ]
        for lines in LINES
    ]
    results = runner.run(
        "tests.in_runtime",
        "run_graph",
        program=dump_program(writer.program()),
        constants=writer.constants,
        calls=calls,
        kernels=kernels,
    )
    for (indices, x), (looked_up, product) in zip(calls, results, strict=True):
        exact = values[indices]
        lost = (looked_up == 0) & (np.abs(exact) < np.finfo(np.float32).tiny)  # as WGSL allows
        np.testing.assert_array_equal(looked_up[~lost], exact[~lost])
        wide, least = x.astype(np.float64), values[0].astype(np.float64)
        size = 1 + np.abs(wide) @ np.abs(least)  # with the bias, which is -1
        assert np.max(np.abs(product[:, 0] - (wide @ least - 1)) / size) < TWO_PLANES


@pytest.mark.parametrize("kernels", GPU_KERNELS)
def test_the_ends_of_mxfp4_s_exponents(kernels: str, native: NativeRunner) -> None:
    check_extremes(native, kernels)


@pytest.mark.browser
def test_the_ends_of_mxfp4_s_exponents_in_the_page(in_page: Runner) -> None:
    for kernels in (PORTABLE_KERNELS, FLOAT_KERNELS):
        check_extremes(in_page, kernels)


@pytest.mark.browser
@pytest.mark.parametrize(
    ("name", "kernels"),
    [
        *((name, PORTABLE_KERNELS) for name in IN_THE_PAGE),
        ("Q6_K", SUBGROUP_KERNELS),
        *((name, FLOAT_KERNELS) for name in TYPES),
    ],
)
def test_values_are_those_of_the_file_in_the_page(name: str, kernels: str, in_page: Runner) -> None:
    check(name, in_page, kernels)
