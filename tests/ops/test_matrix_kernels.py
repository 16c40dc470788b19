"""Products of several tokens by matrix units, against torch and against exact sums.

Software adapters have no such units: plain WGSL stands in for them (tests/matrices.py).
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pytest

from py_runtime.base.dtypes import F32
from py_runtime.gpu.kernel_target import (
    BYTES,
    FLOATS,
    MATRICES,
    MATRIX_KERNELS,
    KernelTarget,
    candidates,
)
from py_runtime.graph import Graph
from py_runtime.graph.buffers import GUARANTEED_LIMITS
from py_runtime.graph.builder import Builder, LaunchSpec
from py_runtime.ops.kernels import gemm
from py_runtime.ops.kernels.matrices import BY_BLOCKS, BY_OCTETS, Matrix
from py_runtime.ops.kernels.matrix_units import GEMM_MATRICES, HELD_BY_HALVES, takes_matrices
from py_runtime.ops.kernels.tilings import GEMM_F32, choose_tilings
from py_runtime.program.weight_kinds import BLOCK_KINDS
from py_runtime.program.writer import ProgramWriter
from tests.golden import Case, check
from tests.matrices import having_matrices
from tests.ops.new_kernels import ROOMY
from tests.ops.test_int8_products import of_many_sizes, product, worst
from tests.ops.test_ops import CASES
from tests.runners import NativeRunner, PageRunner, Runner, wait

pytestmark = pytest.mark.torch

BY_MATRICES = KernelTarget(wide=True, storage_buffers=10, many_tokens=MATRICES)
ROUNDED = 4e-4  # relative RMS: both factors lose up to a 2048th of themselves
OF_TWO = 6e-4  # of ops whose results two such products make
ATTENDED = 2e-3  # where keys and values are such products
LIVE_TOKENS = (70, 2, 33, 64, 70)


Plugs = frozenset[tuple[str, str]]


def plugs_of(case: Case) -> Plugs:
    """Return what plugs into the case's products by matrix units."""
    limits = GUARANTEED_LIMITS | ROOMY | {"max_compute_workgroup_storage_size": 32 << 10}
    builder = Builder(case.writer.program(), limits, BY_MATRICES)
    builder.build_ops()
    kernels = [step.pipeline.kernel for step in builder.steps if isinstance(step, LaunchSpec)]
    return frozenset(
        plug
        for kernel in kernels
        if kernel is not None and kernel.kernel.name == GEMM_MATRICES
        for plug in kernel.plugs.items()
    )


def one_of_each() -> Iterator[tuple[Case, Plugs]]:
    """Yield the cases that bring a kind of weights or an epilogue, and what plugs in there."""
    seen: Plugs = frozenset()
    for case in CASES:
        own = plugs_of(case)
        if not own <= seen:
            seen |= own
            yield case, own


ONE_OF_EACH = list(one_of_each())


def test_every_epilogue_is_tried() -> None:
    """All weights are in test_block_types.py, but those of other exporters, which are here."""
    tried = {plug for _, plugs in ONE_OF_EACH for plug in plugs}
    assert {plug for slot, plug in tried if slot == "epilogue"} == {"rows", "swiglu", "qkv"}
    assert {plug for slot, plug in tried if slot == "output"} == {"residual", "scaled"}
    others = {kind for slot, kind in tried if slot == "weight"}
    assert others == {"f32", "q4gsw", "qcs4w", "qcs8w"}


@pytest.mark.thorough
@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case, _ in ONE_OF_EACH])
def test_op_equals_torch_by_matrices(case: Case, native: NativeRunner) -> None:
    check_rounded(case, native)


@pytest.mark.thorough
@pytest.mark.browser
def test_op_equals_torch_by_matrices_in_the_page(in_page: PageRunner) -> None:
    gated = next(case for case, plugs in ONE_OF_EACH if ("epilogue", "swiglu") in plugs)
    check_rounded(gated, in_page)


def check_rounded(case: Case, runner: Runner) -> None:
    own = case.tolerance
    most = ATTENDED if case.name.startswith("qkv") else OF_TWO
    rounded = replace(own, absolute=20 * own.absolute, relative_rms=most, of_each=1e-2)
    check(replace(case, tolerance=rounded), runner, MATRIX_KERNELS)


def multiply_each(
    native: NativeRunner,
    writer: ProgramWriter,
    calls: Sequence[np.ndarray],
    sides: Sequence[int] = (64,),
    exact: bool = False,
) -> list[np.ndarray]:
    """Return the products with each x, all by one graph."""

    async def work() -> list[np.ndarray]:
        target = replace(candidates(native.device)[MATRIX_KERNELS], exact=exact)
        graph = await Graph.load(native.device, writer.program(), writer.constants, target=target)
        try:
            return [(await graph.run([x]))[0] for x in calls]
        finally:
            graph.unload()

    with having_matrices(native.device, sides):
        return wait(work())


