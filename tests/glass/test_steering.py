"""Steering against torch: the same vector, and the same parts zeroed, by hooks."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from export.command import main as export
from export.reference import greedy, hidden_states, last_logits, reference_decoder
from export.sources import HuggingFaceSource, Quantisation
from py_runtime.base.errors import RequestError
from py_runtime.glass.steering import Steering
from py_runtime.model import Model
from tests.adapters.test_applied import CLEAR_MARGIN, close, off
from tests.export.checkpoints import save_checkpoint
from tests.runners import CpuRunner, wait
from tests.toy_model import CONTEXT, NAME

pytestmark = pytest.mark.torch

CASES = "tests.glass.steering_cases"
PROMPT = [5, 100, 7, 200, 31, 8, 250, 9, 44]
STEPS = 8
LAYER = 1


@contextmanager
def hooked(*handles: Any) -> Iterator[None]:
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def with_vector(decoder: Any, layer: int, vector: np.ndarray, strength: float) -> Any:
    added = torch.from_numpy(vector) * strength
    return decoder.layers[layer].register_forward_hook(lambda module, args, out: out + added)


def without(decoder: Any, part: str) -> list[Any]:
    """Zero a part by hooks."""
    kind, _, place = part.partition(" ")
    number, _, index = place.partition(".")
    layer = decoder.layers[int(number)]
    zero: Callable[..., Any] = lambda module, args, out: out * 0  # noqa: E731
    mixer = getattr(layer, layer.mixer)
    if kind == "attention":
        return [mixer.register_forward_hook(zero)]
    if kind == "mlp":
        return [layer.mlp.register_forward_hook(zero)]
    if kind == "layer":
        return [each.register_forward_hook(zero) for each in (mixer, layer.mlp)]
    width = mixer.head_dim if kind == "head" else 1
    rows = slice(int(index) * width, (int(index) + 1) * width)

    def cut(module: Any, args: Any) -> Any:
        x = args[0].clone()
        x[..., rows] = 0
        return (x,)

    read = mixer.o_proj if kind == "head" else layer.mlp.down_proj
    return [read.register_forward_pre_hook(cut)]


def check_steering(
    source: Any, folder: Path, runner: CpuRunner, context: int | None, parts: list[str]
) -> None:
    config = source.decoder_config(context)
    decoder = reference_decoder(source, config)
    vector = np.random.default_rng(1).normal(0, 0.5, config.width).astype(np.float32)
    given = {"where": str(folder), "prompt": PROMPT, "steps": STEPS}
    found = runner.run(CASES, "steered", **given, layer=LAYER, vector=vector, off=parts)
    close(found["plain"], last_logits(decoder, PROMPT), "plain")

    def compare(name: str, *handles: Any) -> None:
        with hooked(*handles):
            close(found[name], last_logits(decoder, PROMPT), name)
            tokens, margins = greedy(decoder, PROMPT, STEPS)
        clear = next((at for at, m in enumerate(margins) if m < CLEAR_MARGIN), STEPS)
        assert clear > 2, "a case that compares next to nothing"
        assert found[f"{name} tokens"][:clear] == tokens[:clear], name
        assert off(found[name], found["plain"]) > 1e-3, f"{name} does next to nothing"

    compare("vector", with_vector(decoder, LAYER, vector, 2.0))
    compare("changed", with_vector(decoder, LAYER, vector, -1.0))
    assert np.array_equal(found["again"], found["changed"]), "rebuilt, as after a lost device"
    close(found["two"], found["plain"], "two that cancel each other")
    for part in parts:
        compare(part, *without(decoder, part))
    assert np.array_equal(found["after"], found["plain"])
    assert found["left"] == 0


def test_the_toy(toy_model: Path, cpu: CpuRunner) -> None:
    source = HuggingFaceSource.open(toy_model.parent / ".checkpoint" / NAME, Quantisation("q4gsw"))
    parts = ["layer 0", "attention 1", "mlp 1", "head 1.2", "neuron 0.3"]
    check_steering(source, toy_model, cpu, CONTEXT, parts)


@pytest.mark.parametrize("family", ["gemma 3", "lfm2", "qwen3.5", "qwen3-moe", "gemma 4"])
def test_each_mixer(family: str, tmp_path: Path, cpu: CpuRunner) -> None:
    checkpoint, folder = tmp_path / "checkpoint", tmp_path / "model"
    save_checkpoint(checkpoint, family)
    assert export([str(checkpoint), "-o", str(folder), "--quant", "none"]) == 0
    source = HuggingFaceSource.open(checkpoint, Quantisation("none"))
    check_steering(source, folder, cpu, None, ["attention 0", "mlp 1"])


def test_vectors_of_two_lists(toy_model: Path, cpu: CpuRunner) -> None:
    source = HuggingFaceSource.open(toy_model.parent / ".checkpoint" / NAME, Quantisation("q4gsw"))
    decoder = reference_decoder(source, source.decoder_config(CONTEXT))
    rng = np.random.default_rng(2)
    lists = [[rng.integers(3, 300, 5 + at).tolist() for at in range(4)] for _ in range(2)]
    found = cpu.run(
        CASES, "built", where=str(toy_model), positive=lists[0], negative=lists[1], layer=LAYER
    )
    rows = [
        np.stack([hidden_states(decoder, p)[f"layers.{LAYER}"] for p in each]) for each in lists
    ]
    wanted = rows[0].mean(0) - rows[1].mean(0)
    close(found["mean last"], wanted, "mean")
    close(found["while steered"], wanted, "steering is off meanwhile")
    middles = (rows[0] + rows[1]) / 2
    _, _, directions = np.linalg.svd(np.concatenate([rows[0] - middles, rows[1] - middles]))
    alike = abs(directions[0] @ found["pca last"]) / np.linalg.norm(found["pca last"])
    assert alike > 0.9999
    assert found["pca last"] @ wanted > 0
    assert off(found["mean mean"], found["mean last"]) > 0.1
    assert found["file"] == {"name": "own", "layer": LAYER, "strength": 3.0}
    assert np.array_equal(found["values"], found["mean last"])


@pytest.mark.parametrize(
    ("part", "text"),
    [
        ("head 0", "no part: write 'layer 3'"),
        ("layer 99", "layer must be an integer from 0 to"),
        ("head 0.99", "layer 0 has .* of them, from 0 on"),
    ],
)
def test_what_is_wrong_is_said(part: str, text: str, toy_model: Path, cpu: CpuRunner) -> None:
    async def run() -> None:
        model = await Model.load(cpu.device, str(toy_model))
        try:
            await Steering.of(model).turn_off(part)
        finally:
            model.unload()

    with pytest.raises(RequestError, match=text):
        wait(run())
