"""Every op on the CPU against torch, with the cases of tests/ops."""

import pytest

from tests.golden import Case, check
from tests.ops.test_ops import CASES
from tests.ops.wide_cases import by_int8_planes, multiplies_blocks
from tests.runners import CpuRunner

pytestmark = pytest.mark.torch


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_op_equals_torch(case: Case, cpu: CpuRunner) -> None:
    by_integers = multiplies_blocks(case) or case.name.startswith("experts")
    check(by_int8_planes(case) if by_integers else case, cpu)
