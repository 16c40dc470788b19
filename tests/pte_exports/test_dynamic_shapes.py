"""ExecuTorch's dynamic-shape exporter's toys, exported here and now, against its own answers.

Each is loaded once and called at all its live sizes, down to the smallest and back.
"""

import os
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
import torch
from executorch.backends.webgpu.test.ops.dynamic_shape import test_dynamic_shape_export as toys

from tests.pte.loaded import LoadedPte, loaded, refusal
from tests.pte_exports.dynamic_cases import CASES, ELEMENTWISE, DynamicCase
from tests.pte_exports.exporter import quiet
from tests.pte_exports.table import TABLE, Record
from tests.runners import Runner

# The first test of a process waits for the whole export.
pytestmark = pytest.mark.timeout(3600)

REFUSED = {"dyn_conv1d": "aten.convolution.default", "sdpa_k16_bad_cache_heads": "do not fit k"}
WITHOUT_ANSWERS = {"dyn_expand_copy", "dyn_expand_copy_inferred", "dyn_gelu_2d", "qkv_bk64_routes"}


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Everything the exporter writes, its heavy case too."""
    folder = tmp_path_factory.mktemp("dynamic_shapes")
    with quiet(), mock.patch.dict(os.environ, WEBGPU_TEST_HEAVY="1"):
        toys.export_dynamic_shape_cases(str(folder))
    return folder


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_equals_torch(
    case: DynamicCase, runner: Runner, exported: Path, record_property: Record
) -> None:
    with loaded(runner, exported / f"{case.name}.pte") as graph:
        worst = max(
            worst_difference(graph, case, exported, label, rows) for label, rows in case.calls()
        )
    called = " ".join(str(rows) for _, rows in case.calls())
    record_property(TABLE, [case.name, runner.name, called, case.tolerance, worst])
    assert worst <= case.tolerance


def worst_difference(
    graph: LoadedPte, case: DynamicCase, folder: Path, label: str, rows: int
) -> float:
    ends = graph.description["methods"]["forward"]
    inputs = case.read(folder, label, rows, case.inputs, ends["inputs"])
    specs = ends["outputs"][-len(case.outputs) :]
    wanted = case.read(folder, label, rows, case.outputs, specs)
    got = graph.run(inputs)[-len(case.outputs) :]
    for one, other in zip(got, wanted, strict=True):
        assert one.shape == other.shape
        assert np.isfinite(one).all()
    return max(float(np.abs(one - other).max()) for one, other in zip(got, wanted, strict=True))


@pytest.mark.parametrize("name", ["dyn_expand_copy", "dyn_expand_copy_inferred"])
def test_expand_copy_upstream_refuses(name: str, runner: Runner, exported: Path) -> None:
    with loaded(runner, exported / f"{name}.pte") as graph:
        for width in (8, 1, 5, 8):
            x = toys._ramp((1, width))
            (got,) = graph.run([x.numpy()])
            assert (got == x.expand(4, width).numpy()).all()


def test_gelu_beyond_the_old_grid(runner: Runner, exported: Path) -> None:
    """More elements than one dimension of a grid can hold."""
    most = 4 * 64 * 65535 + 1
    with loaded(runner, exported / "dyn_gelu_2d.pte") as graph:
        for count in (1024, most, 4097):
            x = torch.linspace(-6, 6, count)
            (got,) = graph.run([x.numpy()])
            wanted = torch.nn.functional.gelu(x.double()).numpy()
            assert got.shape == wanted.shape
            assert np.abs(got - wanted).max() <= ELEMENTWISE


def test_qkv_routes_of_64(runner: Runner, exported: Path) -> None:
    """The exporter gives this one no answers; torch computes them from the same seeds."""
    with quiet():
        projections = [
            toys._make_bk64_model(n=n, seed=seed) for seed, n in enumerate((2048, 512, 512))
        ]
    with loaded(runner, exported / "qkv_bk64_routes.pte") as graph:
        for rows in (128, 1, 128):
            x = toys._ramp((rows, 2048))
            for got, projection in zip(graph.run([x.numpy()]), projections, strict=True):
                wanted = torch.sigmoid(toys._bk64_golden(projection, x)).numpy()
                assert np.abs(got - wanted).max() <= ELEMENTWISE


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_a_reason(name: str, runner: Runner, exported: Path) -> None:
    error = refusal(runner, exported / f"{name}.pte")
    assert error["class"] in ("UnsupportedPteError", "GraphError")
    assert REFUSED[name] in error["message"]


def test_every_file_of_the_exporter_has_a_test(exported: Path) -> None:
    names = {path.stem for path in exported.glob("*.pte")}
    assert names == {case.name for case in CASES} | set(REFUSED) | WITHOUT_ANSWERS
