"""Weights of every GGUF type on the CPU: values bit for bit, and products near those of floats."""

import pytest

from py_runtime.gpu.kernel_target import CPU_KERNELS
from tests.gguf.blocks import TYPES
from tests.ops.test_block_types import check, check_extremes
from tests.runners import CpuRunner


@pytest.mark.parametrize("name", TYPES)
def test_values_are_those_of_the_file(name: str, cpu: CpuRunner) -> None:
    check(name, cpu, CPU_KERNELS)


def test_the_ends_of_mxfp4_s_exponents(cpu: CpuRunner) -> None:
    check_extremes(cpu, CPU_KERNELS)
