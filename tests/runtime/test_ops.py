"""Every op against torch: the cases stand in cases_*.py beside this file, one generator each."""

from importlib import import_module
from pathlib import Path

import pytest

from tests.golden import Case, check
from tests.runners import Runner

CASES: list[Case] = [
    case
    for path in sorted(Path(__file__).parent.glob("cases_*.py"))
    for case in import_module(f"{__package__}.{path.stem}").cases()
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_op_equals_torch(case: Case, runner: Runner) -> None:
    check(case, runner)
