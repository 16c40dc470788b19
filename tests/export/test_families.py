"""Every family as people bring it, folder or GGUF: transformers' logits and greedy tokens.

Prompts are shorter and longer than a window and than the ring of a sliding layer's cache, and
sessions go back: what is held never shows.
"""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gguf import GGMLQuantizationType as Kind
from rich.progress import Progress

from export.pipeline import Request, export_model, prepare
from py_runtime.decoder.config_json import MIN_CHUNK
from py_runtime.gpu.kernel_target import MEMORY_KERNELS
from py_runtime.model import Model
from tests.export.checkpoints import make_model, save_checkpoint
from tests.export.family_configs import FAMILIES, IN_THE_PAGE, SIZES
from tests.export.gguf_files import ARCHITECTURES, write_gguf
from tests.gguf import in_runtime
from tests.runners import NativeRunner, Runner, wait

pytestmark = [pytest.mark.torch, pytest.mark.thorough]

LENGTHS = (5, 40, 100)
STEPS = 16
WORST = 1e-4  # relative RMS of logits
CLEAR_MARGIN = 0.01  # below it the next token is a coin's toss
MAX_DISPATCHES = 8  # of a layer while decoding; portable kernels always join parts of attention
MAX_WITH_SCALED_QUERIES = 10  # q, k and v are computed and turned one by one
MAX_OF_A_HYBRID = 10  # of a layer in models where some layers are no attention, or of experts
MAX_WITH_MAMBA = 13  # with experts and a shared one behind
# Embedding and its scale, the last layer's sum, the last row, head, scale and cap of logits.
OUTSIDE = 8
OUTSIDE_OF_ROWS = 5  # further ones, for what is added to the rows
NEW = [name for name in ARCHITECTURES if FAMILIES[name].get("max_position_embeddings", 0) >= 256]
FROM_FOLDERS = ("phi-4-mini", "gpt-oss", "gemma 2", "granite 4 h moe")  # joined weights, mixers
WITH_OWN_ROWS = ("gemma 4",)
WITH_SCALED_QUERIES = ("ministral 3",)  # prompts reach beyond the original context
GRANITE_MIXTURES = ("granite 3 moe", "granite shared moe", "granite 4 moe")
MAMBAS = ("granite 4 h", "granite 4 h moe", "falcon-h1", "falcon-h1 with norms", "nemotron-h")
HYBRIDS = ("lfm2", "qwen3.5", "qwen3-moe", "lfm2-moe", "gpt-oss", *GRANITE_MIXTURES)


def prompts() -> list[list[int]]:
    generator = torch.Generator().manual_seed(16)
    text = torch.randint(3, SIZES["vocab_size"], (sum(LENGTHS),), generator=generator).tolist()
    return [text[sum(LENGTHS[:place]) :][:length] for place, length in enumerate(LENGTHS)]


@cache
@torch.no_grad()
def wanted(family: str) -> list[tuple[np.ndarray, list[int]]]:
    """Return each prompt's logits, and as many greedy tokens as are clear."""
    model = make_model(family)
    found = []
    for prompt in prompts():
        tokens = list(prompt)
        first: np.ndarray | None = None
        for _ in range(STEPS):
            logits = model(torch.tensor([tokens]), use_cache=False).logits[0, -1]
            first = logits.double().numpy() if first is None else first
            (best, next_best), (token, _) = logits.topk(2)
            if best - next_best < CLEAR_MARGIN:
                break
            tokens.append(int(token))
        assert first is not None
        found.append((first, tokens[len(prompt) :]))
    assert sum(len(tokens) for _, tokens in found) > 6, "a case that compares next to nothing"
    return found


def error_of(found: np.ndarray, logits: np.ndarray) -> float:
    """Relative RMS."""
    return float(np.sqrt(((found - logits) ** 2).mean() / (logits**2).mean()))


def compare_answers(family: str, found: dict[str, Any]) -> None:
    for place, (logits, tokens) in enumerate(wanted(family)):
        for given in found["logits"][2 * place : 2 * place + 2]:
            assert error_of(given, logits) < WORST, f"{family}, a prompt of {LENGTHS[place]}"
        assert found["tokens"][place][: len(tokens)] == tokens
    window = getattr(make_model(family).config, "sliding_window", None)
    assert found["rings"] == ([[window + MIN_CHUNK - 1, window]] if window else [])
    assert all(window <= rows < LENGTHS[-1] for rows, window in found["rings"])


