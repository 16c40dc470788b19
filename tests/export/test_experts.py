"""Mixtures of experts as torch has them: the op that is exported, and a checkpoint's experts."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gguf import quantize
from safetensors.torch import load_file, save_file

from export import torch_ops
from export.errors import ExportError
from export.pipeline import Request, prepare
from export.sources import HuggingFaceSource, Quantisation
from py_runtime.decoder.tensors import expected_shapes
from tests.export.checkpoints import MXFP4, rewrite_config, save_checkpoint
from tests.ops.cases_experts import mixed, shares_of
from tests.ops.cases_fused import normal, weights_of

pytestmark = pytest.mark.torch

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


def test_experts_that_are_stacked_are_one_matrix_each(tmp_path: Path) -> None:
    model = save_checkpoint(tmp_path, "granite shared moe")
    source = HuggingFaceSource.open(tmp_path, Quantisation("none"))
    held = model.model.layers[1].block_sparse_moe.experts
    gate, up = held.gate_up_proj.detach().chunk(2, dim=1)
    for name, stored in (("gate", gate), ("up", up), ("down", held.down_proj.detach())):
        found = source.dense(f"layers.1.mlp.experts.{name}_proj.weight")
        np.testing.assert_array_equal(found, stored.flatten(0, 1).numpy())


@pytest.mark.parametrize(
    ("part", "change", "fault"),
    [
        ("input_linear", lambda tensor: tensor[:, :-1], "has the shape [9, 87, 64], not [396, 64]"),
        ("input_linear", lambda tensor: tensor[:, :-2], "has the shape [387, 64], not [396, 64]"),
        ("output_linear", lambda tensor: tensor[0], "has the shape [64, 44], not [576, 44]"),
        ("output_linear", None, "'layers.1.mlp.experts.down_proj.weight' is missing"),
    ],
)
def test_stacked_experts_of_other_shapes_are_told(
    part: str, change: Any, fault: str, tmp_path: Path
) -> None:
    save_checkpoint(tmp_path, "granite shared moe")
    path = tmp_path / "model.safetensors"
    stored = load_file(path)
    name = f"model.layers.1.block_sparse_moe.{part}.weight"
    tensor = stored.pop(name)
    if change is not None:
        stored[name] = change(tensor).contiguous()
    save_file(stored, path)
    source = HuggingFaceSource.open(tmp_path, Quantisation("none"))
    with pytest.raises(ExportError, match=re.escape(fault)):
        source.check(expected_shapes(source.decoder_config(None)))


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


def test_blocks_of_a_checkpoint_are_taken_as_they_are(tmp_path: Path) -> None:
    """The blocks of openai/gpt-oss-20b hold what the floats were."""
    save_checkpoint(tmp_path, "gpt-oss")
    names = [
        f"layers.1.mlp.experts.{part}.{end}"
        for part in ("gate_proj", "up_proj", "down_proj")
        for end in ("weight", "bias")
    ]
    floats = HuggingFaceSource.open(tmp_path, Quantisation("none"))
    wanted = [floats.dense(name) for name in names]
    path = tmp_path / "model.safetensors"
    stored = load_file(path)
    for name in [name for name in stored if name.endswith(("gate_up_proj", "down_proj"))]:
        stored |= as_blocks(name, stored.pop(name))
    save_file(stored, path)
    how = {"quantization_config": {"quant_method": "mxfp4"}}
    rewrite_config(tmp_path, lambda config: config | how)
    source = HuggingFaceSource.open(tmp_path, Quantisation("q4gsw"))
    source.check(expected_shapes(source.decoder_config(None)))
    for name, values in zip(names, wanted, strict=True):
        np.testing.assert_array_equal(source.dense(name), values)
    assert source.kind(names[0]).name == "mxfp4"
    assert source.kind("layers.1.self_attn.q_proj.weight").name == "q4gsw"


def as_blocks(name: str, weights: torch.Tensor) -> dict[str, torch.Tensor]:
    """[experts, columns, rows] → [experts, rows, groups, 16], two neighbours a byte, and scales."""
    rows_first = np.ascontiguousarray(weights.swapaxes(1, 2).numpy())
    groups = rows_first.shape[2] // 32
    blocks = quantize(rows_first, MXFP4).reshape(*rows_first.shape[:2], groups, 17)
    halves = blocks[..., 1:]
    columns = np.concatenate((halves & 15, halves >> 4), -1)  # [..., 32]
    pairs = columns[..., ::2] | columns[..., 1::2] << 4
    scales = np.ascontiguousarray(blocks[..., 0])
    return {
        f"{name}_blocks": torch.from_numpy(np.ascontiguousarray(pairs)),
        f"{name}_scales": torch.from_numpy(scales),
    }
