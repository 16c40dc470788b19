"""The command `inpage` and the package behind it."""

import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

import inpage
from inpage import command
from inpage.command import COMMANDS, in_checkout, main
from py_runtime.base.defaults import DEVICE_VARIABLE
from py_runtime.base.messages import message
from py_runtime.model import Model, writer
from py_runtime.model.cache_type import MEMORY, CacheType
from tests.pte.counting import doubling
from tests.runners import NativeRunner, in_a_thread, wait
from tools.files import ROOT


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "inpage", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, input="the fox")


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"]])
def test_help_names_every_command(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 0
    told = capsys.readouterr().out
    assert all(f"\ninpage {name} " in told for name in COMMANDS)
    assert set(COMMANDS) == {"chat", "api", "serve", "export", "inspect", "verify"}


def test_an_unknown_command_is_a_matter_of_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fly"]) == 2
    assert "there is no command 'fly'" in capsys.readouterr().err


def test_the_version_is_the_packages(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"inpage {inpage.__version__}\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_a_command_calls_it_by_its_name(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="0"):
        main([name, "--help"])
    assert capsys.readouterr().out.startswith(f"usage: inpage {name} ")


@pytest.mark.parametrize("name", ["serve", "export"])
def test_what_a_wheel_does_not_have_says_so(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Even beside a module of somebody else that has the same name."""
    monkeypatch.setattr(command, "CHECKOUT", tmp_path)
    assert main([name]) == 1
    told = capsys.readouterr().err
    assert told == f"inpage: `inpage {name}` only works in a checkout of inpage\n"


def test_a_checkout_without_the_packages_says_what_to_run(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert in_checkout("export", "not_a_module_of_ours")([]) == 1
    assert capsys.readouterr().err == (
        "inpage: not_a_module_of_ours is missing: run `make setup`\n"
    )


@pytest.mark.parametrize("name", ["chat", "api"])
def test_a_bad_draft_is_one_line(name: str, toy_model: Path) -> None:
    done = run(name, str(toy_model), "--draft", "nowhere", "--device", "cpu")
    assert done.returncode == 1
    said = "the draft cannot be loaded: there is no model in nowhere"
    assert said in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("name", ["chat", "inspect", "verify", "api"])
def test_a_bad_model_is_one_line(name: str, native: NativeRunner) -> None:
    done = run(name, "nowhere")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("inpage: nowhere: ")
    assert "Traceback" not in done.stderr


def test_chat_and_verify(toy_model: Path, native: NativeRunner) -> None:
    chatted = run("chat", str(toy_model), "--temperature", "0", "--max-tokens", "4")
    assert chatted.returncode == 0, chatted.stderr
    assert chatted.stdout.strip()
    verified = run("verify", str(toy_model))
    assert verified.returncode == 0, verified.stderr
    assert "layers.0" in verified.stdout


SHORTLY = ("--temperature", "0", "--max-tokens", "4")


def test_chat_on_the_processor(
    toy_model: Path, native: NativeRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The software adapter here is not chosen; where it is asked for, it says the same."""
    on_gpu = run("chat", str(toy_model), *SHORTLY, "--device", "gpu")
    monkeypatch.delenv(DEVICE_VARIABLE)
    asked = run("chat", str(toy_model), *SHORTLY, "--device", "cpu", "--threads", "1")
    assert " on your processor (1 thread)]" in asked.stderr
    chosen = run("chat", str(toy_model), *SHORTLY, "--draft", str(toy_model))
    assert " on your processor (" in chosen.stderr
    assert " on your processor (" not in on_gpu.stderr
    assert asked.stdout == chosen.stdout == on_gpu.stdout != ""


def test_verify_on_the_processor(toy_model: Path) -> None:
    verified = run("verify", str(toy_model), "--device", "cpu")
    assert verified.returncode == 0, verified.stderr
    assert "This processor computes this model as PyTorch does" in verified.stdout


def test_a_device_that_cannot_be_is_refused(toy_model: Path) -> None:
    refused = run("chat", str(toy_model), "--device", "gpu", "--threads", "2")
    assert refused.returncode == 1
    assert refused.stderr.endswith("threads are for the device 'cpu'\n")
    assert run("verify", str(toy_model), "--device", "tpu").returncode == 2


def test_inspecting_a_folder(toy_model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert in_a_thread(main, ["inspect", str(toy_model)]) == 0
    shown = capsys.readouterr().out
    for words in ("M parameters", "weights-00001", "memory: ", "tokens: i64 [1, 1..", "ops"):
        assert words in shown


def test_inspecting_a_folder_with_an_executorch_program(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "model.pte").write_bytes(doubling())
    assert in_a_thread(main, ["inspect", str(tmp_path)]) == 0
    assert "**It can be loaded.**" in capsys.readouterr().out


def test_load_and_ask(toy_model: Path, native: NativeRunner) -> None:
    async def ask() -> list[int]:
        model = writer(await inpage.load(str(toy_model)))
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


def test_a_server_says_that_memory_is_short(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said = message("caches_in_less", name="Toy", kv="q8", usual="f32")
    model = object.__new__(Model)
    model.caches = CacheType("q8", MEMORY, said)

    async def loaded(*_: object, **__: object) -> Model:
        return model

    async def serve(load: Callable[[], Awaitable[Model]], *_: object) -> int:
        assert await load() is model
        return 0

    monkeypatch.setattr(inpage, "load", loaded)
    monkeypatch.setattr("inpage.http_api.serve_api", serve)
    assert in_a_thread(main, ["api", "Toy"]) == 0
    assert "Toy keeps its context as q8 instead of f32" in capsys.readouterr().err
