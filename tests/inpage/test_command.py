"""The command `inpage` and the package behind it."""

import subprocess
import sys
from pathlib import Path

import pytest

import inpage
from inpage.command import COMMANDS, main, of_checkout
from tests.runners import NativeRunner, wait
from tools.files import ROOT


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "inpage", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, input="the fox")


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"]])
def test_help_names_every_command(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 0
    told = capsys.readouterr().out
    assert all(f"inpage {name} " in told for name in COMMANDS)


def test_an_unknown_command_is_a_matter_of_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fly"]) == 2
    assert "there is no command 'fly'" in capsys.readouterr().err


def test_the_version_is_the_packages(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"inpage {inpage.__version__}\n"


def test_what_a_wheel_does_not_have_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert of_checkout("not_a_module_of_ours", "the page")([]) == 1
    assert "works from a checkout" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["verify", "api"])
def test_a_bad_model_is_one_line(command: str, native: NativeRunner) -> None:
    done = run(command, "nowhere")
    assert done.returncode == 1
    assert done.stderr.startswith("inpage: nowhere: ")
    assert "Traceback" not in done.stderr


def test_chat_and_verify(toy_model: Path, native: NativeRunner) -> None:
    chatted = run("chat", str(toy_model), "--temperature", "0", "--max-tokens", "4")
    assert chatted.returncode == 0, chatted.stderr
    assert chatted.stdout.strip()
    verified = run("verify", str(toy_model))
    assert verified.returncode == 0, verified.stderr
    assert "layers.0" in verified.stdout


def test_load_and_ask(toy_model: Path, native: NativeRunner) -> None:
    async def ask() -> list[int]:
        model = await inpage.load(str(toy_model))
        try:
            return [token async for token in model.greedy([5, 6, 7], 4)]
        finally:
            model.unload()

    assert len(wait(ask())) == 4


def test_every_public_name_is_there() -> None:
    for name in inpage.__all__:
        assert getattr(inpage, name)
    with pytest.raises(AttributeError, match="has no attribute 'fly'"):
        _ = inpage.fly
