"""The examples do what they say."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.runners import NativeRunner, PageRunner
from tests.toy_model import NAME
from tools.files import ROOT

EXAMPLES = ROOT / "examples"
MAX_LINES = 40


def run_example(example: str, *arguments: str) -> list[str]:
    command = [sys.executable, "-m", f"examples.{example}", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_they_are_short_and_listed() -> None:
    listed = (EXAMPLES / "README.md").read_text()
    for path in EXAMPLES.glob("[!_]*"):
        files = [file for file in path.iterdir() if file.is_file()] if path.is_dir() else [path]
        if path.name != "README.md":
            assert f"]({path.name}{'/' if path.is_dir() else ''})" in listed
            assert all(len(file.read_text().splitlines()) <= MAX_LINES for file in files)


def test_a_written_graph(native: NativeRunner) -> None:
    shapes, means = zip(
        *(line.rsplit(" ", 1) for line in run_example("write_a_graph")), strict=True
    )
    assert shapes == ("(100, 8)", "(1, 8)", "(7, 8)")
    assert [float(mean) for mean in means] == pytest.approx([1.0] * 3)


def test_an_exported_module(native: NativeRunner) -> None:
    assert run_example("export_a_module") == [f"(1, {rows}, 4) as torch" for rows in (64, 1, 5)]


def test_a_chat(native: NativeRunner, toy_model: Path) -> None:
    assert "".join(run_example("chat_natively", str(toy_model), "the quick brown fox"))


# Gives what it logs. The toy's weights are random, and it may well have nothing to say.
RUN = """async () => {
  await inpage.unload();
  const {completions} = inpage.chat;
  const {create} = completions;
  const {log} = console;
  const said = [];
  completions.create = (request) =>
    create(request.stream ? {...request, ignore_eos: true} : request);
  console.log = (text) => said.push(text);
  try {
    SCRIPT
  } finally {
    completions.create = create;
    console.log = log;
  }
  return said;
}"""


@pytest.mark.browser
def test_a_script_in_the_page(toy_page: PageRunner) -> None:
    script = (EXAMPLES / "ask_in_the_page.js").read_text().replace("SmolLM2-135M-Instruct", NAME)
    answer, as_json = toy_page.page.evaluate(RUN.replace("SCRIPT", script))
    assert answer
    assert json.loads(as_json).keys() == {"mass"}
