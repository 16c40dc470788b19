"""The 87 suites of ExecuTorch's op-test catalogue, exported here and now, at its own tolerances.

Every form of arguments that its exporter gives to the ops is among them.
"""

from functools import cache
from pathlib import Path

import pytest

from tests.pte_exports.argument_forms import FORMS, export_form
from tests.pte_exports.exporter import quiet
from tests.pte_exports.op_catalogue import SUITES, export_suite
from tests.pte_ops.out_of_scope import OUT_OF_SCOPE
from tests.pte_ops.stock_case import StockCase, check_case, check_refused
from tests.runners import Runner


@cache
def exported_suite(suite: str) -> list[StockCase]:
    return export_suite(suite)


@cache
def exported_form(name: str) -> StockCase:
    with quiet():
        return export_form(name)


@pytest.mark.parametrize("suite", [name for name in SUITES if name not in OUT_OF_SCOPE])
def test_suite_equals_torch(suite: str, runner: Runner, tmp_path: Path) -> None:
    for case in exported_suite(suite):
        check_case(case, runner, tmp_path)


@pytest.mark.parametrize("suite", OUT_OF_SCOPE)
def test_suite_is_refused_by_name(suite: str, runner: Runner, tmp_path: Path) -> None:
    _, ops = OUT_OF_SCOPE[suite]
    for case in exported_suite(suite):
        check_refused(case, ops, runner, tmp_path)


@pytest.mark.parametrize("name", FORMS)
def test_form_equals_torch(name: str, runner: Runner, tmp_path: Path) -> None:
    check_case(exported_form(name), runner, tmp_path)
