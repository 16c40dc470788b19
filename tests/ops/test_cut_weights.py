"""Weights that no binding has room for: cut by rows, and nobody can tell."""

import numpy as np
import pytest

from py_runtime.base.dtypes import F32, I32
from py_runtime.gpu.kernel_target import PORTABLE_KERNELS, SUBGROUP_KERNELS
from py_runtime.program.json_format import dump_program
from py_runtime.program.writer import ProgramWriter
from tests.gguf.blocks import random_weight
from tests.runners import NativeRunner

ROWS, COLUMNS, LINES = 333, 256, 5


@pytest.mark.parametrize(
    ("name", "kernels"),
    [("Q6_K", PORTABLE_KERNELS), ("Q6_K", SUBGROUP_KERNELS), ("Q5_0", PORTABLE_KERNELS)],
)
def test_a_head_and_its_table(name: str, kernels: str, native: NativeRunner) -> None:
    rng = np.random.default_rng(3)
    weight = random_weight(name, ROWS, COLUMNS, rng)
    bias = rng.normal(0, 1, ROWS).astype(np.float32)
    writer = ProgramWriter("head")
    indices = writer.input("indices", (ROWS + 2,), I32)
    x = writer.input("x", (LINES, COLUMNS), F32, dynamic=(0,))
    parts = [writer.constant(part, array) for part, array in weight.parts().items()]
    looked_up, product = writer.tensor((ROWS + 2, COLUMNS), F32), writer.tensor((LINES, ROWS), F32)
    writer.op(weight.kind.embedding, *parts, indices, looked_up)
    writer.op(weight.kind.linear, x, *parts, writer.constant("bias", bias), product)
    writer.output(looked_up)
    writer.output(product)
    order = np.concatenate(([-1], rng.permutation(ROWS), [ROWS])).astype(np.int32)
    calls = [[order, rng.normal(0, 1, (n, COLUMNS)).astype(np.float32)] for n in (LINES, 1, LINES)]
    most = writer.constants["weight"].nbytes // 3
    # The table's own result is larger than the weight; only constants are cut.
    results = native.run(
        "tests.ops.cut_in_runtime",
        "run_cut",
        program=dump_program(writer.program()),
        constants=writer.constants,
        calls=calls,
        kernels=kernels,
        binding_bytes=most,
    )
    assert results["largest"] <= most
    for (_, own), (rows, sums) in zip(calls, results["outputs"], strict=True):
        np.testing.assert_array_equal(rows, weight.values[np.clip(order, 0, ROWS - 1)])
        wanted = own.astype(np.float64) @ weight.values.astype(np.float64).T + bias
        np.testing.assert_allclose(sums, wanted, atol=2e-4)  # wide kernels: two int8 planes of x