def relative_rms(got: np.ndarray, wanted: np.ndarray) -> float:
    return float(np.sqrt(np.mean((got - wanted) ** 2) / np.mean(wanted**2)))


@pytest.mark.parametrize("sides", [(64,), pytest.param((128, 64), marks=pytest.mark.thorough)])
def test_only_the_rounding_of_factors_is_lost(
    sides: tuple[int, ...], native: NativeRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every live shape on one graph, which grows back; large tiles take over where they fit."""
    monkeypatch.setattr(gemm, "MIN_SQUARES", 1)
    monkeypatch.setattr(gemm, "MIN_SHARE", 0)
    rng = np.random.default_rng(0)
    writer, weight = product(96, rng, tokens=max(LIVE_TOKENS))
    calls = [of_many_sizes(rng, tokens, 96) for tokens in LIVE_TOKENS]
    for x, got in zip(calls, multiply_each(native, writer, calls, sides), strict=True):
        assert worst(got, x, weight) < 2**-10 * 1.01  # half a unit of eleven bits, twice
        assert relative_rms(got, x.astype(np.float64) @ weight.T) < ROUNDED


@pytest.fixture
def product_of_halves() -> tuple[ProgramWriter, np.ndarray]:
    """Return a product with 100 columns, of which the last block has four, and its weight."""
    rng = np.random.default_rng(1)
    weight = rng.standard_normal((37, 100)).astype(np.float16)
    writer = ProgramWriter("product")
    x = writer.input("x", (70, 100), F32, dynamic=(0,))
    out = writer.tensor((70, 37), F32)
    stored = weight.reshape(BLOCK_KINDS["f16"].weight_dims(37, 100))
    writer.op(BLOCK_KINDS["f16"].linear, x, writer.constant("weight", stored), None, out)
    writer.output(out)
    return writer, weight.astype(np.float64)


@pytest.mark.thorough
@pytest.mark.parametrize(("exact", "least", "most"), [(False, 1e-4, ROUNDED), (True, 0, 1e-6)])
def test_two_parts_of_x_are_as_exact_as_floats(
    exact: bool,
    least: float,
    most: float,
    product_of_halves: tuple[ProgramWriter, np.ndarray],
    native: NativeRunner,
) -> None:
    writer, weight = product_of_halves
    rng = np.random.default_rng(2)
    calls = [rng.standard_normal((tokens, 100)).astype(np.float32) for tokens in (70, 3, 70)]
    for x, got in zip(calls, multiply_each(native, writer, calls, exact=exact), strict=True):
        assert least <= relative_rms(got, x.astype(np.float64) @ weight.T) < most


@pytest.mark.thorough
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_is_not_hidden(bad: float, native: NativeRunner) -> None:
    writer, _ = product(64, np.random.default_rng(0), tokens=5)
    x = np.ones((5, 64), np.float32)
    x[-1, 40] = bad
    (got,) = multiply_each(native, writer, [x])
    assert not np.isfinite(got[-1]).any()
    assert np.isfinite(got[:-1]).all()


def matrix_of(kind: str) -> Matrix:
    return Matrix(kind, (64,), 256, (), {}, False, kind in BY_BLOCKS, {})


def test_what_matrix_units_take() -> None:
    exact = replace(BY_MATRICES, exact=True)
    kinds = {*BY_BLOCKS, *BY_OCTETS} - {"blocks"}
    assert {kind for kind in kinds if takes_matrices(matrix_of(kind), exact)} == HELD_BY_HALVES
    left_out = {kind for kind in kinds if not takes_matrices(matrix_of(kind), BY_MATRICES)}
    assert left_out == {"mxfp4"}
    assert not takes_matrices(matrix_of("q4_k"), replace(BY_MATRICES, many_tokens=BYTES))


def test_what_they_do_not_take_has_the_arithmetic_of_one_token() -> None:
    by_floats = replace(BY_MATRICES, one_token=FLOATS)
    assert choose_tilings(matrix_of("mxfp4"), by_floats, ROOMY)[0].kernel == GEMM_F32
    by_bytes = replace(BY_MATRICES, many_tokens=BYTES)
    for kind in ("mxfp4", "q8_0"):
        usual = choose_tilings(matrix_of(kind), by_bytes, ROOMY)
        assert choose_tilings(matrix_of(kind), replace(BY_MATRICES, exact=True), ROOMY) == usual
