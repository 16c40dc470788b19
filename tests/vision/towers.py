"""Small towers of all families, with random weights, as mmproj files: written without torch."""

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from py_runtime.decoder.config import DecoderConfig
from py_runtime.decoder.config_json import decoder_config
from py_runtime.model.seeing_text import text_values
from py_runtime.vision.gemma3 import Gemma3
from py_runtime.vision.gemma4 import Gemma4
from py_runtime.vision.lfm2_tiles import Cutting
from py_runtime.vision.lfm2_vl import Lfm2Vl
from py_runtime.vision.qwen_tower import QwenVl
from py_runtime.vision.sight import Sight
from py_runtime.vision.siglip import SiglipSizes
from py_runtime.vision.smolvlm import SmolVlm
from tests.gguf.small import small_file
from tests.gguf.written import Tensor, file

WIDTH = 32  # of the decoders
HALVES = [0.5, 0.5, 0.5]
LEAST, MOST = 192, 2560  # pixels of an image, to Qwen's
WINDOW = 16


@dataclass(frozen=True)
class SmallTower:
    """A tower, and what its mmproj file says."""

    sight: Sight
    projector: str
    keys: dict[str, Any]  # behind `clip.`
    decoder: str  # the model type before which it stands


SIGLIP_SIZES = SiglipSizes(patch=4, width=24, hidden=40, layers=2, heads=3, positions=64)
SIGLIP_KEYS: dict[str, Any] = {
    "use_gelu": True,
    "vision.image_size": 32,
    "vision.patch_size": 4,
    "vision.embedding_length": 24,
    "vision.feed_forward_length": 40,
    "vision.block_count": 2,
    "vision.attention.head_count": 3,
    "vision.attention.layer_norm_epsilon": 1e-6,
    "vision.image_mean": HALVES,
    "vision.image_std": HALVES,
    "vision.projector.scale_factor": 2,
}
QWEN_SIZES: dict[str, Any] = {
    "patch": 4,
    "width": 32,
    "hidden": 40,
    "layers": 3,
    "heads": 2,
    "out": WIDTH,
    "factor": 2,
    "least": LEAST,
    "most": MOST,
    "in_one": False,
}
QWEN_KEYS: dict[str, Any] = {
    "vision.patch_size": 4,
    "vision.image_size": 16,
    "vision.embedding_length": 32,
    "vision.feed_forward_length": 40,
    "vision.block_count": 3,
    "vision.attention.head_count": 2,
    "vision.attention.layer_norm_epsilon": 1e-6,
    "vision.spatial_merge_size": 2,
    "vision.image_min_pixels": LEAST,
    "vision.image_max_pixels": MOST,
    "vision.image_mean": HALVES,
    "vision.image_std": HALVES,
}
TOWERS = {
    "smolvlm": SmallTower(
        SmolVlm(sizes=SIGLIP_SIZES, out=WIDTH, side=32, factor=2, edge=64),
        "idefics3",
        {**SIGLIP_KEYS, "vision.preproc_image_size": 64},
        "llama",
    ),
    "gemma3": SmallTower(
        Gemma3(sizes=SIGLIP_SIZES, out=WIDTH, side=32, factor=2),
        "gemma3",
        SIGLIP_KEYS,
        "gemma3_text",
    ),
    "gemma4": SmallTower(
        Gemma4(
            patch=4,
            width=48,
            hidden=40,
            layers=2,
            heads=3,
            head_dim=16,
            positions=160,
            out=WIDTH,
            factor=2,
            most_rows=70,
            is_clipped=True,
            is_standard=True,
        ),
        "gemma4v",
        {
            "use_gelu": True,
            "vision.image_size": 224,
            "vision.patch_size": 4,
            "vision.embedding_length": 48,
            "vision.feed_forward_length": 40,
            "vision.block_count": 2,
            "vision.attention.head_count": 3,
            "vision.attention.layer_norm_epsilon": 1e-6,
            "vision.image_mean": [0.0, 0.0, 0.0],
            "vision.image_std": [1.0, 1.0, 1.0],
            "vision.projector.scale_factor": 2,
            "vision.image_max_pixels": 70 * 64,
        },
        "gemma4_text",
    ),
    "qwen2.5-vl": SmallTower(
        QwenVl(**QWEN_SIZES, window=WINDOW, unbound=(1,)),
        "qwen2.5vl_merger",
        {
            **QWEN_KEYS,
            "use_silu": True,
            "vision.n_wa_pattern": 2,
            "vision.window_size": WINDOW,
        },
        "qwen2_5_vl_text",
    ),
    "qwen3-vl": SmallTower(
        QwenVl(**QWEN_SIZES, positions=16, deep=(1,)),
        "qwen3vl_merger",
        {
            **QWEN_KEYS,
            "use_gelu": True,
            "vision.is_deepstack_layers": [False, True, False],
        },
        "qwen3_vl_text",
    ),
    "lfm2-vl": SmallTower(
        Lfm2Vl(
            sizes=replace(SIGLIP_SIZES, positions=16),
            out=WIDTH,
            factor=2,
            hidden=56,
            cutting=Cutting(unit=8, tile=32, most_tiles=4, least_rows=4, most_rows=16),
        ),
        "lfm2",
        {
            **SIGLIP_KEYS,
            "vision.image_size": 16,
            "vision.preproc_image_size": 32,
            "vision.preproc_max_tiles": 4,
            "vision.image_min_pixels": 4 * 64,
            "vision.image_max_pixels": 16 * 64,
        },
        "lfm2",
    ),
}
OF_WHOLE = {
    "gemma3_text": "gemma3",
    "gemma4_text": "gemma4",
    "qwen2_5_vl_text": "qwen2_5_vl",
    "qwen3_vl_text": "qwen3_vl",
    "lfm2": "lfm2_vl",
}


def metadata_of(projector: str, keys: dict[str, Any]) -> dict[str, Any]:
    """Return what an mmproj file says."""
    whole = {"has_vision_encoder": True, "projector_type": projector, **keys}
    return {
        "general.architecture": "clip",
        "general.type": "mmproj",
        **{f"clip.{key}": value for key, value in whole.items()},
    }


@cache
def tower_files() -> list[bytes]:
    """Return an mmproj file of each."""
    rng = np.random.default_rng(3)
    found = []
    for tower in TOWERS.values():
        tensors = [
            Tensor.floats(tower.sight.gguf_name(own), rng.normal(0, 0.2, dims))
            for own, dims in tower.sight.shapes().items()
        ]
        found.append(file(metadata_of(tower.projector, tower.keys), tensors))
    return found


def model_file() -> bytes:
    """Return a Llama's GGUF file, which may see through some of them."""
    return small_file()


@cache
def decoder_of(model_type: str) -> DecoderConfig:
    """Return a decoder of this type that sees."""
    sections = {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [2, 3, 3]}
    given: dict[str, Any] = {
        "vocab_size": 300,
        "hidden_size": WIDTH,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": 16,
        "max_position_embeddings": 1024,
    }
    if model_type.startswith("qwen"):
        given["rope_parameters"] = sections
    whole = {
        "model_type": OF_WHOLE.get(model_type, "smolvlm"),
        "text_config": given,
        "vision_config": {"deepstack_visual_indexes": [1]},
    }
    return decoder_config(text_values(whole, is_tied=True), sees=True)
