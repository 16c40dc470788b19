"""Products of weights in blocks by int8 planes, floats and halves, with every tile.

One token takes three planes and is as exact as floats, several tokens take two.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pytest

from py_runtime import gpu, ops  # noqa: F401  (before linears, which ops import)
from py_runtime.base.dtypes import F32
from py_runtime.gpu import Device
from py_runtime.gpu.kernel_target import (
    ARITHMETICS,
    BYTES,
    FLOAT_KERNELS,
    FLOATS,
    HALF_KERNELS,
    HALVES,
    MEMORY_KERNELS,
    candidates,
)
from py_runtime.graph import Graph
from py_runtime.ops.kernels import gemm, gemv, int8_products
from py_runtime.ops.kernels.int8_products import GemvTile
from py_runtime.ops.kernels.matrices import Matrix
from py_runtime.program.writer import ProgramWriter
from tests.compiled_sooner import compile_sooner, written_out
from tests.halves import having_halves
from tests.runners import NativeRunner, wait

TILES = {
    "usual": int8_products.USUAL,
    "long K": int8_products.LONG_K,
    "long K, few rows": int8_products.LONG_K_FEW_ROWS,
    "many rows": int8_products.MANY_ROWS,
    "most rows": int8_products.MOST_ROWS,
}
ROWS = 37  # odd: the last pair is half a pair
TOKENS = (70, 2, 33, 64, 70)
COLUMNS = (32, 576, 3136)  # a block, a tile that is not full, two tiles
KERNELS = {BYTES: MEMORY_KERNELS, FLOATS: FLOAT_KERNELS, HALVES: HALF_KERNELS}
# Of a sum of as many columns, each with its sign, relative to that of their sizes.
EXACT = {BYTES: 1e-6, FLOATS: 1e-6, HALVES: 2e-3}


def product(
    columns: int, rng: np.random.Generator, tokens: int = 1
) -> tuple[ProgramWriter, np.ndarray]:
    """(program, the weight as it is meant): 4-bit weights, a scale for 32 columns."""
    writer = ProgramWriter("product")
    nibbles = rng.integers(0, 16, (ROWS, columns), np.uint8)
    scales = rng.uniform(0.5, 2, (columns // 32, ROWS)).astype(np.float32)
    x = writer.input("x", (tokens, columns), F32, dynamic=(0,) if tokens > 1 else ())
    packed = writer.constant("weight", nibbles[:, ::2] | nibbles[:, 1::2] << 4)
    out = writer.tensor((tokens, ROWS), F32)
    scale_values = writer.constant("scales", scales)
    writer.op("et_vk.linear_q4gsw.default", x, packed, scale_values, 32, None, out)
    writer.output(out)
    meant = (nibbles.astype(np.float64) - 8) * scales.T.repeat(32, axis=1)
    return writer, meant


def multiply(
    native: NativeRunner, writer: ProgramWriter, x: np.ndarray, arithmetic: str = BYTES
) -> np.ndarray:
    return multiply_each(native.device, writer, [x], arithmetic)[0]


def multiply_each(
    device: Device, writer: ProgramWriter, calls: Sequence[np.ndarray], arithmetic: str = BYTES
) -> list[np.ndarray]:
    async def work() -> list[np.ndarray]:
        target = candidates(device)[KERNELS[arithmetic]]
        graph = await Graph.load(device, writer.program(), writer.constants, target=target)
        try:
            return [(await graph.run([x]))[0] for x in calls]
        finally:
            graph.unload()

    with having_halves(device):
        return wait(work())


@pytest.mark.parametrize("arithmetic", ARITHMETICS)
@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("tile", TILES.values(), ids=TILES)
def test_every_tile_is_as_exact_as_its_arithmetic(
    tile: GemvTile,
    columns: int,
    arithmetic: str,
    native: NativeRunner,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gemv, "choose_gemv_tile", lambda matrix, limits: tile)
    rng = np.random.default_rng(columns)
    writer, weight = product(columns, rng)
    x = of_many_sizes(rng, 1, columns)
    assert worst(multiply(native, writer, x, arithmetic), x, weight) < EXACT[arithmetic]


def of_many_sizes(rng: np.random.Generator, tokens: int, columns: int) -> np.ndarray:
    values = rng.normal(0, 1, (tokens, columns)) * 10 ** rng.uniform(-3, 3, (tokens, columns))
    return values.astype(np.float32)


def worst(
    got: np.ndarray, x: np.ndarray, weight: np.ndarray, sizes: np.ndarray | None = None
) -> float:
    """Return the largest difference.

    Columns of x are rounded relative to their sizes, or to others.
    """
    exact = x.astype(np.float64)
    size = np.abs(x if sizes is None else sizes).astype(np.float64) @ np.abs(weight.T)
    return float(np.max(np.abs(got.astype(np.float64) - exact @ weight.T) / size))


@pytest.fixture(scope="module")
def as_users_have_it(native: NativeRunner) -> Iterator[Device]:
    """Open a device whose kernels' eight tokens do not take turns (tests/compiled_sooner.py)."""
    device = wait(gpu.request_device())
    compile_sooner(device, written_out)
    yield device
    device.destroy()


