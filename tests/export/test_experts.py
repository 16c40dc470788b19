"""Mixtures of experts as torch has them: the op that is exported, and a checkpoint's experts."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from export import torch_ops
from export.errors import ExportError
from export.pipeline import Request, prepare
from export.sources import HuggingFaceSource, Quantisation
from tests.export.checkpoints import save_checkpoint
from tests.ops.cases_experts import mixed, shares_of
from tests.ops.cases_fused import normal, weights_of

EXPERTS, USED, WIDTH, HIDDEN = 5, 2, 64, 32


@pytest.mark.parametrize("kind", ["f32", "q4gsw", "q8_0"])
@pytest.mark.parametrize("renormalised", [True, False])
@pytest.mark.parametrize("is_gpt_oss", [True, False])
def test_the_op_is_what_its_kernels_are_compared_with(
    kind: str, renormalised: bool, is_gpt_oss: bool
) -> None:
    """Scores by sigmoid and the choice's bias come with the other family, which has no biases."""
    rng = np.random.default_rng(16)
    held = [weights_of(kind, EXPERTS * HIDDEN, WIDTH, rng) for _ in range(2)]
    held.append(weights_of(kind, EXPERTS * WIDTH, HIDDEN, rng))
    x, logits = normal(rng, 1, 9, WIDTH), normal(rng, 1, 9, EXPERTS)
    rows = (EXPERTS * HIDDEN, EXPERTS * HIDDEN, EXPERTS * WIDTH)
    biases = [normal(rng, count) if is_gpt_oss else None for count in rows]
    choice = None if is_gpt_oss else normal(rng, EXPERTS)
    parts: list[Any] = []
    for weights, bias in zip(held, biases, strict=True):
        stored = (weights.constants["weight"], weights.constants.get("scales"))
        parts += [None if data is None else torch.from_numpy(data) for data in stored] + [bias]
    scoring, activation = ("softmax", "clamped") if is_gpt_oss else ("sigmoid", "silu")
    how = (USED, renormalised, scoring, 1.5, f"{kind} {kind} {kind}")
    found = torch_ops.experts(x.double(), logits.double(), choice, *how, *parts, 32, activation)
    shares = 1.5 * shares_of(logits, USED, renormalised, choice)
    wanted = mixed(x, shares, held, biases, activation)
    torch.testing.assert_close(found, wanted, rtol=1e-6, atol=1e-6)


def test_experts_of_a_checkpoint_are_one_matrix(tmp_path: Path) -> None:
    model = save_checkpoint(tmp_path, "qwen3-moe")
    source = HuggingFaceSource.open(tmp_path, Quantisation("none"))
    stored = model.state_dict()["model.layers.1.mlp.experts.down_proj"]
    found = source.dense("layers.1.mlp.experts.down_proj.weight")
    np.testing.assert_array_equal(found, stored.flatten(0, 1).numpy())


def test_goldens_of_a_mixture_are_made_and_its_router_stays_exact(tmp_path: Path) -> None:
    save_checkpoint(tmp_path, "qwen3-moe", {"moe_intermediate_size": 64})
    prepared = prepare(Request(str(tmp_path), "q4gsw"))
    assert prepared.goldens is not None
    kinds = prepared.source.kinds(prepared.graph.config)
    assert kinds["layers.0.mlp.gate.weight"].name == "f32"
    assert kinds["layers.0.mlp.experts.up_proj.weight"].name == "q4gsw"


def test_layers_without_experts_are_refused(tmp_path: Path) -> None:
    save_checkpoint(tmp_path, "qwen3-moe", {"decoder_sparse_step": 2})
    with pytest.raises(ExportError, match="some of its layers have experts and others none"):
        prepare(Request(str(tmp_path), "none"), with_goldens=False)
