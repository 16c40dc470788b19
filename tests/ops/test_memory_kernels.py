"""Ops against torch with the kernels of GPUs without subgroups, also at the lowest limits."""

import pytest

from py_runtime.gpu.kernel_target import MEMORY_KERNELS
from tests.golden import Case, check
from tests.ops.new_kernels import MEMORY, thinned, with_new_kernels
from tests.ops.wide_cases import WIDE
from tests.runners import NativeRunner, PageRunner

pytestmark = [pytest.mark.torch, pytest.mark.thorough]

# What every device allows, at WebGPU's compatibility level, too.
LEAST = {
    "max_compute_invocations_per_workgroup": 128,
    "max_compute_workgroup_storage_size": 16 << 10,
}
ONCE = with_new_kernels(WIDE, MEMORY)


@pytest.mark.parametrize("case", thinned(WIDE, ONCE), ids=lambda case: case.name)
def test_op_equals_torch_by_memory(case: Case, native: NativeRunner) -> None:
    check(case, native, MEMORY_KERNELS)


@pytest.mark.parametrize("case", ONCE, ids=lambda case: case.name)
def test_op_equals_torch_in_the_smallest_workgroups(case: Case, native: NativeRunner) -> None:
    check(case, native, MEMORY_KERNELS, limits=LEAST)


@pytest.mark.browser
@pytest.mark.parametrize("case", ONCE, ids=lambda case: case.name)
def test_op_equals_torch_by_memory_in_the_page(case: Case, in_page: PageRunner) -> None:
    check(case, in_page, MEMORY_KERNELS)
