"""Linear and embedding graphs: what the answers of test_ops.py alone do not show."""

import numpy as np
import pytest

from py_runtime.base.dtypes import F32
from py_runtime.gpu.kernel_target import PORTABLE, KernelTarget
from py_runtime.graph.buffers import GUARANTEED_LIMITS
from py_runtime.graph.builder import Builder, LaunchSpec
from py_runtime.program.writer import ProgramWriter
from tests.golden import Case, check
from tests.ops.cases_embedding import block_case
from tests.ops.cases_fused import weights_of
from tests.ops.cases_linear import blocks, linear_case
from tests.ops.cases_matmul import mm_case
from tests.runners import NativeRunner, Runner

pytestmark = pytest.mark.torch

GRAPHS = "tests.ops.linear_graphs"
GROUP_LIMIT = "max_compute_workgroups_per_dimension"
RNG = np.random.default_rng(3)
FOLDING = [  # with a limit that both routes of the linear pass
    (linear_case("linear_q4_1", blocks("q4_1", 700, 32, RNG), True, RNG), 10),
    (mm_case(RNG), 2),
    (block_case("q8_0", 33, 576), 6),
]


@pytest.mark.parametrize("kind", ["q4_0", "q4_1", "q8_0"])
def test_embedding_and_head_share_one_buffer(runner: Runner, kind: str) -> None:
    weights = blocks(kind, 40, 64, np.random.default_rng(5))
    data = weights.constants
    result = runner.run(GRAPHS, "tied_head", kind=kind, columns=64, **data)
    assert result["one weight buffer"]
    assert result["one scale buffer"]
    assert result["constant bytes"] == data["weight"].nbytes + data["scales"].nbytes
    values = weights.values.numpy()
    np.testing.assert_allclose(result["row"], values[[3]], rtol=1e-6)
    np.testing.assert_allclose(result["logits"], values[[3]] @ values.T, rtol=1e-4, atol=1e-6)


def test_only_the_route_for_the_live_rows_runs(runner: Runner) -> None:
    data = blocks("q4_0", 8, 32, np.random.default_rng(5)).constants
    counts = [9, 1, 2, 1, 9]
    assert runner.run(GRAPHS, "dispatches", columns=32, counts=counts, **data) == [1] * len(counts)


@pytest.mark.parametrize(("case", "limit"), FOLDING, ids=[case.name for case, _ in FOLDING])
def test_grids_fold(
    native: NativeRunner, monkeypatch: pytest.MonkeyPatch, case: Case, limit: int
) -> None:
    """Small grids fold where a dimension takes few workgroups, as large ones do elsewhere (U9)."""
    monkeypatch.setitem(native.device.limits, GROUP_LIMIT, limit)
    check(case, native)


WIDE = KernelTarget(wide=True, lanes=32)
GATES_AND_UPS = [  # of one kind, or of two; whether their sums are put together by another kernel
    (PORTABLE, ("f32", "f32"), 3, True),
    (PORTABLE, ("f32", "f32"), 1, False),
    (WIDE, ("f32", "f32"), 3, False),
    (PORTABLE, ("f32", "q8_0"), 1, True),
    (WIDE, ("f32", "q8_0"), 3, True),
]


@pytest.mark.parametrize(("target", "kinds", "lines", "apart"), GATES_AND_UPS)
def test_gate_and_up_are_one_kernel_where_that_compiles_soon(
    target: KernelTarget, kinds: tuple[str, ...], lines: int, apart: bool
) -> None:
    """Software adapters share the product of many lines with other linears."""
    writer = ProgramWriter()
    x = writer.input("x", (lines, 32), F32, dynamic=(0,))
    weights = [weights_of(kind, 8, 32, RNG).constants for kind in kinds]
    matrices = [writer.constant(f"weight {at}", w["weight"]) for at, w in enumerate(weights)]
    scales = [writer.constant("scales", w["scales"]) for w in weights if "scales" in w]
    out = writer.tensor((lines, 8), F32)
    given = (" ".join(kinds), matrices, scales or None, 32, None)
    writer.op("inpage.swiglu.default", x, None, None, *given, out)
    writer.output(out)
    builder = Builder(writer.program(), GUARANTEED_LIMITS, target)
    builder.build_ops()
    labels = [step.pipeline.label for step in builder.steps if isinstance(step, LaunchSpec)]
    assert any(label.startswith("linear/swiglu") for label in labels) is apart
