"""`inpage chat MODEL --adapter PATH[:STRENGTH]`."""

import subprocess
import sys
from pathlib import Path

import pytest

from inpage.command import adapter_of
from tests.adapters.written import peft_config, random_factors, write_peft

pytestmark = pytest.mark.torch

WIDTH = 64


def chat(model: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "inpage", "chat", str(model), "--device", "cpu"]
    command += ["--temperature", "0", "--repetition-penalty", "1", "--max-tokens", "8"]
    return subprocess.run([*command, *options], input="Hello", capture_output=True, text=True)


def test_an_answer_with_an_adapter(toy_model: Path, tmp_path: Path) -> None:
    linears = {"layers.0.self_attn.q_proj": (WIDTH, WIDTH), "layers.1.self_attn.o_proj": (64, 64)}
    folder = write_peft(tmp_path / "own", random_factors(linears, 4, 1), peft_config(4, 40))
    plain, same, changed = (
        chat(toy_model, *options)
        for options in ((), ("--adapter", f"{folder}:0"), ("--adapter", f"{folder}:2"))
    )
    assert plain.returncode == same.returncode == changed.returncode == 0, changed.stderr
    assert plain.stdout == same.stdout
    assert plain.stdout != changed.stdout
    missing = chat(toy_model, "--adapter", str(tmp_path / "none"))
    assert missing.returncode == 1
    assert "adapter_config.json" in missing.stderr
    assert "Traceback" not in missing.stderr


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("a/b", ("a/b", 1.0)),
        ("a/b:0.5", ("a/b", 0.5)),
        ("a/b.gguf:-1", ("a/b.gguf", -1.0)),
        ("C:\\own", ("C:\\own", 1.0)),
    ],
)
def test_paths_with_strengths(given: str, wanted: tuple[str, float]) -> None:
    assert adapter_of(given) == wanted
