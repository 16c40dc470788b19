"""Adapters on weights of every kind, against torch with the same adapter merged."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from export.command import main as export
from export.gguf_source import GgufSource
from export.reference import greedy, last_logits, reference_decoder
from export.sources import HuggingFaceSource, Quantisation, Source
from py_runtime.folder.plain_safetensors import write_safetensors
from tests.adapters.written import (
    Factors,
    gguf_adapter,
    merge,
    peft_config,
    peft_tensors,
    random_factors,
)
from tests.export.checkpoints import save_checkpoint
from tests.gguf.mixes import HEAD_DIM, MIXES, write
from tests.runners import CpuRunner, Runner

pytestmark = pytest.mark.torch

STEPS = 10
PROMPT = [5, 100, 7, 200, 31, 8, 250, 9, 44]
CLEAR_MARGIN = 1e-3  # below it torch's own next token is a coin's toss
MOST_OFF = 1e-4  # relative RMS
EVERYTHING = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


@dataclass
class Given:
    """An adapter to be applied, and what torch adds for it."""

    files: dict[str, np.ndarray]
    strength: float
    factors: Factors
    scale: float

    def as_argument(self) -> dict[str, Any]:
        return {"files": self.files, "strength": self.strength}


def linears_of(decoder: torch.nn.Module, endings: tuple[str, ...]) -> dict[str, tuple[int, int]]:
    found = {}
    for name, values in {
        **dict(decoder.named_parameters()),
        **dict(decoder.named_buffers()),
    }.items():
        owner = name.removesuffix(".weight")
        if owner.endswith(endings) and values.ndim == 2:
            found[owner] = (values.shape[0], values.shape[1])
    return found


def peft(decoder: torch.nn.Module, strength: float, rank: int, *endings: str, **more: Any) -> Given:
    factors = random_factors(linears_of(decoder, endings), rank, rank)
    config = peft_config(rank, 2 * rank, **more)
    scale = 2 * rank**0.5 if more.get("use_rslora") else 2.0
    files = {
        "adapter_config.json": as_array(json.dumps(config).encode()),
        "adapter_model.safetensors": as_array(write_safetensors(peft_tensors(factors))),
    }
    return Given(files, strength, factors, scale)


def gguf(decoder: torch.nn.Module, strength: float, rank: int, *endings: str) -> Given:
    factors = random_factors(linears_of(decoder, endings), rank, rank)
    data = gguf_adapter(factors, rank / 2, HEAD_DIM)
    return Given({"own.gguf": as_array(data)}, strength, factors, 0.5)


def as_array(data: bytes) -> np.ndarray:
    return np.frombuffer(data, np.uint8)


def check(source: Source, given: list[Given], runner: Runner, **model: Any) -> None:
    """Compare with torch at the strengths given, and at twice as much."""
    config = source.decoder_config(None)
    arguments = [each.as_argument() for each in given]
    found = runner.run(
        "tests.adapters.in_runtime",
        "adapted",
        prompt=PROMPT,
        steps=STEPS,
        adapters=arguments,
        **model,
    )
    decoder = reference_decoder(source, config)
    close(found["plain"], last_logits(decoder, PROMPT), "without adapters")
    for tokens, logits in (("tokens", "logits"), ("doubled_tokens", "doubled")):
        for each in given:
            merge(decoder, each.factors, each.strength * each.scale)
        close(found[logits], last_logits(decoder, PROMPT), logits)
        wanted, margins = greedy(decoder, PROMPT, STEPS)
        clear = next((at for at, margin in enumerate(margins) if margin < CLEAR_MARGIN), STEPS)
        assert clear > 3, "a case that compares next to nothing"
        assert found[tokens][:clear] == wanted[:clear]
    assert np.array_equal(found["again"], found["doubled"]), "rebuilt, as after a lost device"
    close(found["without"], found["plain"], "at strength 0")
    assert np.array_equal(found["removed"], found["plain"])
    assert off(found["logits"], found["plain"]) > 0.01, "an adapter that does next to nothing"
    assert found["left"] == 0


def off(found: np.ndarray, wanted: np.ndarray) -> float:
    difference = found.astype(np.float64).reshape(-1) - wanted.astype(np.float64).reshape(-1)
    return float(np.sqrt((difference**2).mean() / (wanted.astype(np.float64) ** 2).mean()))


def close(found: np.ndarray, wanted: np.ndarray, what: str) -> None:
    assert off(found, wanted) < MOST_OFF, f"{what}: {off(found, wanted):.2e}"


Making = Callable[[torch.nn.Module], list[Given]]

MAKINGS: dict[str, Making] = {
    "everything, of PEFT": lambda decoder: [peft(decoder, 0.7, 8, *EVERYTHING)],
    "of GGUF": lambda decoder: [gguf(decoder, 1.5, 4, *EVERYTHING)],
    "two at once": lambda decoder: [
        peft(decoder, 0.5, 3, "q_proj", "v_proj", use_rslora=True),
        gguf(decoder, -1.0, 8, "k_proj", "down_proj", "q_proj"),
    ],
}


@pytest.mark.parametrize("mix", ["Q8_0", "Q4_K_M"])
@pytest.mark.parametrize("making", MAKINGS)
def test_a_gguf_with_adapters(making: str, mix: str, tmp_path: Path, cpu: CpuRunner) -> None:
    check_gguf("llama", mix, making, tmp_path, cpu)


@pytest.mark.parametrize("mix", ["F16", "dynamic"])
@pytest.mark.parametrize("family", ["qwen2", "qwen3"])
@pytest.mark.thorough
def test_other_families(family: str, mix: str, tmp_path: Path, cpu: CpuRunner) -> None:
    check_gguf(family, mix, "everything, of PEFT", tmp_path, cpu)


@pytest.mark.gpu
@pytest.mark.thorough_in_page
def test_on_a_gpu_and_in_the_page(tmp_path: Path, runner: Runner) -> None:
    check_gguf("llama", "Q4_K_M", "two at once", tmp_path, runner)


def check_gguf(family: str, mix: str, making: str, folder: Path, runner: Runner) -> None:
    path = folder / "x.gguf"
    path.write_bytes(write(family, MIXES[mix]))
    source = GgufSource.open(path, Quantisation("none"))
    given = MAKINGS[making](reference_decoder(source, source.decoder_config(None)))
    check(source, given, runner, data=as_array(path.read_bytes()))


@pytest.mark.parametrize(
    ("family", "quantisation"),
    [("smollm2", "none"), ("smollm2", "q4gsw"), ("qwen2.5", "q4gsw"), ("phi-3.5", "none")],
)
def test_a_folder_with_adapters(
    family: str, quantisation: str, tmp_path: Path, cpu: CpuRunner
) -> None:
    checkpoint, folder = tmp_path / "checkpoint", tmp_path / "model"
    save_checkpoint(checkpoint, family)
    how = ["--quant", quantisation]
    assert export([str(checkpoint), "-o", str(folder), *how]) == 0
    source = HuggingFaceSource.open(checkpoint, Quantisation(quantisation))
    decoder = reference_decoder(source, source.decoder_config(None))
    check(source, [peft(decoder, 0.7, 6, *EVERYTHING)], cpu, where=str(folder))
