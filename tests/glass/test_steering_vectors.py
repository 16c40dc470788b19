"""Steering vectors of two lists, parts that are off, and both together with adapters."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from export.reference import hidden_states, last_logits, reference_decoder
from export.sources import HuggingFaceSource, Quantisation
from py_runtime.base.errors import RequestError
from py_runtime.folder.plain_safetensors import write_safetensors
from py_runtime.glass.steering_parts import part_edits, parts_of
from py_runtime.glass.steering_vectors import add_vector, read_vector
from py_runtime.glass.workspace import Workspace
from py_runtime.model import Model
from tests.adapters.test_applied import close, off, peft
from tests.adapters.written import merge
from tests.runners import CpuRunner, wait
from tests.toy_model import CONTEXT, NAME

pytestmark = pytest.mark.torch

CASES = "tests.glass.vector_cases"
PROMPT = [5, 100, 7, 200, 31, 8, 250, 9, 44]
LAYER = 1


@pytest.fixture
def decoder(toy_model: Path) -> Any:
    source = HuggingFaceSource.open(toy_model.parent / ".checkpoint" / NAME, Quantisation("q4gsw"))
    return reference_decoder(source, source.decoder_config(CONTEXT))


def test_vectors_of_two_lists(toy_model: Path, decoder: Any, cpu: CpuRunner) -> None:
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


def zeroed(decoder: Any, part: str) -> list[Any]:
    """Zero a part by hooks, and return their handles."""
    kind, _, place = part.partition(" ")
    number, _, index = place.partition(".")
    layer = decoder.layers[int(number)]
    zero: Callable[..., Any] = lambda module, args, out: out * 0  # noqa: E731
    if kind in ("attention", "mlp", "layer"):
        modules = {"attention": [layer.self_attn], "mlp": [layer.mlp]}
        chosen = modules.get(kind, [layer.self_attn, layer.mlp])
        return [each.register_forward_hook(zero) for each in chosen]
    width = layer.self_attn.head_dim if kind == "head" else 1
    columns = slice(int(index) * width, (int(index) + 1) * width)

    def cut(module: Any, args: Any) -> Any:
        x = args[0].clone()
        x[..., columns] = 0
        return (x,)

    read = layer.self_attn.o_proj if kind == "head" else layer.mlp.down_proj
    return [read.register_forward_pre_hook(cut)]


def test_parts_that_are_off(toy_model: Path, decoder: Any, cpu: CpuRunner) -> None:
    parts = ["layer 0", "attention 1", "mlp 1", "head 1.2", "neuron 0.3"]
    found = cpu.run(CASES, "without", where=str(toy_model), prompt=PROMPT, parts=parts)
    for part in parts:
        handles = zeroed(decoder, part)
        close(found[part], last_logits(decoder, PROMPT), part)
        for handle in handles:
            handle.remove()
        assert off(found[part], found["plain"]) > 1e-4, f"{part} does nothing"
    assert np.array_equal(found["after"], found["plain"])
    assert found["left"] == 0


def test_adapters_and_vectors_together(toy_model: Path, decoder: Any, cpu: CpuRunner) -> None:
    given = peft(decoder, 0.5, 4, "q_proj", "v_proj", "down_proj")
    width = decoder.config.width
    vector = np.random.default_rng(1).normal(0, 0.5, width).astype(np.float32)
    found = cpu.run(
        CASES,
        "with_adapter",
        where=str(toy_model),
        prompt=PROMPT,
        files=given.files,
        layer=LAYER,
        vector=vector,
    )

    def logits(strength: float) -> np.ndarray:
        added = torch.from_numpy(vector) * strength
        handle = decoder.layers[LAYER].register_forward_hook(lambda module, args, out: out + added)
        wanted = last_logits(decoder, PROMPT)
        handle.remove()
        return wanted

    close(found["plain"], logits(0), "plain")
    close(found["vector"], logits(2), "a vector")
    close(found["strength 0"], logits(2), "an adapter at strength 0")
    merge(decoder, given.factors, 0.5 * given.scale)
    close(found["adapter"], logits(0), "an adapter")
    for name in ("both", "other way round", "rebuilt"):
        close(found[name], logits(2), name)
    close(found["vector 0"], logits(0), "a vector at strength 0")
    assert np.array_equal(found["after"], found["plain"])
    assert len(found["contrasted"]) == 4
    assert found["left"] == 0


def test_what_parts_there_are(toy_model: Path, cpu: CpuRunner) -> None:
    async def run() -> None:
        model = await Model.load(cpu.device, str(toy_model))
        points = Workspace.of(model).points
        assert parts_of(points, 0) == {
            "layer": 1,
            "attention": 1,
            "mlp": 1,
            "head": 4,
            "neuron": 160,
        }
        faults = {
            "head 0": "no part: write 'layer 3'",
            "layer 99": "this model has no 'layer 99'",
            "head 0.99": "layer 0 has 4 of them, from 0 on",
        }
        for part, text in faults.items():
            with pytest.raises(RequestError, match=text):
                part_edits(points, part)
        model.unload()

    wait(run())


FACTS = {"format": "inpage-steering", "layer": "0", "strength": "1"}
UNREADABLE: dict[str, tuple[dict[str, str], str]] = {
    "another file": ({"format": "pt"}, "holds no steering vector of inpage"),
    "no layer": ({"layer": ""}, "does not say its layer and strength"),
    "digits without end": ({"layer": "9" * 5000}, "does not say its layer and strength"),
}


@pytest.mark.parametrize(("facts", "text"), UNREADABLE.values(), ids=UNREADABLE)
def test_files_that_hold_no_vector(facts: dict[str, str], text: str) -> None:
    data = write_safetensors({"vector": np.ones(4, np.float32)}, FACTS | facts)
    with pytest.raises(RequestError, match=text):
        read_vector(data, "x.safetensors")


def test_vectors_that_would_steer_by_no_number(toy_model: Path, cpu: CpuRunner) -> None:
    async def run() -> None:
        model = await Model.load(cpu.device, str(toy_model))
        width = Workspace.of(model).anatomy.width
        faults: list[tuple[Any, float, str]] = [
            (np.zeros((0, width)), 1, r"is \[0, 64\]; it must be \[64\]"),
            (np.float32(1), 1, r"is \[1\]; it must be"),
            (np.full(width, 1e38), 1, "not finite, or beyond 1e\\+30"),
            (np.full(width, np.nan), 1, "not finite, or beyond"),
            (np.ones(width), 1e300, "strength must be 1e\\+06 at most"),
            (np.ones(width), 10**400, "strength must be 1e\\+06 at most"),
            (np.ones(width), float("nan"), "strength must be 1e\\+06 at most"),
        ]
        for vector, strength, text in faults:
            with pytest.raises(RequestError, match=text):
                await add_vector(model, "tone", LAYER, vector, strength)
        assert model.overlay is None
        model.unload()

    wait(run())
