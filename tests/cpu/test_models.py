"""Whole models on the CPU: torch's logits and tokens, every mixer, embeddings and verify."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gguf import GGMLQuantizationType as Kind
from safetensors.numpy import load_file

from export.decoder import Decoder
from export.decoder_graph import DecoderGraph
from export.sources import HuggingFaceSource
from tests.default_model import test_goldens as default
from tests.export import test_families as families
from tests.gguf.mixes import MIXES
from tests.gguf.test_mixes import check as check_mix
from tests.gguf.test_models import CASES, check_tokens
from tests.golden import TWO_PLANES, Tolerance
from tests.graph.test_probes import (  # noqa: F401  (what tests ask for)
    check_every_layer,
    decoder,
    graph,
    source,
)
from tests.model.test_embed import (  # noqa: F401  (tests)
    test_hidden_states_are_torchs,
    test_requests_in_openais_shapes,
    test_vectors_are_those_of_transformers,
)
from tests.model.test_verify import (  # noqa: F401  (tests and what they ask for)
    check_reports,
    model,
    test_another_token_counts_where_torch_was_sure,
    test_it_can_be_cancelled_and_the_model_goes_on,
    test_no_numbers_are_a_difference,
    test_one_wrong_number_among_many_is_seen,
)
from tests.runners import CpuRunner, PlacedToy
from tests.toy_model import TOKENS, greedy_of

pytestmark = pytest.mark.torch

# Attention, convolutions, delta nets, Mamba and experts; windows, sinks and rows of their own.
MIXERS = (
    *("phi-4-mini", "lfm2", "qwen3.5", "qwen3-moe", "gemma 4", "gpt-oss", "granite 4 moe"),
    "granite 4 h",
)
DEFAULT = "tests.default_model.in_runtime"
LENGTHS, PROMPTS = (1, 7, 64, 300), range(5)
STEPS = 16
BY_INTEGERS = Tolerance(1e-3, TWO_PLANES)


@pytest.fixture
def toy(cpu: CpuRunner, toy_model: Path) -> PlacedToy:
    return PlacedToy(cpu, str(toy_model))


def test_greedy_tokens_of_the_toy(cpu: CpuRunner, toy_model: Path) -> None:
    greedy = greedy_of(toy_model)
    case: dict[str, Any] = {"where": str(toy_model), "greedy": [greedy.prompt], "steps": TOKENS}
    (found,) = cpu.run(DEFAULT, "compute_goldens", prompts=[], **case)["continuations"]
    assert found.tolist() == greedy.tokens


@pytest.mark.timeout(900)
def test_the_default_model(cpu: CpuRunner) -> None:
    goldens = load_file(default.FOLDER / "goldens.safetensors")
    found = cpu.run(
        DEFAULT,
        "compute_goldens",
        where=str(default.FOLDER),
        prompts=[goldens[f"tokens_{length}"].tolist() for length in LENGTHS],
        greedy=[goldens[f"prompt_{number}"].tolist() for number in PROMPTS],
        steps=STEPS,
    )
    # The later prompts begin with the first ones, whose few tokens were products of integers.
    for length, logits in zip(LENGTHS, found["logits"], strict=True):
        error = families.error_of(logits, goldens[f"logits_{length}"].astype(np.float64))
        assert error <= 2.5e-4
    for number, tokens in zip(PROMPTS, found["continuations"], strict=True):
        assert tokens.tolist() == goldens[f"continuation_{number}"][:STEPS].tolist()
    assert "gravity" in found["text"].lower()


def test_verify_tells_sound_from_spoilt(toy: PlacedToy) -> None:
    check_reports(toy, near=TWO_PLANES)


def test_every_layer_is_torchs(
    source: HuggingFaceSource,  # noqa: F811  (a fixture)
    graph: DecoderGraph,  # noqa: F811  (a fixture)
    decoder: Decoder,  # noqa: F811  (a fixture)
    cpu: CpuRunner,
) -> None:
    check_every_layer(source, graph, decoder, cpu, BY_INTEGERS)


@pytest.mark.parametrize("family", MIXERS)
def test_each_mixer(family: str, tmp_path: Path, cpu: CpuRunner) -> None:
    check_family(family, tmp_path, cpu)


@pytest.mark.thorough
@pytest.mark.parametrize("family", [name for name in families.NEW if name not in MIXERS])
def test_every_family(family: str, tmp_path: Path, cpu: CpuRunner) -> None:
    check_family(family, tmp_path, cpu)


def check_family(family: str, folder: Path, cpu: CpuRunner) -> None:
    """Compare the logits and tokens of a small model with transformers'."""
    data = families.gguf_of(family, folder / "x.gguf")
    given = {"data": data, "prompts": families.prompts(), "steps": families.STEPS}
    found = cpu.run("tests.gguf.in_runtime", "answers_of_file", **given)
    families.compare_answers(family, found)


@pytest.mark.parametrize(("family", "architecture", "kind"), CASES)
def test_quantised_files(
    family: str, architecture: str, kind: Kind, tmp_path: Path, cpu: CpuRunner
) -> None:
    check_tokens(family, architecture, kind, tmp_path, cpu, BY_INTEGERS)


@pytest.mark.thorough
@pytest.mark.parametrize("mix", MIXES)
def test_every_mix_of_types(mix: str, tmp_path: Path, cpu: CpuRunner) -> None:
    check_mix("qwen3", mix, tmp_path, cpu, BY_INTEGERS)
