"""Every op against torch: the cases stand in cases_*.py beside this file, one generator each."""

from importlib import import_module
from math import isqrt
from pathlib import Path
from typing import Any

import pytest

from py_runtime.base.shapes import ceil_div
from py_runtime.live import launch
from tests.golden import Case, check
from tests.ops.new_kernels import PORTABLE, with_new_kernels
from tests.runners import NativeRunner, PageRunner

pytestmark = pytest.mark.torch

CASES: list[Case] = [
    case
    for path in sorted(Path(__file__).parent.glob("cases_*.py"))
    for case in import_module(f"{__package__}.{path.stem}").cases()
]


# In the page, and where what is tried is not how a kernel deals with shapes.
ONCE = with_new_kernels(CASES, PORTABLE)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_op_equals_torch(case: Case, native: NativeRunner) -> None:
    check(case, native)


@pytest.mark.browser
@pytest.mark.thorough
@pytest.mark.parametrize("case", ONCE, ids=lambda case: case.name)
def test_op_equals_torch_in_the_page(case: Case, in_page: PageRunner) -> None:
    check(case, in_page)


def fold_always(groups: int, limit: int) -> tuple[int, int]:
    """Fold as if the device's limit lay just below: near-squares with a ragged end."""
    rows = max(1, isqrt(groups))
    return ceil_div(groups, rows), rows


def ops_of(case: Case) -> frozenset[str]:
    return frozenset(op.name for op in case.writer.program().ops)


def first_of_each() -> list[Any]:
    """Mark the cases thorough whose ops an earlier case has."""
    seen: set[frozenset[str]] = set()
    cases = []
    for case in ONCE:
        marks = [pytest.mark.thorough] if ops_of(case) in seen else []
        seen.add(ops_of(case))
        cases.append(pytest.param(case, marks=marks, id=case.name))
    return cases


@pytest.mark.parametrize("case", first_of_each())
def test_op_equals_torch_on_a_folded_grid(
    case: Case, native: NativeRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launch, "fold", fold_always)
    check(case, native)
