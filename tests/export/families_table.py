"""The tables of docs/families.md and the README: which families agree with transformers.

The command runs the tests that compare them, natively and in the page, or reads the JUnit report
of a run.
"""

import subprocess
import sys
import tempfile
from pathlib import Path
from xml.etree import ElementTree

from tests.export.family_configs import FAMILIES
from tools.files import ROOT

DOCUMENT, README = ROOT / "docs" / "families.md", ROOT / "README.md"
MARKERS = ("<!-- families -->", "<!-- /families -->")
SUITE = (
    "tests/export/test_architectures.py",
    "tests/export/test_families.py",
    "tests/gguf/test_models.py",
)
# What a test's name begins with, and what it speaks of.
FOLDER, GGUF = "folder", "GGUF"
WAYS = {
    "test_decoder_and_engine_equal_transformers": FOLDER,
    "test_from_a_folder": FOLDER,
    "test_from_a_gguf_natively": GGUF,
    "test_from_a_gguf_in_the_page": GGUF,
    "test_torch_s_tokens": GGUF,
}
SIGNS = {None: "–", True: "✔", False: "✘"}

Outcomes = dict[str, dict[str, bool]]  # family → way → whether all its tests passed


def run_suite(report: Path) -> None:
    """Run the tests; what passed and what did not goes into the report."""
    chosen = " or ".join(WAYS)
    command = [sys.executable, "-m", "pytest", *SUITE, "-q", "-k", chosen]
    subprocess.run([*command, f"--junitxml={report}"], cwd=ROOT, check=False)


def outcomes(report: Path) -> Outcomes:
    """Return each family's outcomes, by the names of its tests.

    Other tests in the report are ignored.
    """
    found: Outcomes = {}
    for case in ElementTree.parse(report).iter("testcase"):
        name, _, rest = case.get("name", "").partition("[")
        family = family_in(rest.rstrip("]"))
        is_ours = case.get("classname", "").replace(".", "/") + ".py" in SUITE
        if name not in WAYS or not is_ours or family is None or case.find("skipped") is not None:
            continue
        passed = case.find("failure") is None and case.find("error") is None
        ways = found.setdefault(family, {})
        ways[WAYS[name]] = ways.get(WAYS[name], True) and passed
    return found


def family_in(parameters: str) -> str | None:
    """Return the family that a test's parameters name.

    They may be a browser, a family, an architecture, a type, with dashes between them, as names of
    families have some, too.
    """
    between = f"-{parameters}-"
    return max((name for name in FAMILIES if f"-{name}-" in between), key=len, default=None)


def table(found: Outcomes) -> str:
    """Markdown."""
    lines = ["| family | folder | GGUF |", "| --- | :-: | :-: |"]
    for family in sorted(found):
        signs = [SIGNS[found[family].get(way)] for way in (FOLDER, GGUF)]
        lines.append(f"| {family} | {' | '.join(signs)} |")
    return "\n".join(lines)


def short_table(found: Outcomes) -> str:
    """Markdown: families that came off alike share a row."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for family in sorted(found):
        signs = tuple(SIGNS[found[family].get(way)] for way in (FOLDER, GGUF))
        alike.setdefault(signs, []).append(family)
    lines = ["| folder | GGUF | families |", "| :-: | :-: | --- |"]
    lines += [f"| {' | '.join(signs)} | {', '.join(names)} |" for signs, names in alike.items()]
    return "\n".join(lines)


def write(document: Path, written: str) -> None:
    """Between its marks."""
    text = document.read_text(encoding="utf-8")
    before, _, rest = text.partition(MARKERS[0])
    _, _, after = rest.partition(MARKERS[1])
    whole = f"{before}{MARKERS[0]}\n{written}\n{MARKERS[1]}{after}"
    document.write_text(whole, encoding="utf-8")


def main(arguments: list[str]) -> None:
    """Write the tables; nothing is run if the one argument is a report."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(arguments[0]) if arguments else Path(folder) / "report.xml"
        if not arguments:
            run_suite(report)
        found = outcomes(report)
        write(DOCUMENT, table(found))
        write(README, short_table(found))


if __name__ == "__main__":
    main(sys.argv[1:])
