"""`inpage api MODEL --adapter PATH[:STRENGTH]`: answers of the adapted model, and wrong files."""

import json
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest

import inpage
from py_runtime.model import writer
from tests.adapters.written import gguf_adapter, peft_config, random_factors, write_peft
from tests.conftest import START_SECONDS, first_line, running
from tests.runners import wait
from tools.files import ROOT

pytestmark = pytest.mark.torch

WIDTH = 64
PROMPT = "the quick brown fox"
GREEDY: dict[str, Any] = {"temperature": 0, "max_tokens": 8, "ignore_eos": True}
LINEARS = {
    "layers.0.self_attn.q_proj": (WIDTH, WIDTH),
    "layers.1.self_attn.o_proj": (WIDTH, WIDTH),
}
FACTORS = random_factors(LINEARS, 4, 1)


def command(model: Path, *options: str) -> list[str]:
    start = [sys.executable, "-m", "inpage", "api", str(model), "--port", "0", "--device", "cpu"]
    return [*start, *options]


@pytest.fixture(scope="module")
def adapter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_peft(tmp_path_factory.mktemp("adapters") / "own", FACTORS, peft_config(4, 40))


def served(model: Path, *options: str) -> str:
    """Return what a server with these options completes the prompt with."""
    with running(command(model, *options), cwd=ROOT) as process:
        line = first_line(process)
        assert line.startswith("inpage is at http://127.0.0.1:"), line
        body = json.dumps({"prompt": PROMPT, **GREEDY}).encode()
        headers = {"Content-Type": "application/json"}
        address = f"{line.removeprefix('inpage is at ')}/completions"
        request = urllib.request.Request(address, body, headers)
        with urllib.request.urlopen(request, timeout=START_SECONDS) as answer:
            return str(json.load(answer)["choices"][0]["text"])


def completed(model: Path, *adapters: tuple[Path, float]) -> str:
    """Return what `model.complete` says once these are applied."""

    async def ask() -> str:
        loaded = writer(await inpage.load(str(model), device="cpu"))
        try:
            for path, strength in adapters:
                await loaded.adapters.load(str(path), strength)
            return "".join([piece.text async for piece in loaded.complete(PROMPT, **GREEDY)])
        finally:
            loaded.unload()

    return wait(ask())


def test_an_adapter_is_served(toy_model: Path, adapter: Path, tmp_path: Path) -> None:
    """One of PEFT's with a strength of its own, and one in a GGUF file beside it."""
    other = tmp_path / "other.gguf"
    other.write_bytes(gguf_adapter(random_factors(LINEARS, 2, 2), 8, WIDTH // 4))
    plain = completed(toy_model)
    alone = completed(toy_model, (adapter, 2.0))
    both = completed(toy_model, (adapter, 2.0), (other, 1.0))
    assert len({plain, alone, both}) == 3
    assert served(toy_model, "--adapter", f"{adapter}:2") == alone
    assert served(toy_model, "--adapter", f"{adapter}:2", "--adapter", str(other)) == both


WRONG = {
    "a file that is no adapter": ("{model}/config.json", "give a folder of PEFT's"),
    "nothing there": ("{folder}/none", "none/adapter_config.json cannot be read: No such file"),
    "no GGUF file": ("{folder}/text.gguf", "text.gguf is not a GGUF file"),
    "another model's": ("{folder}/wide", "load the model that it was trained for"),
    "too strong": ("{adapter}:1000", "the strength must be a number from -100 to 100"),
}


@pytest.mark.parametrize(("given", "words"), WRONG.values(), ids=WRONG)
def test_what_cannot_be_applied_is_one_line(
    given: str, words: str, toy_model: Path, adapter: Path, tmp_path: Path
) -> None:
    (tmp_path / "text.gguf").write_text("an adapter, honestly")
    wide = random_factors({"layers.0.self_attn.q_proj": (WIDTH, 2 * WIDTH)}, 4, 1)
    write_peft(tmp_path / "wide", wide, peft_config(4, 8))
    path = given.format(model=toy_model, folder=tmp_path, adapter=adapter)
    arguments = command(toy_model, "--adapter", path)
    done = subprocess.run(
        arguments, capture_output=True, text=True, cwd=ROOT, timeout=START_SECONDS
    )
    assert done.returncode == 1
    assert done.stdout == ""
    line = done.stderr.splitlines()[-1]
    assert line.startswith("inpage: ")
    assert words in line
    assert "download the model" not in line
    assert "Traceback" not in done.stderr
