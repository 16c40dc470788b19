"""Ops against torch with the kernels of GPUs that have subgroups."""

import pytest

from py_runtime.gpu.kernel_target import SUBGROUP_KERNELS
from tests.golden import Case, check
from tests.ops.wide_cases import SHARING
from tests.runners import Runner

pytestmark = [pytest.mark.torch, pytest.mark.thorough]


@pytest.mark.parametrize("case", SHARING, ids=lambda case: case.name)
def test_op_equals_torch_by_subgroups(case: Case, runner: Runner) -> None:
    check(case, runner, SUBGROUP_KERNELS)
