"""Rerankers: scores of pairs are transformers', and texts come in their order."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoConfig, AutoModelForSequenceClassification, PreTrainedModel

from py_runtime.tokens import Tokenizer
from tests.encoder.checkpoints import FAMILIES, files_of, make_encoder, vocabulary
from tests.runners import CpuRunner, Runner
from tests.tokens.styles import cached

pytestmark = pytest.mark.torch

CASES = "tests.encoder.rerank_cases"
QUERY = "how far are the hills"
TEXTS = ["Two foxes ran.", "the hills are far away", "a", "Ünïcode, 42 times! " * 3]


def make_reranker(family: str) -> PreTrainedModel:
    """Random weights that matter; a score is a single number."""
    torch.manual_seed(1)
    config = AutoConfig.for_model(**FAMILIES[family], vocab_size=len(vocabulary()), num_labels=1)
    model = AutoModelForSequenceClassification.from_config(config).eval()
    getattr(model, model.base_model_prefix).load_state_dict(
        make_encoder(family).state_dict(), strict=False
    )
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "pooler" in name or "classifier" in name:
                parameter.normal_(0, 0.3)
    return model


def score(model: PreTrainedModel, family: str, text: str) -> float:
    tokenizer = Tokenizer.from_json(cached("bert"))
    first, second = tokenizer.encode(QUERY), tokenizer.encode(text)
    gap = first[-1:] if family == "roberta" else []
    ids = [*first, *gap, *second[1:]]
    types = [0] * len(first) + [0] * len(gap) + [1] * (len(second) - 1)
    kinds = {} if family == "roberta" else {"token_type_ids": torch.tensor([types])}
    with torch.no_grad():
        return float(torch.sigmoid(model(torch.tensor([ids]), **kinds).logits[0, 0]))


@pytest.mark.thorough_in_page
@pytest.mark.parametrize("family", ["bert", pytest.param("roberta", marks=pytest.mark.thorough)])
def test_scores_are_those_of_transformers(tmp_path: Path, runner: Runner, family: str) -> None:
    model = make_reranker(family)
    asked = [{"query": QUERY, "documents": TEXTS, "return_documents": True}]
    (found, refused) = runner.run(CASES, "rank", files=files_of(tmp_path, model), requests=asked)
    wanted = [score(model, family, text) for text in TEXTS]
    order = [each["index"] for each in found["results"]]
    assert order == sorted(range(len(TEXTS)), key=lambda place: -wanted[place])
    scores = [each["relevance_score"] for each in found["results"]]
    np.testing.assert_allclose(scores, [wanted[place] for place in order], atol=1e-5)
    assert [each["document"]["text"] for each in found["results"]] == [TEXTS[n] for n in order]
    assert "is a reranker" in refused


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"documents": TEXTS}, "query must be a text"),
    ({"query": QUERY}, "documents must be a list"),
    ({"query": QUERY, "documents": ["a", 3]}, "documents[1]"),
    ({"query": QUERY, "documents": TEXTS, "top_n": 0}, "top_n"),
    ({"query": QUERY, "documents": TEXTS, "temperature": 1}, "temperature"),
]


def test_what_is_wrong_is_named(tmp_path: Path, cpu: CpuRunner) -> None:
    files = files_of(tmp_path, make_reranker("bert"))
    best = {"query": QUERY, "documents": [{"text": text} for text in TEXTS], "top_n": 2}
    asked = [best, *(fields for fields, _ in WRONG)]
    found, *faults, _ = cpu.run(CASES, "rank", files=files, requests=asked)
    assert len(found["results"]) == 2
    for (fields, said), fault in zip(WRONG, faults, strict=True):
        assert said in fault, fields


def test_what_makes_vectors_gives_no_scores(tmp_path: Path, cpu: CpuRunner) -> None:
    files = files_of(tmp_path, make_encoder("bert"))
    asked = [{"query": QUERY, "documents": TEXTS}]
    (said, *_) = cpu.run(CASES, "rank", files=files, requests=asked)
    assert "cannot score texts for a query" in said
