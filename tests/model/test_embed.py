"""Embeddings: hidden states as torch has them, pooled, at several lengths on one graph."""

import base64
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from export.command import main
from export.reference import hidden_states, reference_decoder
from export.sources import HuggingFaceSource, Quantisation
from tests.export.checkpoints import save_checkpoint
from tests.runners import NativeRunner, PlacedToy
from tests.toy_model import CONTEXT, NAME

pytestmark = pytest.mark.torch

CASES = "tests.model.embed_cases"
LENGTHS = (3, 150, 1, 40, 150)  # more than a chunk takes, and growing back
TOKENS = np.random.default_rng(0).integers(3, 300, 150).tolist()
INPUTS = [TOKENS[:length] for length in LENGTHS]
SHORT = [tokens[:120] for tokens in INPUTS]
POOLINGS = ["mean", "last"]


def pool_rows(rows: np.ndarray, pooling: str) -> np.ndarray:
    """Pool hidden states [S, W] to a vector of length 1."""
    vector = rows[-1] if pooling == "last" else rows.mean(axis=0)
    return np.asarray(vector / np.linalg.norm(vector))


def test_hidden_states_are_torchs(toy: PlacedToy, toy_model: Path) -> None:
    source = HuggingFaceSource.open(toy_model.parent / ".checkpoint" / NAME, Quantisation("q4gsw"))
    decoder = reference_decoder(source, source.decoder_config(CONTEXT))
    rows = np.stack(
        [hidden_states(decoder, TOKENS[: end + 1])["norm"] for end in range(len(TOKENS))]
    )
    found = toy.runner.run(CASES, "embed", where=toy.where, inputs=INPUTS, poolings=POOLINGS)
    assert found["is_same"], "answers are what they were"
    for pooling in POOLINGS:
        wanted = [pool_rows(rows[:length], pooling) for length in LENGTHS]
        np.testing.assert_allclose(found["vectors"][pooling], wanted, atol=1e-4)


@pytest.mark.parametrize("family", ["qwen3", "gemma 3", "lfm2"])
def test_vectors_are_those_of_transformers(
    tmp_path: Path, native: NativeRunner, family: str
) -> None:
    model = save_checkpoint(tmp_path / "checkpoint", family)
    out = tmp_path / "exported"
    assert main([str(tmp_path / "checkpoint"), "-o", str(out), "--quant", "none"]) == 0
    with torch.no_grad():
        states = [model.base_model(torch.tensor([tokens])).last_hidden_state for tokens in SHORT]
    found = native.run(CASES, "embed", where=str(out), inputs=SHORT, poolings=POOLINGS)
    for pooling in POOLINGS:
        wanted = [pool_rows(rows[0].double().numpy(), pooling) for rows in states]
        np.testing.assert_allclose(found["vectors"][pooling], wanted, atol=1e-4)


def test_requests_in_openais_shapes(native: NativeRunner, toy_model: Path) -> None:
    text = "the quick brown fox"
    one, both, numbers, short, last = native.run(
        CASES,
        "requests",
        where=str(toy_model),
        requests=[
            {"input": text, "model": NAME, "user": "ada"},
            {"input": [text, "fox"]},
            {"input": text, "encoding_format": "base64"},
            {"input": text, "dimensions": 8},
            {"input": text, "pooling": "last"},
        ],
    )
    assert one["object"] == "list"
    assert one["model"] == NAME
    vector = np.array(one["data"][0]["embedding"])
    assert np.isclose(np.linalg.norm(vector), 1)
    assert [each["index"] for each in both["data"]] == [0, 1]
    np.testing.assert_allclose(both["data"][0]["embedding"], vector, atol=1e-6)
    assert both["usage"]["prompt_tokens"] > one["usage"]["prompt_tokens"] > 0
    stored = np.frombuffer(base64.b64decode(numbers["data"][0]["embedding"]), "<f4")
    np.testing.assert_allclose(stored, vector, atol=1e-6)
    first = np.array(short["data"][0]["embedding"])
    np.testing.assert_allclose(first, vector[:8] / np.linalg.norm(vector[:8]), atol=1e-6)
    assert not np.allclose(last["data"][0]["embedding"], vector, atol=1e-3)


WRONG: list[tuple[dict[str, Any], str]] = [
    ({}, "input"),
    ({"input": ""}, "input"),
    ({"input": []}, "input"),
    ({"input": [[]]}, "input"),
    ({"input": 5}, "input"),
    ({"input": [5, "fox"]}, "input"),
    ({"input": [5, 1000]}, "input"),
    ({"input": "fox", "model": "gpt-4"}, "model"),
    ({"input": "fox", "encoding_format": "hex"}, "encoding_format"),
    ({"input": "fox", "dimensions": 0}, "dimensions"),
    ({"input": "fox", "dimensions": 65}, "dimensions"),
    ({"input": "fox", "pooling": "max"}, "pooling"),
    ({"input": "fox", "temperature": 1}, "temperature"),
]


def test_wrong_requests_are_named(native: NativeRunner, toy_model: Path) -> None:
    asked = [fields for fields, _ in WRONG]
    answers = native.run(CASES, "requests", where=str(toy_model), requests=asked)
    found = [(answer["code"], answer["param"]) for answer in answers]
    assert found == [("invalid_request", param) for _, param in WRONG]


def test_an_input_that_does_not_fit(native: NativeRunner, toy_model: Path) -> None:
    long = [{"input": [[5] * (CONTEXT + 1)]}, {"input": [[5] * CONTEXT]}]
    refused, whole = native.run(CASES, "requests", where=str(toy_model), requests=long)
    assert (refused["code"], refused["context"]) == ("context_length_exceeded", CONTEXT)
    assert whole["usage"]["total_tokens"] == CONTEXT