def compare(family: str, found: dict[str, Any]) -> None:
    compare_answers(family, found)
    layers = FAMILIES[family].get("num_hidden_layers", SIZES["num_hidden_layers"])
    most = MAX_OF_A_HYBRID if family in HYBRIDS else MAX_DISPATCHES
    if family in MAMBAS:
        most = MAX_WITH_MAMBA
    if family in WITH_SCALED_QUERIES:
        most = MAX_WITH_SCALED_QUERIES
    outside = OUTSIDE
    if family in WITH_OWN_ROWS:
        outside += OUTSIDE_OF_ROWS
    assert found["dispatches"] <= (most + 1) * layers + outside


@pytest.mark.parametrize("family", FROM_FOLDERS)
def test_from_a_folder(family: str, tmp_path: Path, native: NativeRunner) -> None:
    """Every family comes from a GGUF file below, and from its checkpoint in test_architectures."""
    save_checkpoint(tmp_path / "checkpoint", family)
    compare(family, answers_of_exported(tmp_path / "checkpoint", native))


@pytest.mark.parametrize("family", [*WITH_OWN_ROWS, "granite 4 h", "falcon-h1", "nemotron-h"])
def test_from_a_folder_made_of_a_gguf(family: str, tmp_path: Path, native: NativeRunner) -> None:
    """The file's own answers are compared with transformers, too."""
    gguf_of(family, tmp_path / "x.gguf")
    compare(family, answers_of_exported(tmp_path / "x.gguf", native))


def answers_of_exported(source: Path, native: NativeRunner) -> dict[str, Any]:
    """Export a checkpoint or a GGUF file in f32, and ask the folder."""
    out = source.with_name("exported")
    export_model(
        prepare(Request(str(source), "none"), with_goldens=False), out, Progress(disable=True)
    )

    async def answers() -> dict[str, Any]:
        model = await Model.load(native.device, str(out))
        return await in_runtime.answers(native.device, model, prompts(), STEPS)

    return wait(answers())


def gguf_of(family: str, path: Path) -> np.ndarray:
    write_gguf(path, family, ARCHITECTURES[family], Kind.F32)
    return np.frombuffer(path.read_bytes(), np.uint8)


@pytest.mark.parametrize("family", [name for name in NEW if name not in IN_THE_PAGE])
def test_from_a_gguf_natively(family: str, tmp_path: Path, native: NativeRunner) -> None:
    data = gguf_of(family, tmp_path / "x.gguf")
    found = native.run(
        "tests.gguf.in_runtime", "answers_of_file", data=data, prompts=prompts(), steps=STEPS
    )
    compare(family, found)


@pytest.mark.parametrize("family", IN_THE_PAGE)
def test_from_a_gguf_in_the_page(family: str, tmp_path: Path, in_page: Runner) -> None:
    """Ask the page, where files pass through another bridge."""
    data = gguf_of(family, tmp_path / "x.gguf")
    found = in_page.run(
        "tests.gguf.in_runtime", "answers_of_file", data=data, prompts=prompts(), steps=STEPS
    )
    compare(family, found)


@pytest.mark.parametrize(
    ("family", "most"),
    [
        ("gemma 3", MAX_DISPATCHES),
        ("gemma 4", MAX_DISPATCHES),
        ("qwen3.5", MAX_OF_A_HYBRID),
        ("qwen3-moe", MAX_OF_A_HYBRID),
        ("granite shared moe", MAX_OF_A_HYBRID),
    ],
)
def test_dispatches_with_the_kernels_of_real_gpus(
    family: str, most: int, tmp_path: Path, native: NativeRunner
) -> None:
    """Gemma 4 has the most norms in a layer; Qwen3.5's layers have gates of several kinds."""
    short = prompts()[:1]
    data = gguf_of(family, tmp_path / "x.gguf")
    given = {"data": data, "prompts": short, "steps": 1, "kernels": MEMORY_KERNELS}
    found = native.run("tests.gguf.in_runtime", "answers_of_file", **given)
    assert error_of(found["logits"][0], wanted(family)[0][0]) < WORST
    layers = FAMILIES[family]["num_hidden_layers"]
    outside = OUTSIDE + OUTSIDE_OF_ROWS * (family in WITH_OWN_ROWS)
    assert found["dispatches"] <= most * layers + outside
