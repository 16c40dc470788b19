"""Passes on whole decoders: the same numbers from fewer kernels."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from export.decoder_graph import export_decoder
from export.sources import HuggingFaceSource, Quantisation
from py_runtime.passes import DEFAULT_PASSES
from py_runtime.program.json_format import dump_program
from tests.export.checkpoints import save_checkpoint
from tests.export.family_configs import SIZES
from tests.golden import Tolerance, compare
from tests.runners import NativeRunner

pytestmark = pytest.mark.torch

NOISE = Tolerance(1e-3, 1e-5)  # float32 sums in another order
LIMBS = Tolerance(1e-3, 1e-4)  # the same, cut at 15 bits before they are multiplied
# Tokens and their position: many and one, at odd positions, back to many, over what was there.
CALLS = ((20, 0), (1, 20), (1, 21), (7, 22), (1, 29), (33, 30), (1, 63), (20, 0), (1, 5), (2, 6))
OUTSIDE_LAYERS = 4  # embedding, last token, last norm, head
FAMILIES = {"llama 3": "q4", "qwen2.5": "q4gsw", "qwen3": "q8", "llama with biases": "none"}
# Dispatches of a layer: [norm + q, k, v + rotary + caches], [attention], [its reduction],
# [output + residual], [norm + gate, up], [down + residual]; norms of heads are one more.
OF_A_LAYER = {"llama 3": 6, "qwen2.5": 6, "qwen3": 7, "llama with biases": 6}


@dataclass
class Decoder:
    program: str
    constants: dict[str, np.ndarray]
    calls: list[list[Any]]

    def run(self, runner: NativeRunner, target: str, passes: list[int] | None = None) -> Any:
        return runner.run(
            "tests.passes.in_runtime",
            "run_with_passes",
            program=self.program,
            constants=self.constants,
            calls=self.calls,
            target=target,
            passes=passes,
        )


@pytest.fixture(scope="module")
def decoders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Decoder]:
    return {family: make(family, tmp_path_factory.mktemp("checkpoint")) for family in FAMILIES}


def make(family: str, folder: Path) -> Decoder:
    save_checkpoint(folder, family)
    source = HuggingFaceSource.open(folder, Quantisation(FAMILIES[family]))
    graph = export_decoder(source, source.decoder_config(64))
    found = source.constants(graph.config, graph.constants)
    rng = np.random.default_rng(0)
    calls = [
        [rng.integers(0, SIZES["vocab_size"], (1, tokens)), np.array([position])]
        for tokens, position in CALLS
    ]
    constants = {name: np.asarray(give()) for name, give in found.items()}
    return Decoder(dump_program(graph.program), constants, calls)


TARGETS = ("alone", "shared", "subgroups", "memory")
# Each once; tests of families compare fused kernels with transformers, of ops each with torch.
PAIRS = [*zip(FAMILIES, ("shared", "memory", "alone", "subgroups"), strict=True)]


@pytest.mark.parametrize(("family", "target"), PAIRS)
def test_fused_equals_unfused(
    decoders: dict[str, Decoder], native: NativeRunner, family: str, target: str
) -> None:
    plain = decoders[family].run(native, target, passes=[])
    fused = decoders[family].run(native, target)
    for number, (got, wanted) in enumerate(zip(fused["outputs"], plain["outputs"], strict=True)):
        near = LIMBS if target in ("subgroups", "memory") else NOISE
        compare(f"call {number}", got[0], wanted[0].astype(np.float64), near)
    assert not [name for name in fused["ops"] if "rotary_emb" in name or "silu" in name]
    assert fused["constant bytes"] == plain["constant bytes"]
    for (tokens, _), few, many in zip(CALLS, fused["dispatches"], plain["dispatches"], strict=True):
        of_a_layer = (few - OUTSIDE_LAYERS) / SIZES["num_hidden_layers"]
        assert few < many
        if tokens == 1 and target != "alone":  # kernels of many buffers, which not all can bind
            assert of_a_layer <= OF_A_LAYER[family]
        if tokens == 1:
            assert of_a_layer <= 8


@pytest.mark.parametrize("place", range(len(DEFAULT_PASSES)))
def test_each_pass_can_be_left_out(
    decoders: dict[str, Decoder], native: NativeRunner, place: int
) -> None:
    decoder = decoders["llama 3"]
    plain = decoder.run(native, "shared", passes=[])
    others = [other for other in range(len(DEFAULT_PASSES)) if other != place]
    for passes in ([place], others):
        some = decoder.run(native, "shared", passes=passes)
        for number, (got, wanted) in enumerate(zip(some["outputs"], plain["outputs"], strict=True)):
            compare(f"call {number}", got[0], wanted[0].astype(np.float64), NOISE)