@pytest.mark.parametrize(
    "columns", [576, *(pytest.param(each, marks=pytest.mark.thorough) for each in (32, 3136))]
)
@pytest.mark.parametrize("enough", [1, 10**6], ids=["large tiles", "small tiles"])
def test_several_tokens_take_two_planes(
    enough: int,
    columns: int,
    native: NativeRunner,
    as_users_have_it: Device,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gemm, "MIN_SQUARES", enough)
    rng = np.random.default_rng(columns)
    writer, weight = product(columns, rng, tokens=70)
    calls = [of_many_sizes(rng, tokens, columns) for tokens in TOKENS]
    results = multiply_each(as_users_have_it, writer, calls)
    in_turns = multiply_each(native.device, writer, calls)
    for x, got, other in zip(calls, results, in_turns, strict=True):
        np.testing.assert_array_equal(got, other)
        tops = np.abs(x).reshape(len(x), -1, 32).max(axis=2).repeat(32, axis=1)
        assert worst(got, x, weight, tops) < 1.6e-5  # half of a 32512th of a block's largest column


@pytest.mark.parametrize("arithmetic", [FLOATS, HALVES])
@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("enough", [1, 10**6])
def test_large_and_small_tiles_are_as_exact(
    enough: int,
    columns: int,
    arithmetic: str,
    native: NativeRunner,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gemm, "MIN_SQUARES", enough)
    rng = np.random.default_rng(columns)
    writer, weight = product(columns, rng, tokens=70)
    calls = [of_many_sizes(rng, tokens, columns) for tokens in TOKENS]
    for x, got in zip(calls, multiply_each(native.device, writer, calls, arithmetic), strict=True):
        assert worst(got, x, weight) < EXACT[arithmetic]


@pytest.mark.parametrize("arithmetic", ARITHMETICS)
@pytest.mark.parametrize("tokens", [1, 5])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_is_not_hidden(
    bad: float, tokens: int, arithmetic: str, native: NativeRunner
) -> None:
    writer, _ = product(64, np.random.default_rng(0), tokens)
    x = np.ones((tokens, 64), np.float32)
    x[-1, 40] = bad
    got = multiply(native, writer, x, arithmetic)
    assert not np.isfinite(got[-1]).any()
    assert np.isfinite(got[:-1]).all()


@pytest.mark.parametrize("tokens", [1, 5])
def test_nothing_gives_nothing(tokens: int, native: NativeRunner) -> None:
    writer, _ = product(64, np.random.default_rng(0), tokens)
    assert not multiply(native, writer, np.zeros((tokens, 64), np.float32)).any()


@pytest.mark.parametrize(
    ("kind", "rows", "columns", "name"),
    [
        ("q4gsw", 28672, 4096, "most rows"),
        ("q8_0", 28672, 4096, "most rows"),
        ("q6_k", 128256, 2048, "most rows"),
        ("q8_0", 49152, 576, "most rows"),
        ("q4gsw", 16384, 2048, "many rows"),
        ("q4gsw", 6144, 4096, "usual"),
        ("q4_1", 576, 1536, "usual"),
        ("q4gsw", 4096, 14336, "long K"),
        ("q4gsw", 2048, 8192, "long K, few rows"),
    ],
)
def test_shapes_get_what_suits_them(kind: str, rows: int, columns: int, name: str) -> None:
    matrix = Matrix(kind, (rows,), columns, (), {}, False, True, {})
    assert int8_products.choose_gemv_tile(matrix, limits(256)) == TILES[name]
    small = int8_products.choose_gemv_tile(matrix, limits(128))
    assert small.workgroup == 128
    assert small.pair_lanes == TILES[name].pair_lanes


@pytest.mark.parametrize("most", int8_products.MAX_BLOCKS.values())
@pytest.mark.parametrize("blocks", [1, 18, 64, 97, 448])
@pytest.mark.parametrize("tile", TILES.values(), ids=TILES)
def test_rounds_are_whole_steps_and_fit(tile: GemvTile, blocks: int, most: int) -> None:
    at_once = tile.blocks_at_once(blocks, most)
    assert at_once % (tile.unroll * tile.pair_lanes) == 0
    assert tile.workgroup // 4 <= at_once <= most


def test_a_token_is_laid_out_in_equal_rounds() -> None:
    at_once = int8_products.USUAL.blocks_at_once
    assert [at_once(blocks, 96) for blocks in (64, 96, 128, 200)] == [64, 96, 64, 96]


def limits(invocations: int) -> Mapping[str, int]:
    return {"max_compute_invocations_per_workgroup": invocations}
