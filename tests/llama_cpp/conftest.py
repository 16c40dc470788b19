"""The two sides that are compared, and a table of their differences after the run, in Markdown."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.conftest import serving
from tests.llama_cpp.comparison import COLUMNS, TABLE
from tests.llama_cpp.oracle import LlamaCpp
from tests.runners import Runner, started_page


@pytest.fixture(scope="session")
def llama_cpp() -> Iterator[LlamaCpp]:
    oracle = LlamaCpp()
    yield oracle
    oracle.close()


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the folder of models that both sides and the page's site share."""
    return tmp_path_factory.mktemp("models")


@dataclass(frozen=True)
class Engine:
    """The engine natively or in the page, and where it finds the files."""

    runner: Runner
    where: str


@pytest.fixture(scope="session")
def engine_in_page(shared_browser: Browser, files: Path) -> Iterator[Engine]:
    with (
        serving("--models", str(files), device="gpu") as address,
        started_page(shared_browser, address) as page,
    ):
        yield Engine(page, f"{address}models/")


@pytest.fixture(params=["native", pytest.param("page", marks=pytest.mark.browser)])
def engine(request: pytest.FixtureRequest, files: Path) -> Engine:
    """Run the test twice: natively and in the page."""
    if request.param == "native":
        return Engine(request.getfixturevalue("native"), f"{files}/")
    found: Engine = request.getfixturevalue("engine_in_page")
    return found


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = [
        report
        for outcome in ("passed", "failed")
        for report in terminalreporter.stats.get(outcome, [])
    ]
    rows = [value for report in reports for name, value in report.user_properties if name == TABLE]
    if not rows:
        return
    terminalreporter.section(TABLE)
    terminalreporter.line(f"| {' | '.join(COLUMNS)} |")
    terminalreporter.line("|---" * len(COLUMNS) + "|")
    for case, runner, steps, ties, at_most, worst in sorted(rows):
        line = f"| {case} | {runner} | {steps} | {ties} | {at_most:g} | {worst:.1e} |"
        terminalreporter.line(line)
