"""A small random Gemma 3 that sees."""

from typing import Any, ClassVar

import numpy as np
import torch
from transformers import Gemma3Config, Gemma3ForConditionalGeneration, PreTrainedModel
from transformers.models.gemma3.image_processing_pil_gemma3 import Gemma3ImageProcessorPil

from py_runtime.vision.resample import BILINEAR, resized
from py_runtime.vision.sight import Sight
from tests.vision.small_families import Images, SmallFamily, check_scaling
from tests.vision.towers import HALVES, TOWERS

SIDE, PATCH, ROWS = 32, 4, 16
WINDOW = 12  # narrower than an image


class SmallGemma3(SmallFamily):
    """Gemma 3: a layer that slides and one that does not."""

    special = ("<start_of_image>", "<image_soft_token>", "<end_of_image>")
    row, written = "<image_soft_token>", "<start_of_image>"
    architecture, projector = "gemma3", "gemma3"
    norms_from_one = True
    parts: ClassVar = {
        "post_attention_layernorm": "post_attention_norm",
        "pre_feedforward_layernorm": "ffn_norm",
        "post_feedforward_layernorm": "post_ffw_norm",
        "self_attn.q_norm": "attn_q_norm",
        "self_attn.k_norm": "attn_k_norm",
    }

    def make(self) -> PreTrainedModel:
        text = {
            **self.text_config,
            "sliding_window": WINDOW,
            "layer_types": ["sliding_attention", "full_attention"],
            "query_pre_attn_scalar": 16,
        }
        tower = {
            "hidden_size": 24,
            "intermediate_size": 40,
            "num_hidden_layers": 2,
            "num_attention_heads": 3,
            "image_size": SIDE,
            "patch_size": PATCH,
        }
        config = Gemma3Config(
            text_config=text,
            vision_config=tower,
            mm_tokens_per_image=ROWS,
            image_token_index=self.id_of(self.row),
            boi_token_index=self.id_of("<start_of_image>"),
            eoi_token_index=self.id_of("<end_of_image>"),
            eos_token_id=1,
            pad_token_id=0,
        )
        return Gemma3ForConditionalGeneration(config)

    def processed(self, images: Images) -> dict[str, Any]:
        processor = Gemma3ImageProcessorPil(size={"height": SIDE, "width": SIDE})
        how = {"return_tensors": "pt", "input_data_format": "channels_last"}
        scaled = [resized(image, SIDE, SIDE, BILINEAR) for image in images]
        whole, found = (processor(each, **how)["pixel_values"] for each in (images, scaled))
        check_scaling(whole, found)
        return {"pixel_values": found}

    def features(self, image: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            found = self.model.model.get_image_features(**self.processed([image]))
        return np.asarray(found.pooler_output[0].numpy())

    def text_of(self, image: np.ndarray) -> str:
        return f"\n\n<start_of_image>{self.row * ROWS}<end_of_image>\n\n"

    def kinds_of(self, tokens: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"token_type_ids": (tokens == self.id_of(self.row)).long()}

    def sight(self) -> Sight:
        return TOWERS["gemma3"].sight

    def projector_keys(self) -> dict[str, Any]:
        return TOWERS["gemma3"].keys

    def decoder_keys(self) -> dict[str, Any]:
        return {
            "rope.freq_base": 1e6,
            "attention.sliding_window": WINDOW,
            "attention.sliding_window_pattern": [True, False],
        }

    def preprocessor(self) -> dict[str, Any]:
        return {"size": {"height": SIDE, "width": SIDE}, "image_mean": HALVES, "image_std": HALVES}
