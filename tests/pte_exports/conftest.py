"""The table of worst differences after the run, in Markdown."""

import pytest

from tests.pte_exports.table import TABLE


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
    terminalreporter.line("| case | runs | live rows, on one graph | at most | worst |")
    terminalreporter.line("|---|---|---|---|---|")
    for case, runner, calls, at_most, worst in sorted(rows):
        terminalreporter.line(f"| {case} | {runner} | {calls} | {at_most:g} | {worst:.1e} |")
