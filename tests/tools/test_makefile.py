"""The first things a newcomer meets: prerequisites, the list of commands, npm's packages."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from py_runtime import __version__
from tools.files import ROOT
from tools.pyodide_dist import VERSION

# The wheel, or the package of npm.
RELEASED_FILE = re.compile(r"inpage-(\d[\w.]*)(?:-py3-none-any\.whl|\.tgz)")
TEXT_SUFFIXES = {".html", ".json", ".md", ".py", ".ts"}


def make(*arguments: str, path: str | None = None) -> subprocess.CompletedProcess[str]:
    program = shutil.which("make")
    assert program
    environment = {**os.environ, "PATH": path or os.environ["PATH"]}
    return subprocess.run(
        [program, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True
    )


def own_lines(outcome: subprocess.CompletedProcess[str]) -> list[str]:
    """Return the errors, without make's own closing line."""
    return [line for line in outcome.stderr.splitlines() if not line.startswith("make")]


def put_program(folder: Path, name: str, script: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


@pytest.fixture
def bin_folder(tmp_path: Path) -> Path:
    """Make a PATH with the usual tools, this Python, and no Node."""
    for name in ("sh", "find", "awk"):
        program = shutil.which(name)
        assert program
        (tmp_path / name).symlink_to(program)
    put_program(tmp_path, "python3", f'exec "{sys.executable}" "$@"')
    return tmp_path


def test_help_is_what_make_alone_says() -> None:
    outcome = make()
    assert outcome.returncode == 0
    commands = (
        "setup",
        "serve",
        "check",
        "test",
        "test-all",
        "test-llama-cpp",
        "lint",
        "mutants",
        "package",
        "lock",
        "build",
        "clean",
        "clean-cache",
    )
    for command in commands:
        assert f"make {command} " in outcome.stdout


def test_all_prerequisites_there() -> None:
    outcome = make("prerequisites", f"PYTHON={sys.executable}")
    assert (outcome.returncode, own_lines(outcome)) == (0, [])


def test_no_python() -> None:
    outcome = make("prerequisites", "PYTHON=no-such-python")
    assert outcome.returncode != 0
    assert own_lines(outcome) == [
        "inpage needs Python 3.11 or newer, but no-such-python is not there; "
        "say which with PYTHON=/path/to/python"
    ]


def test_an_old_python(bin_folder: Path) -> None:
    put_program(bin_folder, "python3", '[ "$1" = --version ] && echo "Python 3.9.2" || exit 1')
    outcome = make("serve", "PYTHON=python3", path=str(bin_folder))
    assert own_lines(outcome) == [
        "inpage needs Python 3.11 or newer, but python3 is Python 3.9.2; "
        "say which with PYTHON=/path/to/python"
    ]


@pytest.mark.parametrize(("node", "found"), [(None, "not there"), ("v18.20.0", "v18.20.0")])
def test_no_node_or_an_old_one(bin_folder: Path, node: str | None, found: str) -> None:
    if node:
        put_program(bin_folder, "node", f'[ "$1" = --version ] && echo {node} || exit 1')
    outcome = make("setup", "PYTHON=python3", path=str(bin_folder))
    assert outcome.returncode != 0
    assert own_lines(outcome) == [
        f"inpage needs Node 20 or newer, but node is {found}; see https://nodejs.org"
    ]


def steps_of(target: str) -> str:
    """Return what make would run in a fresh clone."""
    outcome = make("--dry-run", "--always-make", target, f"PYTHON={sys.executable}")
    assert outcome.returncode == 0, outcome.stderr
    return outcome.stdout


@pytest.mark.parametrize("target", ["check", "lint"])
def test_style_and_types_need_nothing_built_and_no_torch(target: str) -> None:
    steps = steps_of(target)
    assert "'.[server,dev]'" in steps
    assert "-m mypy" in steps
    for absent in ("export]", "tools.prepare", "inpage export"):
        assert absent not in steps


def test_everything_is_built_before_every_test() -> None:
    steps = steps_of("test")
    page, models = re.finditer("tools.prepare.*", steps)
    assert page[0] == "tools.prepare page"
    exported = steps.index("inpage export default")
    assert exported < models.start() < steps.index("-m pytest")


def prerequisites_of(target: str) -> set[str]:
    database = make("--print-data-base", "--dry-run", "help").stdout
    (rule,) = re.findall(rf"^{re.escape(target)}: (.*)", database, re.MULTILINE)
    return set(rule.split())


def test_the_default_model_is_made_anew_after_a_change_to_what_decides_it() -> None:
    deciding = prerequisites_of("models/SmolLM2-135M-Instruct/manifest.json")
    for room in ("export", "py_runtime/decoder", "py_runtime/gguf", "py_runtime/program"):
        files = [path.relative_to(ROOT).as_posix() for path in (ROOT / room).rglob("*.py")]
        assert set(files) - deciding == set()
    assert {"export/sample.txt", "py_runtime/graph/buffers.py"} <= deciding
    assert "py_runtime/ops/rms_norm.py" not in deciding


def test_ci_runs_what_a_developer_runs() -> None:
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert script.read_text().splitlines()[-1] == "exec make --jobs 2 lint test-all"


def test_the_version_is_said_in_one_place() -> None:
    for package in ("package.json", "bench/package.json"):
        assert "version" not in json.loads((ROOT / package).read_text())
    assert f"## {__version__} " in (ROOT / "CHANGELOG.md").read_text()


def test_what_people_are_told_to_install_is_of_this_version() -> None:
    texts = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    for pattern in ("*", "*/*"):  # deeper lies what npm installs for whoever tries them
        files = (ROOT / "examples").glob(pattern)
        texts += [path for path in files if path.suffix in TEXT_SUFFIXES]
    named = {
        path.relative_to(ROOT).as_posix(): set(versions)
        for path in texts
        if (versions := RELEASED_FILE.findall(path.read_text(encoding="utf-8")))
    }
    examples = {"examples/chat_in_pyscript.html", "examples/with_vite/package.json"}
    assert {"README.md", *examples} <= named.keys()
    assert [name for name, versions in named.items() if versions != {__version__}] == []


def test_the_lock_of_npm_pins_pyodide() -> None:
    packages = json.loads((ROOT / "package-lock.json").read_text())["packages"]
    assert packages["node_modules/pyodide"]["version"] == VERSION


@pytest.mark.parametrize("folder", [".", "tests/llama_cpp", "tests/reach"])
def test_every_package_of_npm_is_pinned_and_no_registry_named(folder: str) -> None:
    package = json.loads((ROOT / folder / "package.json").read_text())
    versions = [*package["dependencies"].values(), *package.get("devDependencies", {}).values()]
    assert all(version.replace(".", "").isdigit() for version in versions)
    packages = json.loads((ROOT / folder / "package-lock.json").read_text())["packages"]
    for name, locked in packages.items():
        assert "resolved" not in locked
        assert name == "" or locked["integrity"].startswith("sha512-")
