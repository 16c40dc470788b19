"""Products of 2 to 16 tokens with weights in blocks: in floats, and of large matrices by planes."""

import numpy as np
import pytest

from py_runtime.base.dtypes import F32
from py_runtime.gpu.kernel_target import BYTES, FLOATS, HALVES, MEMORY_KERNELS, KernelTarget
from py_runtime.ops.kernels import few_tokens
from py_runtime.ops.kernels.few_tokens import GEMV_FEW, MOST_TOKENS, goes_by_planes
from py_runtime.ops.kernels.matrices import Matrix
from py_runtime.program.json_format import dump_program
from py_runtime.program.weight_kinds import BLOCK_KINDS
from py_runtime.program.writer import ProgramWriter
from tests.gguf.blocks import TYPES, random_weight
from tests.golden import Case
from tests.golden import check as check_case
from tests.ops.new_kernels import MEMORY, parts_of, with_new_kernels
from tests.ops.test_int8_products import COLUMNS, multiply_each, of_many_sizes, product, worst
from tests.ops.wide_cases import WIDE, multiplies_blocks
from tests.runners import NativeRunner, PageRunner, Runner

pytestmark = pytest.mark.torch

LINES = (16, 2, 3, 4, 5, 8, 1, 16)
IN_BLOCKS = [name for name in TYPES if BLOCK_KINDS[name.lower()].has_scales]
IN_THE_PAGE = ("Q4_K", "Q6_K")
# Of a sum's columns, each with its sign, relative to that of their sizes.
EXACT, TWO_PLANES = 1e-6, 5e-5


def launches_few(case: Case) -> bool:
    """Return whether a few tokens get kernels of their own."""
    found = (part for part in parts_of(case, MEMORY) if isinstance(part, tuple))
    return any(part[0] == GEMV_FEW for part in found)


OF_FEW = with_new_kernels(
    (case for case in WIDE if multiplies_blocks(case) and launches_few(case)), MEMORY
)


@pytest.mark.parametrize("columns", COLUMNS)
def test_floats_are_as_exact_as_one_token(columns: int, native: NativeRunner) -> None:
    rng = np.random.default_rng(columns)
    writer, weight = product(columns, rng, tokens=MOST_TOKENS)
    calls = [of_many_sizes(rng, tokens, columns) for tokens in LINES]
    for x, got in zip(calls, multiply_each(native.device, writer, calls), strict=True):
        assert worst(got, x, weight) < EXACT


@pytest.mark.parametrize("columns", COLUMNS)
def test_planes_are_as_exact_as_those_of_a_prompt(
    columns: int, native: NativeRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(few_tokens, "MIN_ROWS", 0)
    monkeypatch.setattr(few_tokens, "MIN_WEIGHTS", 0)
    rng = np.random.default_rng(columns)
    writer, weight = product(columns, rng, tokens=MOST_TOKENS)
    calls = [of_many_sizes(rng, tokens, columns) for tokens in LINES if tokens > 1]
    for x, got in zip(calls, multiply_each(native.device, writer, calls), strict=True):
        tops = np.abs(x).reshape(len(x), -1, 32).max(axis=2).repeat(32, axis=1)
        assert worst(got, x, weight, tops) < 1.6e-5  # half of a 32512th of a block's largest column


def check_type(name: str, rows: int, runner: Runner, enough_tiles: int | None) -> None:
    rng = np.random.default_rng(len(name))
    columns = 768
    weight = random_weight(name, rows, columns, rng)
    writer = ProgramWriter("a few")
    x = writer.input("x", (MOST_TOKENS, columns), F32, dynamic=(0,))
    parts = [writer.constant(part, array) for part, array in weight.parts().items()]
    out = writer.tensor((MOST_TOKENS, rows), F32)
    writer.op(weight.kind.linear, x, *parts, None, out)
    writer.output(out)
    calls = [[rng.normal(0, 1, (lines, columns)).astype(np.float32)] for lines in LINES]
    results = runner.run(
        "tests.in_runtime",
        "run_graph",
        program=dump_program(writer.program()),
        constants=writer.constants,
        calls=calls,
        kernels=MEMORY_KERNELS,
        enough_tiles=enough_tiles,
    )
    exact = weight.values.astype(np.float64)
    for (x_values,), (got,) in zip(calls, results, strict=True):
        size = np.abs(x_values).astype(np.float64) @ np.abs(exact.T)
        most = 2e-6 if enough_tiles is None else TWO_PLANES
        assert np.max(np.abs(got - x_values.astype(np.float64) @ exact.T) / size) < most


@pytest.mark.parametrize("enough_tiles", [None, 1], ids=["floats", "planes"])
@pytest.mark.parametrize("name", IN_BLOCKS)
def test_every_type_meets_its_values(
    name: str, enough_tiles: int | None, native: NativeRunner
) -> None:
    check_type(name, 37, native, enough_tiles)


def test_rows_of_several_workgroups(native: NativeRunner) -> None:
    check_type("Q4_K", 101, native, 1)


@pytest.mark.browser
@pytest.mark.parametrize("name", IN_THE_PAGE)
def test_planes_meet_values_in_the_page(name: str, in_page: PageRunner) -> None:
    check_type(name, 101, in_page, 1)


@pytest.mark.torch
@pytest.mark.parametrize("case", OF_FEW, ids=lambda case: case.name)
def test_every_epilogue_takes_planes(case: Case, native: NativeRunner) -> None:
    check_case(case, native, MEMORY_KERNELS, enough_tiles=1)


@pytest.mark.parametrize(
    ("rows", "columns", "arithmetic", "by_planes"),
    [
        (28672, 4096, BYTES, True),
        (28672, 4096, FLOATS, False),
        (28672, 4096, HALVES, False),
        (128256, 2048, BYTES, True),
        (6144, 4096, BYTES, False),
        (4096, 14336, BYTES, False),
        (49152, 576, BYTES, False),
    ],
)
def test_large_matrices_go_by_planes_where_one_token_does(
    rows: int, columns: int, arithmetic: str, by_planes: bool
) -> None:
    matrix = Matrix("q4_k", (rows,), columns, (), {}, False, True, {})
    assert goes_by_planes(matrix, KernelTarget(wide=True, one_token=arithmetic)) is by_planes
