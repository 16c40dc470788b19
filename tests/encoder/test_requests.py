"""An encoder asked through OpenAI's shapes, with what is wrong named; and what it refuses."""

import base64
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from transformers import PreTrainedModel

from py_runtime.tokens import Tokenizer
from tests.encoder.checkpoints import (
    POSITIONS,
    SENTENCES,
    WIDTH,
    Files,
    files_of,
    gguf_of,
    hidden_states,
    make_encoder,
    pooled,
)
from tests.runners import NativeRunner
from tests.tokens.styles import cached

pytestmark = pytest.mark.torch

CASES = "tests.encoder.in_runtime"
MODULES = [
    {"type": "sentence_transformers.models.Transformer", "path": ""},
    {"type": "sentence_transformers.models.Pooling", "path": "1_Pooling"},
]
CLS = {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}
PROMPTS = {"prompts": {"query": "Two foxes: ", "passage": ""}, "default_prompt_name": None}
TEXT = SENTENCES[0]


@pytest.fixture(scope="module")
def model() -> PreTrainedModel:
    return make_encoder("bert")


@pytest.fixture(scope="module")
def files(model: PreTrainedModel, tmp_path_factory: pytest.TempPathFactory) -> Files:
    """Return a checkpoint that pools by the first token, has prompts, and normalises nothing."""
    others = {"modules": MODULES, "1_Pooling__config": CLS}
    folder = tmp_path_factory.mktemp("encoder")
    return files_of(folder, model, **others, config_sentence_transformers=PROMPTS)


def wanted(model: PreTrainedModel, text: str, pooling: str) -> np.ndarray:
    tokens = Tokenizer.from_json(cached("bert")).encode(text)
    return pooled(hidden_states(model, tokens), pooling)


def test_the_models_own_files_say_how(
    native: NativeRunner, files: Files, model: PreTrainedModel
) -> None:
    asked: list[dict[str, Any]] = [
        {"input": TEXT},
        {"input": TEXT, "prompt_name": "query"},
        {"input": TEXT, "pooling": "mean"},
        {"input": [TEXT, "a"], "encoding_format": "base64"},
        {"input": TEXT, "dimensions": 8},
    ]
    found = native.run(CASES, "requests", files=files, requests=asked)
    first, queried, mean = (np.array(each["data"][0]["embedding"]) for each in found[:3])
    np.testing.assert_allclose(first, wanted(model, TEXT, "cls"), rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(
        queried, wanted(model, f"Two foxes: {TEXT}", "cls"), rtol=1e-3, atol=1e-4
    )
    np.testing.assert_allclose(mean, wanted(model, TEXT, "mean"), rtol=1e-3, atol=1e-4)
    assert [each["index"] for each in found[3]["data"]] == [0, 1]
    stored = np.frombuffer(base64.b64decode(found[3]["data"][0]["embedding"]), "<f4")
    np.testing.assert_allclose(stored, first, atol=1e-5)
    assert np.isclose(np.linalg.norm(found[4]["data"][0]["embedding"]), 1)


WRONG: list[tuple[dict[str, Any], str]] = [
    ({}, "input"),
    ({"input": ""}, "input"),
    ({"input": ["fox", ""]}, "input"),
    ({"input": [5, "fox"]}, "input"),
    ({"input": [5, 10**6]}, "input"),
    ({"input": "fox", "model": "gpt-4"}, "model"),
    ({"input": "fox", "dimensions": WIDTH + 1}, "dimensions"),
    ({"input": "fox", "pooling": "max"}, "pooling"),
    ({"input": "fox", "prompt_name": "title"}, "prompt_name"),
    ({"input": "fox", "temperature": 1}, "temperature"),
]


def test_wrong_requests_are_named(native: NativeRunner, files: Files) -> None:
    asked = [fields for fields, _ in WRONG]
    answers = native.run(CASES, "requests", files=files, requests=asked)
    found = [(answer["code"], answer["param"]) for answer in answers]
    assert found == [("invalid_request", param) for _, param in WRONG]


def test_a_text_that_does_not_fit(native: NativeRunner, files: Files) -> None:
    asked = [
        {"input": [[5] * (POSITIONS + 1)]},
        {"input": [[5] * POSITIONS]},
        {"input": "a " * 999},
    ]
    refused, whole, text = native.run(CASES, "requests", files=files, requests=asked)
    assert (refused["code"], refused["context"]) == ("context_length_exceeded", POSITIONS)
    assert whole["usage"]["total_tokens"] == POSITIONS
    assert text["code"] == "context_length_exceeded"


def test_it_says_that_it_writes_no_text(native: NativeRunner, files: Files) -> None:
    said = native.run(CASES, "refusals", files=files)
    assert len(said) == 3
    for text in said:
        assert text.startswith("invalid_request: small-encoder is a text encoder: it makes vectors")


def words() -> np.ndarray:
    """Return a list of more words than the model has embeddings for."""
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    listed = [*special, *(f"w{number}" for number in range(2996))]
    return np.frombuffer("\n".join(listed).encode(), np.uint8)


def without(files: Files, *names: str) -> Files:
    return {name: data for name, data in files.items() if name not in names}


def test_files_that_are_missing_or_do_not_fit(
    native: NativeRunner, files: Files, model: PreTrainedModel, tmp_path: Path
) -> None:
    wide = files_of(tmp_path, make_encoder("distilbert"))
    weights = files["model.safetensors"]
    faults = {
        "tokenizer": (without(files, "tokenizer.json"), "neither tokenizer.json nor vocab.txt"),
        "config": (without(files, "config.json"), "no config.json"),
        "words": (
            {**without(files, "tokenizer.json"), "vocab.txt": words()},
            "has 3001 tokens, but embeddings of",
        ),
        "pooling": (without(files, "1_Pooling/config.json"), "names 1_Pooling/config.json"),
        "others'": ({**files, "model.safetensors": wide["model.safetensors"]}, "is missing"),
        "cut": ({**files, "model.safetensors": weights[:-8]}, "its tensors end at byte"),
        "header": ({**files, "model.safetensors": weights[:6]}, "has 6 bytes"),
        "pairs": (gguf_of("bert", model, pooling=4), "scores of pairs of texts"),
    }
    for name, (given, fault) in faults.items():
        assert fault in native.run(CASES, "fault_of", files=given), name
