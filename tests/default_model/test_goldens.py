"""The default model computes what torch does, natively and in Chromium."""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

from tests.runners import Runner
from tools.files import ROOT

FOLDER = ROOT / "models" / "SmolLM2-135M-Instruct"
# A software GPU is slow, and the kernels are the same: the two runners share the work. The page has
# what takes several chunks. The CPU has all prompts (cpu/test_models.py); test_user.py has two.
LENGTHS = {"native": (1, 7, 64), "page": (7, 300)}
PROMPTS = {"native": (0,), "page": (3,)}
STEPS = {"native": 24, "page": 16}
CLEAR_MARGIN = 0.01  # below it torch's own next token is a coin's toss

REST = 64 << 20  # bytes of GPU memory beside the weights and the cache

pytestmark = [pytest.mark.timeout(900), pytest.mark.thorough]


def by_runner(shares: Mapping[str, tuple[int, ...]]) -> list[Any]:
    """Parameters: a runner, and one of its numbers."""
    return [
        pytest.param(name, number, marks=pytest.mark.browser if name == "page" else ())
        for name, numbers in shares.items()
        for number in numbers
    ]


@pytest.fixture(scope="module")
def goldens() -> dict[str, np.ndarray]:
    return load_file(FOLDER / "goldens.safetensors")


@pytest.fixture(scope="module")
def answers() -> dict[str, Any]:
    """Keep the answers by runner: everything is computed once."""
    return {}


@pytest.fixture
def computed(
    request: pytest.FixtureRequest,
    runner: Runner,
    goldens: dict[str, np.ndarray],
    answers: dict[str, Any],
) -> dict[str, Any]:
    if runner.name not in answers:
        in_page = runner.name == "page"
        site = request.getfixturevalue("site_url") if in_page else ""
        answers[runner.name] = runner.run(
            "tests.default_model.in_runtime",
            "compute_goldens",
            where=f"{site}models/{FOLDER.name}/" if in_page else str(FOLDER),
            prompts=[goldens[f"tokens_{length}"].tolist() for length in LENGTHS[runner.name]],
            greedy=[goldens[f"prompt_{number}"].tolist() for number in PROMPTS[runner.name]],
            steps=STEPS[runner.name],
        )
    result: dict[str, Any] = answers[runner.name]
    return result


@pytest.mark.parametrize(("runner", "length"), by_runner(LENGTHS), indirect=["runner"])
def test_last_logits_are_torchs(
    runner: Runner, length: int, computed: dict[str, Any], goldens: dict[str, np.ndarray]
) -> None:
    got = computed["logits"][LENGTHS[runner.name].index(length)].astype(np.float64)
    wanted = goldens[f"logits_{length}"].astype(np.float64)
    relative = np.sqrt(((got - wanted) ** 2).mean() / (wanted**2).mean())
    assert relative <= 1e-4


@pytest.mark.parametrize(("runner", "number"), by_runner(PROMPTS), indirect=["runner"])
def test_greedy_tokens_are_torchs(
    runner: Runner, number: int, computed: dict[str, Any], goldens: dict[str, np.ndarray]
) -> None:
    got = computed["continuations"][PROMPTS[runner.name].index(number)].tolist()
    wanted = goldens[f"continuation_{number}"].tolist()
    margins = goldens[f"margins_{number}"]
    for step in range(STEPS[runner.name]):
        if got[step] != wanted[step]:
            assert margins[step] < CLEAR_MARGIN, f"step {step}: {got[step]}, torch {wanted[step]}"
            break  # from an unclear step on, the texts may differ


def test_chat_template_and_tokenizer_make_torchs_prompt(
    runner: Runner, computed: dict[str, Any], goldens: dict[str, np.ndarray]
) -> None:
    assert computed["question"] == goldens["prompt_0"].tolist()
    if runner.name == "native":  # the page's words are compared in test_user.py
        assert "gravity" in computed["text"].lower()


@pytest.mark.browser
@pytest.mark.parametrize("runner", ["page"], indirect=True)
def test_weights_never_pass_through_the_heap(computed: dict[str, Any]) -> None:
    """The page has loaded 98 MB of weights, and its heap hardly grew."""
    assert 0 <= computed["heap growth"] < 32 << 20


def test_the_manifest_foretells_the_gpu_memory(computed: dict[str, Any]) -> None:
    manifest = json.loads((FOLDER / "manifest.json").read_text())
    assert 0.95 * manifest["gpu_bytes"] <= computed["gpu bytes"] <= manifest["gpu_bytes"]


def test_gpu_memory_is_weights_and_cache_and_little_more(computed: dict[str, Any]) -> None:
    """The context is full, and what sampling takes is included."""
    manifest = json.loads((FOLDER / "manifest.json").read_text())
    config = json.loads((FOLDER / "config.json").read_text())
    weights = sum(manifest["files"][file]["size"] for file in manifest["weights"])
    width = config["hidden_size"] // config["num_attention_heads"]
    line = config["num_hidden_layers"] * config["num_key_value_heads"] * width * 2 * 4
    assert manifest["context"] == 2048
    cache = manifest["context"] * line
    assert cache < computed["gpu bytes in all"] <= weights + cache + REST
