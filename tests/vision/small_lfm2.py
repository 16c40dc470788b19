"""A small random LFM2-VL, and its processor without torchvision, which only scales images there."""

import sys
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any, ClassVar
from unittest.mock import patch

import numpy as np
import torch
from transformers import Lfm2VlConfig, Lfm2VlForConditionalGeneration, PreTrainedModel
from transformers.models.lfm2_vl.processing_lfm2_vl import Lfm2VlProcessor

from py_runtime.vision.resample import BILINEAR, resized
from py_runtime.vision.sight import Sight
from tests.gguf.written import Tensor
from tests.vision.small_families import Images, SmallFamily, check_scaling
from tests.vision.towers import HALVES, TOWERS

STUBS = ("torchvision", "torchvision.transforms", "torchvision.transforms.v2")
PATCH, FACTOR, TAPS = 4, 2, 3
PREPROCESSOR = {
    "image_mean": HALVES,
    "image_std": HALVES,
    "encoder_patch_size": PATCH,
    "downsample_factor": FACTOR,
    "tile_size": 32,
    "max_tiles": 4,
    "min_image_tokens": 4,
    "max_image_tokens": 16,
}
Scale = Callable[[torch.Tensor, int, int], torch.Tensor]


class SmallLfm2(SmallFamily):
    """LFM2-VL: a layer that convolves and one with attention; images whole or in tiles."""

    special = (
        *("<|image_start|>", "<|image_end|>", "<|img_thumbnail|>", "<image>"),
        *(f"<|img_row_{line}_col_{column}|>" for line in range(1, 5) for column in range(1, 5)),
    )
    row = written = "<image>"
    architecture, projector = "lfm2", "lfm2"
    carries = True
    parts: ClassVar = {
        "operator_norm": "attn_norm",
        "ffn_norm": "ffn_norm",
        "self_attn.out_proj": "attn_output",
        "self_attn.q_layernorm": "attn_q_norm",
        "self_attn.k_layernorm": "attn_k_norm",
        "conv.in_proj": "shortconv.in_proj",
        "conv.conv": "shortconv.conv",
        "conv.out_proj": "shortconv.out_proj",
        "feed_forward.w1": "ffn_gate",
        "feed_forward.w2": "ffn_down",
        "feed_forward.w3": "ffn_up",
    }
    whole: ClassVar = {"embedding_norm": "token_embd_norm"}

    def make(self) -> PreTrainedModel:
        text = {
            **self.text_config,
            "model_type": "lfm2",
            "layer_types": ["conv", "full_attention"],
            "conv_L_cache": TAPS,
            "block_multiple_of": 16,
        }
        tower = {
            "model_type": "siglip2_vision_model",
            "hidden_size": 24,
            "intermediate_size": 40,
            "num_hidden_layers": 2,
            "num_attention_heads": 3,
            "num_patches": 16,
            "patch_size": PATCH,
        }
        config = Lfm2VlConfig(
            text_config=text,
            vision_config=tower,
            image_token_id=self.id_of(self.row),
            projector_hidden_size=56,
            downsample_factor=FACTOR,
            eos_token_id=1,
            pad_token_id=0,
        )
        return Lfm2VlForConditionalGeneration(config)

    def processed(self, images: Images) -> dict[str, Any]:
        found, wanted = (_made(_processor(how), images) for how in (_as_pillow, _as_torch))
        check_scaling(wanted["pixel_values"], found["pixel_values"])
        return {name: found[name] for name in found if not name.startswith("image_")}

    def features(self, image: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            found = self.model.model.get_image_features(**self.processed([image]))
        return np.concatenate([part.numpy() for part in found.pooler_output])

    def text_of(self, image: np.ndarray) -> str:
        """Write as transformers' own processor does, which would ask for a tokenizer."""
        writer = Lfm2VlProcessor.__new__(Lfm2VlProcessor)
        writer.image_processor = _processor(_as_pillow)
        writer.image_token, writer.image_thumbnail_token = self.row, "<|img_thumbnail|>"
        writer.image_start_token, writer.image_end_token = self.special[:2]
        made = _made(writer.image_processor, [image])
        return str(writer.replace_image_token(made, 0, use_image_special_tokens=True))

    def sight(self) -> Sight:
        return TOWERS["lfm2-vl"].sight

    def projector_keys(self) -> dict[str, Any]:
        return TOWERS["lfm2-vl"].keys

    def decoder_keys(self) -> dict[str, Any]:
        state = self.model.state_dict()
        hidden = state["model.language_model.layers.0.feed_forward.w1.weight"].shape[0]
        return {
            "feed_forward_length": hidden,
            "attention.head_count_kv": [0, 1],
            "shortconv.l_cache": TAPS,
            "rope.freq_base": 1e6,
        }

    def tower_tensors(self) -> list[Tensor]:
        """Turn the weights of patches, whose numbers go by pixel in checkpoints."""
        weights = self.model.model.vision_tower.embeddings.patch_embedding.weight.detach().numpy()
        turned = weights.reshape(-1, PATCH, PATCH, 3).transpose(0, 3, 1, 2)
        own = Tensor.floats("v.patch_embd.weight", turned)
        return [own if each.name == own.name else each for each in super().tower_tensors()]

    def preprocessor(self) -> dict[str, Any]:
        return PREPROCESSOR


def _as_torch(image: torch.Tensor, height: int, width: int) -> torch.Tensor:
    """Scale as torchvision does, [B, 3, H, W]."""
    size = (height, width)
    return torch.nn.functional.interpolate(image, size, mode="bilinear", antialias=True)


def _as_pillow(image: torch.Tensor, height: int, width: int) -> torch.Tensor:
    scaled = [resized(each, width, height, BILINEAR) for each in image.permute(0, 2, 3, 1).numpy()]
    return torch.from_numpy(np.stack(scaled)).permute(0, 3, 1, 2)


def _made(processor: Any, images: Images) -> dict[str, Any]:
    how = {"return_tensors": "pt", "input_data_format": "channels_last"}
    return dict(processor(images, return_row_col_info=True, **how))


def _processor(scale: Scale) -> Any:
    """Return the family's processor, which scales images in this way."""
    stubs = {name: ModuleType(name) for name in STUBS}
    stubs[STUBS[-1]].functional = None  # type: ignore[attr-defined]
    with patch.dict(sys.modules, stubs):
        own: Any = import_module("transformers.models.lfm2_vl.image_processing_lfm2_vl")

    class Scaling(own.TorchvisionBackend):
        def resize(self, image: torch.Tensor, size: Any, **how: Any) -> torch.Tensor:
            return scale(image, size.height, size.width)

        def normalize(self, image: torch.Tensor, mean: Any, std: Any, **how: Any) -> torch.Tensor:
            mean, std = (torch.as_tensor(each)[:, None, None] for each in (mean, std))
            return (image - mean) / std

    class Processor(own.Lfm2VlImageProcessor, Scaling):
        pass

    return Processor(**PREPROCESSOR)
