"""Vectors of texts: those of transformers, of any number of texts of any length on one graph."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from transformers import PreTrainedModel

from py_runtime.encoder.encoding import DENSE
from py_runtime.folder.plain_safetensors import write_safetensors
from py_runtime.tokens import Tokenizer
from tests.encoder.checkpoints import (
    FAMILIES,
    POSITIONS,
    SENTENCES,
    WIDTH,
    files_of,
    gguf_of,
    hidden_states,
    make_encoder,
    pooled,
    vocabulary,
)
from tests.runners import CpuRunner, Runner
from tests.tokens.styles import cached

pytestmark = pytest.mark.torch

CASES = "tests.encoder.in_runtime"
LIMIT = 1e-4  # relative RMS
MOST = POSITIONS - 2  # tokens that all families have positions for
# One text, several of different lengths, the longest, more than are encoded at once; back again.
LENGTHS = ((5,), (1, 9, 30, 31), (MOST,), (2, 3) * 45, (MOST, 7), (5,))
FOLDERS = ("2_Dense", "3_Dense")
POOLINGS = ["mean", "cls", "last", "mean_sqrt_len", "weightedmean"]


def batches() -> list[list[list[int]]]:
    rng = np.random.default_rng(0)
    return [
        [rng.integers(5, len(vocabulary()), length).tolist() for length in lengths]
        for lengths in LENGTHS
    ]


def of_length_1(vector: np.ndarray) -> np.ndarray:
    return np.asarray(vector / np.linalg.norm(vector))


def check(found: Any, model: PreTrainedModel, limit: float = LIMIT) -> None:
    for place, batch in enumerate(batches()):
        states = [hidden_states(model, tokens) for tokens in batch]
        for pooling, vectors in found["vectors"].items():
            wanted = np.stack([of_length_1(pooled(each, pooling)) for each in states])
            difference = np.sqrt(np.mean((vectors[place] - wanted) ** 2) / np.mean(wanted**2))
            assert difference < limit, (pooling, LENGTHS[place], difference)


@pytest.mark.thorough_in_page
@pytest.mark.parametrize("family", FAMILIES)
def test_vectors_are_those_of_transformers(tmp_path: Path, runner: Runner, family: str) -> None:
    model = make_encoder(family)
    poolings = POOLINGS if family == "bert" else POOLINGS[:1]
    case = {"files": files_of(tmp_path, model), "batches": batches(), "poolings": poolings}
    found = runner.run(CASES, "embed", **case)
    check(found, model)
    np.testing.assert_allclose(found["again"], found["vectors"]["mean"][0], atol=1e-6)
    assert found["left"] == 0, "unloading gives all memory back"
    first = 2 if family.endswith("roberta") else 0
    assert found["context"] == POSITIONS - first


@pytest.mark.thorough_in_page
@pytest.mark.parametrize(
    ("architecture", "family", "kind", "limit"),
    [
        ("bert", "bert", "F32", LIMIT),
        ("bert", "bert", "F16", 2e-3),  # the weights are rounded, which torch's are not
        ("bert", "bert", "Q8_0", 3e-2),
        ("nomic-bert", "nomic", "F32", LIMIT),
        ("modern-bert", "modernbert", "F32", LIMIT),
        ("gemma-embedding", "embedding gemma", "F32", LIMIT),
    ],
)
def test_a_gguf_file_gives_the_same(
    runner: Runner, architecture: str, family: str, kind: str, limit: float
) -> None:
    model = make_encoder(family)
    data = gguf_of(architecture, model, kind)
    found = runner.run(CASES, "embed", files=data, batches=batches(), poolings=["mean"])
    check(found, model, limit)


def test_products_stand_behind_the_pooling(tmp_path: Path, cpu: CpuRunner) -> None:
    """EmbeddingGemma's, from the folders that modules.json names and from a GGUF file."""
    model, rng = make_encoder("embedding gemma"), np.random.default_rng(4)
    dense = [rng.normal(0, 0.2, dims).astype(np.float32) for dims in ((96, WIDTH), (32, 96))]
    kinds = (("Transformer", ""), ("Pooling", "1_Pooling"), *((DENSE, name) for name in FOLDERS))
    modules = [{"type": f"sentence_transformers.models.{kind}", "path": at} for kind, at in kinds]
    said = {"bias": False, "activation_function": "torch.nn.modules.linear.Identity"}
    others: dict[str, Any] = {f"{name}__config": said for name in FOLDERS}
    pooling = {"1_Pooling__config": {"pooling_mode_mean_tokens": True}}
    files = files_of(tmp_path, model, modules=modules, **pooling, **others)
    for name, matrix in zip(FOLDERS, dense, strict=True):
        written = write_safetensors({"linear.weight": matrix})
        files[f"{name}/model.safetensors"] = np.frombuffer(written, np.uint8)
    texts = batches()[1]
    states = [pooled(hidden_states(model, tokens)) for tokens in texts]
    wanted = [state @ dense[0].T @ dense[1].T for state in states]
    for given in (files, gguf_of("gemma-embedding", model, dense=dense)):
        found = cpu.run(CASES, "embed", files=given, batches=[texts], poolings=["mean"])
        (vectors,) = found["vectors"]["mean"]
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        normed = np.stack([of_length_1(each) for each in wanted])
        np.testing.assert_allclose(vectors / lengths, normed, atol=1e-4)


def test_texts_are_encoded_together_with_little_padding(tmp_path: Path, native: Runner) -> None:
    """Vectors of texts depend neither on their neighbours nor on their order."""
    model = make_encoder("bert")
    texts = [text for batch in batches() for text in batch]
    files = files_of(tmp_path, model)
    sizes, vectors = native.run(CASES, "runs_of", files=files, texts=texts)
    tokens = sum(map(len, texts))
    assert len(sizes) < len(texts) / 8
    assert tokens <= sum(count * length for count, length in sizes) < 1.6 * tokens
    for text, vector in zip(texts, vectors, strict=True):
        wanted = of_length_1(pooled(hidden_states(model, text)))
        np.testing.assert_allclose(vector, wanted, atol=1e-4)


def test_sentences_have_the_vectors_of_their_tokens(tmp_path: Path, native: Runner) -> None:
    model = make_encoder("bert")
    files = files_of(tmp_path, model)
    tokenizer = Tokenizer.from_json(cached("bert"))
    states = [hidden_states(model, tokenizer.encode(text)) for text in SENTENCES]
    wanted = [of_length_1(pooled(each)) for each in states]
    for given in (files, gguf_of("bert", model), without_tokenizer(files)):
        (found,) = native.run(CASES, "requests", files=given, requests=[{"input": SENTENCES}])
        vectors = [each["embedding"] for each in found["data"]]
        np.testing.assert_allclose(vectors, wanted, atol=1e-4)
        assert found["usage"]["total_tokens"] == sum(map(len, states))


def without_tokenizer(files: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the files of old: a list of words in place of tokenizer.json."""
    words = "\n".join(sorted(vocabulary(), key=vocabulary().__getitem__)) + "\n"
    listed = np.frombuffer(words.encode(), np.uint8)
    others = {name: data for name, data in files.items() if name != "tokenizer.json"}
    return {**others, "vocab.txt": listed}
