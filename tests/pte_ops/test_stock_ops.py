"""Files that ExecuTorch's exporter wrote for single ops, with torch's answers.

They are the small ones of its op-test catalogue, and modules that show each op's forms of
arguments; tests/pte_exports has all of them, freshly exported.
"""

from itertools import groupby
from pathlib import Path

import pytest

from tests.pte_ops.out_of_scope import OUT_OF_SCOPE
from tests.pte_ops.stock_case import (
    STORED,
    StockCase,
    check_case,
    check_refused,
    read_cases,
)
from tests.runners import Runner, ShippingRunner

pytestmark = pytest.mark.thorough_in_page

CATALOGUE_SUITES = 87
OURS = {"forms", "weight_int8pack_mm"}
SUITES = {
    suite: list(cases) for suite, cases in groupby(read_cases(STORED), lambda case: case.suite)
}


def some_of(cases: list[StockCase], runner: Runner) -> list[StockCase]:
    """Take one of ten in the page, which runs the same Python and the same kernels."""
    return cases[::10] if isinstance(runner, ShippingRunner) else cases


def test_every_suite_of_the_catalogue_is_here() -> None:
    assert len(SUITES.keys() - OURS) == CATALOGUE_SUITES


@pytest.mark.parametrize("suite", [suite for suite in SUITES if suite not in OUT_OF_SCOPE])
def test_stock_files_give_torchs_answers(suite: str, runner: Runner, tmp_path: Path) -> None:
    for case in some_of(SUITES[suite], runner):
        check_case(case, runner, tmp_path)


@pytest.mark.parametrize("suite", OUT_OF_SCOPE)
def test_ops_out_of_scope_are_refused_by_name(suite: str, runner: Runner, tmp_path: Path) -> None:
    _, ops = OUT_OF_SCOPE[suite]
    for case in some_of(SUITES[suite], runner):
        check_refused(case, ops, runner, tmp_path)
