"""Weights of every GGUF type on the CPU: values bit for bit, and products near those of floats."""

import numpy as np
import pytest

from py_runtime.gpu.kernel_target import CPU_KERNELS
from py_runtime.ops.kernels.cpu_attention import FEW_TOKENS
from py_runtime.program.json_format import dump_program
from tests.gguf.blocks import TYPES, random_weight
from tests.ops.test_block_types import ROWS, check, check_extremes, program
from tests.runners import CpuRunner


@pytest.mark.parametrize("name", TYPES)
def test_values_are_those_of_the_file(name: str, cpu: CpuRunner) -> None:
    check(name, cpu, CPU_KERNELS)


@pytest.mark.parametrize("name", TYPES)
def test_a_token_gets_what_it_gets_alone(name: str, cpu: CpuRunner) -> None:
    """Among a few, to the last bit: several tokens share what is read and unpacked of a weight."""
    rng = np.random.default_rng(1)
    columns = 768 if name.endswith(("_K", "_XS")) else 96
    writer = program(random_weight(name, ROWS, columns, rng))
    x = rng.normal(0, 1, (FEW_TOKENS, columns)).astype(np.float32)
    parts = [x, *np.split(x, np.cumsum([2, 3, 4, 6])), *np.split(x, FEW_TOKENS)]
    whole, *others = (
        product
        for _, product in cpu.run(
            "tests.in_runtime",
            "run_graph",
            program=dump_program(writer.program()),
            constants=writer.constants,
            calls=[[np.zeros(len(part), np.int32), part] for part in parts],
            kernels=CPU_KERNELS,
        )
    )
    np.testing.assert_array_equal(np.concatenate(others), np.concatenate([whole, whole]))


def test_the_ends_of_mxfp4_s_exponents(cpu: CpuRunner) -> None:
    check_extremes(cpu, CPU_KERNELS)
