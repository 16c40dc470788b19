"""Matrix-vector products by whole numbers: every way to share out a matrix, as exact as floats."""

from collections.abc import Mapping

import numpy as np
import pytest

from py_runtime import ops  # noqa: F401  (before linears, which ops import)
from py_runtime.base.dtypes import F32
from py_runtime.gpu.kernel_target import MEMORY_KERNELS, candidates
from py_runtime.graph import Graph
from py_runtime.ops.kernels import linears
from py_runtime.ops.kernels.linears import LimbGeometry
from py_runtime.ops.kernels.matrices import Matrix
from py_runtime.program.writer import ProgramWriter
from tests.runners import NativeRunner, wait

GEOMETRIES = {
    "abounding": linears.ABOUNDING,
    "abounding bytes": linears.ABOUNDING_BYTES,
    "abounding short": linears.ABOUNDING_SHORT,
    "long": linears.LONG,
    "longest": linears.LONGEST,
    "short": linears.SHORT,
}
ROWS = 37  # odd: the last pair is half a pair
COLUMNS = (32, 576, 3136)  # a block, a tile that is not full, two tiles and a bit


def product(columns: int, rng: np.random.Generator) -> tuple[ProgramWriter, np.ndarray]:
    """(program, the weight as it is meant): 4-bit weights, a scale for 32 columns."""
    writer = ProgramWriter("product")
    nibbles = rng.integers(0, 16, (ROWS, columns), np.uint8)
    scales = rng.uniform(0.5, 2, (columns // 32, ROWS)).astype(np.float32)
    x = writer.input("x", (1, columns), F32)
    packed = writer.constant("weight", nibbles[:, ::2] | nibbles[:, 1::2] << 4)
    out = writer.tensor((1, ROWS), F32)
    scale_values = writer.constant("scales", scales)
    writer.op("et_vk.linear_q4gsw.default", x, packed, scale_values, 32, None, out)
    writer.output(out)
    meant = (nibbles.astype(np.float64) - 8) * scales.T.repeat(32, axis=1)
    return writer, meant


def multiply(native: NativeRunner, writer: ProgramWriter, x: np.ndarray) -> np.ndarray:
    async def work() -> np.ndarray:
        target = candidates(native.device)[MEMORY_KERNELS]
        graph = await Graph.load(native.device, writer.program(), writer.constants, target=target)
        try:
            return (await graph.run([x]))[0]
        finally:
            graph.unload()

    return wait(work())


@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("geometry", GEOMETRIES.values(), ids=GEOMETRIES)
def test_every_geometry_is_as_exact_as_floats(
    geometry: LimbGeometry, columns: int, native: NativeRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(linears, "limb_geometry", lambda matrix, limits: geometry)
    rng = np.random.default_rng(columns)
    writer, weight = product(columns, rng)
    x = (rng.normal(0, 1, (1, columns)) * 10 ** rng.uniform(-3, 3, (1, columns))).astype(np.float32)
    got = multiply(native, writer, x).astype(np.float64)
    wanted = x.astype(np.float64) @ weight.T
    size = np.abs(x.astype(np.float64)) @ np.abs(weight.T)  # what rounding is relative to
    assert np.max(np.abs(got - wanted) / size) < 1e-6


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_is_not_hidden(bad: float, native: NativeRunner) -> None:
    writer, _ = product(64, np.random.default_rng(0))
    x = np.ones((1, 64), np.float32)
    x[0, 40] = bad
    assert not np.isfinite(multiply(native, writer, x)).any()


def test_nothing_gives_nothing(native: NativeRunner) -> None:
    writer, _ = product(64, np.random.default_rng(0))
    assert not multiply(native, writer, np.zeros((1, 64), np.float32)).any()


@pytest.mark.parametrize(
    ("kind", "rows", "columns", "name"),
    [
        ("q4gsw", 28672, 4096, "abounding"),
        ("q8_0", 128256, 4096, "abounding bytes"),
        ("q8_0", 49152, 576, "abounding short"),
        ("q4gsw", 6144, 4096, "long"),
        ("q4gsw", 4096, 14336, "longest"),
        ("q4_1", 576, 1536, "short"),
    ],
)
def test_shapes_get_what_suits_them(kind: str, rows: int, columns: int, name: str) -> None:
    matrix = Matrix(kind, (rows,), columns, (), {}, False, True, {})
    assert linears.limb_geometry(matrix, limits(256)) == GEOMETRIES[name]
    small = linears.limb_geometry(matrix, limits(128))
    assert small.workgroup == 128
    assert small.team == GEOMETRIES[name].team


@pytest.mark.parametrize("blocks", [1, 18, 64, 97, 448])
@pytest.mark.parametrize("geometry", GEOMETRIES.values(), ids=GEOMETRIES)
def test_tiles_are_whole_steps_and_fit(geometry: LimbGeometry, blocks: int) -> None:
    tile = geometry.tile(blocks)
    assert tile % (geometry.steps * geometry.team) == 0
    assert geometry.workgroup // 4 <= tile <= linears.MAX_TILE


def limits(invocations: int) -> Mapping[str, int]:
    return {"max_compute_invocations_per_workgroup": invocations}
