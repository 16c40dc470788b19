"""Ops against torch with the kernels of GPUs without subgroups, also at the lowest limits."""

import pytest

from py_runtime.gpu.kernel_target import MEMORY_KERNELS
from tests.golden import Case, check
from tests.ops import test_ops
from tests.ops.new_kernels import (
    LEAST,
    MEMORY,
    PORTABLE,
    all_parts_of,
    thinned,
    with_new_kernels,
    with_new_names,
)
from tests.ops.wide_cases import WIDE
from tests.runners import NativeRunner, PageRunner

pytestmark = [pytest.mark.torch, pytest.mark.thorough]

ONCE = with_new_kernels(WIDE, MEMORY)
PORTABLE_PARTS = all_parts_of(test_ops.ONCE, PORTABLE)
PARTS = PORTABLE_PARTS | all_parts_of(ONCE, MEMORY)
IN_THE_PAGE = with_new_names(ONCE, MEMORY, PORTABLE_PARTS)
SMALLEST = with_new_kernels(WIDE, MEMORY, PARTS, LEAST)


@pytest.mark.parametrize("case", thinned(WIDE, ONCE), ids=lambda case: case.name)
def test_op_equals_torch_by_memory(case: Case, native: NativeRunner) -> None:
    check(case, native, MEMORY_KERNELS)


@pytest.mark.parametrize("case", SMALLEST, ids=lambda case: case.name)
def test_op_equals_torch_in_the_smallest_workgroups(case: Case, native: NativeRunner) -> None:
    check(case, native, MEMORY_KERNELS, limits=LEAST)


@pytest.mark.browser
@pytest.mark.parametrize("case", IN_THE_PAGE, ids=lambda case: case.name)
def test_op_equals_torch_by_memory_in_the_page(case: Case, in_page: PageRunner) -> None:
    check(case, in_page, MEMORY_KERNELS)
