"""The workflows of the public forge: they parse, and all that they run and read exists."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.tools.test_makefile import make, steps_of
from tools.files import ROOT

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TRIGGERS = True  # YAML 1.1 reads the key "on" as a boolean


def read(path: Path) -> dict[Any, Any]:
    workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert isinstance(workflow, dict)
    return workflow


def steps_in(workflow: dict[Any, Any]) -> list[dict[str, Any]]:
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_is_whole(path: Path) -> None:
    workflow = read(path)
    assert workflow[TRIGGERS]
    assert workflow["permissions"] == {"contents": "read"}, "jobs ask for what else they need"
    for job in workflow["jobs"].values():
        assert job["timeout-minutes"]
        assert {job.get("needs")} <= {None, *workflow["jobs"]}
    for step in steps_in(workflow):
        assert ("run" in step) != ("uses" in step)
        assert "uses" not in step or re.fullmatch(r"actions/[\w-]+@v\d+", step["uses"])


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_runs_make_targets_and_reads_files_that_exist(path: Path) -> None:
    scripts = [step["run"] for step in steps_in(read(path)) if "run" in step]
    assert scripts
    for script in scripts:
        for arguments in re.findall(r"^make (.*)", script, re.MULTILINE):
            outcome = make("--dry-run", *arguments.split())
            assert outcome.returncode == 0, outcome.stderr
        for program in re.findall(r"^\.\S+", script, re.MULTILINE):
            assert (ROOT / program).is_file()
    text = path.read_text(encoding="utf-8")
    named = re.findall(r"cache-dependency-path: (\S+)", text)
    for hashed in re.findall(r"hashFiles\((.*?)\)", text):
        named += re.findall(r"'([^']+)'", hashed)
    assert "requirements.lock" in named
    assert [name for name in named if not (ROOT / name).is_file()] == []


def test_the_repositorys_page_is_the_static_build() -> None:
    workflow = read(ROOT / ".github" / "workflows" / "pages.yml")
    build, deploy = workflow["jobs"]["build"], workflow["jobs"]["deploy"]
    (script,) = [step["run"] for step in build["steps"] if "run" in step]
    (upload,) = [step for step in build["steps"] if "upload-pages-artifact" in step.get("uses", "")]
    assert f'inpage serve build "{upload["with"]["path"]}"' in steps_of("build")
    assert script == "make build"
    assert deploy["needs"] == "build"
    assert deploy["permissions"] == {"pages": "write", "id-token": "write"}
