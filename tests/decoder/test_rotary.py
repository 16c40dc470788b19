"""Rotary tables of every type, as transformers makes them."""

from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoConfig
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding
from transformers.models.phi3.modeling_phi3 import Phi3RotaryEmbedding

from py_runtime.decoder.config_json import ropes
from py_runtime.decoder.rotary import rotary_tables
from tests.export.family_configs import FAMILIES, LINEAR_ROPE, LLAMA3_ROPE, SIZES, YARN_ROPE

pytestmark = pytest.mark.torch

LLAMA3_ITSELF = LLAMA3_ROPE | {"factor": 32.0, "original_max_position_embeddings": 8192}
ROPES: dict[str, dict[str, Any]] = {
    "default": {"rope_type": "default", "rope_theta": 10000.0},
    "a large theta": {"rope_type": "default", "rope_theta": 1e6},
    "linear": LINEAR_ROPE,
    "llama3": LLAMA3_ROPE,
    "llama 3.2": LLAMA3_ITSELF,
    "yarn": YARN_ROPE,
    "yarn from afar": YARN_ROPE | {"original_max_position_embeddings": 4096},
    "yarn, betas": YARN_ROPE | {"beta_fast": 8.0, "beta_slow": 2.0},
    "yarn, attention factor": YARN_ROPE | {"attention_factor": 1.5},
    "yarn, mscale": YARN_ROPE | {"mscale": 1.0, "mscale_all_dim": 0.5},
    "yarn, no truncation": YARN_ROPE | {"truncate": False},
}
POSITIONS = 600


@pytest.mark.parametrize("head_dim", [16, 64, 128])
@pytest.mark.parametrize("name", ROPES)
def test_tables(name: str, head_dim: int) -> None:
    values = {"model_type": "llama", "head_dim": head_dim, "rope_parameters": dict(ROPES[name])}
    config = AutoConfig.for_model(**{**SIZES, **values})
    with torch.no_grad():
        theirs = LlamaRotaryEmbedding(config)(torch.zeros(1), torch.arange(POSITIONS)[None])
    ours = rotary_tables(ROPES[name], head_dim, POSITIONS)
    for table, wanted in zip(ours, theirs, strict=True):
        assert table.dtype == np.float32
        # An angle of 600 in float32 has steps of 6e-5, and frequencies differ by a last bit.
        np.testing.assert_allclose(table, wanted[0].numpy(), atol=2e-4)
    np.testing.assert_allclose(ours[0][:9], theirs[0][0, :9].numpy(), atol=2e-6)


def test_factors_divide_the_frequencies() -> None:
    factors = np.linspace(1, 8, 8)
    _, sin = rotary_tables({"rope_type": "default", "rope_theta": 10000.0}, 16, 2, factors)
    _, plain = rotary_tables({"rope_type": "default", "rope_theta": 10000.0}, 16, 2)
    np.testing.assert_allclose(np.arcsin(sin[1, :8]) * factors, np.arcsin(plain[1, :8]), rtol=1e-5)


def test_less_extrapolation_stretches_more() -> None:
    """llama.cpp's yarn_ext_factor: none at all is plain stretching, as the linear type does."""
    none = rotary_tables(YARN_ROPE | {"extrapolation_factor": 0.0, "attention_factor": 1.0}, 16, 9)
    linear = rotary_tables(LINEAR_ROPE | {"factor": YARN_ROPE["factor"]}, 16, 9)
    np.testing.assert_allclose(none[1], linear[1], atol=1e-6)


@pytest.mark.parametrize("original", [4096, 512])
def test_longrope_goes_by_the_length_of_the_context(original: int) -> None:
    """One set of factors holds up to the original length, the other beyond it."""
    sizes = {"max_position_embeddings": 8192, "original_max_position_embeddings": original}
    values = {**SIZES, **FAMILIES["phi-4-mini"], **sizes}
    config = AutoConfig.for_model(**values)
    with torch.no_grad():
        theirs = Phi3RotaryEmbedding(config)(torch.zeros(1), torch.arange(POSITIONS)[None])
    rope = ropes(config.to_dict())[""]
    ours = rotary_tables(rope, 12, POSITIONS)
    for table, wanted in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(table, wanted[0].numpy(), atol=2e-4)
