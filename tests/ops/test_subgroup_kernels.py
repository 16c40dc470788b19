"""Ops against torch with the kernels of GPUs that have subgroups."""

import pytest

from py_runtime.gpu.kernel_target import SUBGROUP_KERNELS
from tests.golden import Case, check
from tests.ops.new_kernels import SUBGROUPS, thinned, with_new_kernels
from tests.ops.wide_cases import SHARING
from tests.runners import NativeRunner, PageRunner

pytestmark = [pytest.mark.torch, pytest.mark.thorough]


ONCE = with_new_kernels(SHARING, SUBGROUPS)


@pytest.mark.parametrize("case", thinned(SHARING, ONCE), ids=lambda case: case.name)
def test_op_equals_torch_by_subgroups(case: Case, native: NativeRunner) -> None:
    check(case, native, SUBGROUP_KERNELS)


@pytest.mark.browser
@pytest.mark.parametrize("case", ONCE, ids=lambda case: case.name)
def test_op_equals_torch_by_subgroups_in_the_page(case: Case, in_page: PageRunner) -> None:
    check(case, in_page, SUBGROUP_KERNELS)
