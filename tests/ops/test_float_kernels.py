"""Ops against torch with products in floats, for GPUs that have no instruction for bytes."""

import pytest

from py_runtime.gpu.kernel_target import FLOAT_KERNELS
from tests.golden import Case, check
from tests.ops.new_kernels import (
    IN_FLOATS,
    LEAST,
    all_parts_of,
    thinned,
    with_new_kernels,
    with_new_names,
)
from tests.ops.test_memory_kernels import PARTS
from tests.ops.test_mixed_kinds import FEW_BUFFERS
from tests.ops.test_ops import CASES
from tests.ops.wide_cases import multiplies_blocks
from tests.runners import NativeRunner, PageRunner

pytestmark = [pytest.mark.torch, pytest.mark.thorough]

# As exact as the portable kernels, whatever the number of tokens.
IN_BLOCKS: list[Case] = [*filter(multiplies_blocks, CASES), *FEW_BUFFERS]
ONCE = with_new_kernels(IN_BLOCKS, IN_FLOATS)
IN_THE_PAGE = with_new_names(ONCE, IN_FLOATS, PARTS)
SMALLEST = with_new_kernels(IN_BLOCKS, IN_FLOATS, PARTS | all_parts_of(ONCE, IN_FLOATS), LEAST)


@pytest.mark.parametrize("case", thinned(IN_BLOCKS, ONCE), ids=lambda case: case.name)
def test_op_equals_torch_by_floats(case: Case, native: NativeRunner) -> None:
    check(case, native, FLOAT_KERNELS)


@pytest.mark.parametrize("case", thinned(IN_BLOCKS, ONCE, 1), ids=lambda case: case.name)
def test_op_equals_torch_by_floats_in_large_tiles(case: Case, native: NativeRunner) -> None:
    check(case, native, FLOAT_KERNELS, enough_tiles=1)


@pytest.mark.parametrize("case", SMALLEST, ids=lambda case: case.name)
def test_op_equals_torch_by_floats_in_the_smallest_workgroups(
    case: Case, native: NativeRunner
) -> None:
    check(case, native, FLOAT_KERNELS, limits=LEAST)


@pytest.mark.browser
@pytest.mark.parametrize("case", IN_THE_PAGE, ids=lambda case: case.name)
def test_op_equals_torch_by_floats_in_the_page(case: Case, in_page: PageRunner) -> None:
    for enough_tiles in (None, 1):
        check(case, in_page, FLOAT_KERNELS, enough_tiles=enough_tiles)
