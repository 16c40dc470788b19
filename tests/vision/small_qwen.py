"""Small random Qwen2.5-VL and Qwen3-VL."""

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import torch
from transformers import (
    PreTrainedModel,
    Qwen2_5_VLConfig,
    Qwen2_5_VLForConditionalGeneration,
    Qwen3VLConfig,
    Qwen3VLForConditionalGeneration,
)
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

from py_runtime.vision.qwen_names import SECOND_FRAME
from py_runtime.vision.resample import BICUBIC, resized
from py_runtime.vision.sight import Sight
from tests.gguf.written import Tensor
from tests.vision.small_families import WIDTH, Images, SmallFamily, check_scaling
from tests.vision.towers import HALVES, LEAST, MOST, TOWERS, WINDOW

PATCH, TOWER, HIDDEN, TOWER_HEADS, TOWER_LAYERS = 4, 32, 40, 2, 3
SECTIONS = [2, 3, 3]  # of the eight pairs of a head


class SmallQwen(SmallFamily):
    """The parts that both have in common."""

    special = ("<|vision_start|>", "<|image_pad|>", "<|vision_end|>")
    row = written = "<|image_pad|>"
    mean, std = HALVES, HALVES
    tower: ClassVar[str]

    @property
    def template(self) -> str:
        return super().template.replace(self.row, f"<|vision_start|>{self.row}<|vision_end|>")

    @property
    def text_config(self) -> dict[str, Any]:
        rope = {"rope_type": "default", "rope_theta": 1e4, "mrope_section": SECTIONS}
        return {**super().text_config, "rope_parameters": rope}

    @property
    def tower_config(self) -> dict[str, Any]:
        return {
            "hidden_size": TOWER,
            "intermediate_size": HIDDEN,
            "depth": TOWER_LAYERS,
            "num_heads": TOWER_HEADS,
            "patch_size": PATCH,
            "out_hidden_size": WIDTH,
        }

    @property
    def ids(self) -> dict[str, Any]:
        return {
            "image_token_id": self.id_of(self.row),
            "vision_start_token_id": self.id_of("<|vision_start|>"),
            "vision_end_token_id": self.id_of("<|vision_end|>"),
            "video_token_id": 0,
            "tie_word_embeddings": False,
        }

    def processed(self, images: Images) -> dict[str, Any]:
        processor = Qwen2VLImageProcessorPil(
            **self.preprocessor(), patch_size=PATCH, temporal_patch_size=2, merge_size=2
        )
        how = {"return_tensors": "pt", "input_data_format": "channels_last"}
        whole = processor(images, **how)
        grids = whole["image_grid_thw"].tolist()
        scaled = [
            resized(image, wide * PATCH, high * PATCH, BICUBIC)
            for image, (_, high, wide) in zip(images, grids, strict=True)
        ]
        found = processor(scaled, **how)
        check_scaling(whole["pixel_values"], found["pixel_values"])
        return dict(found)

    def preprocessor(self) -> dict[str, Any]:
        size = {"shortest_edge": LEAST, "longest_edge": MOST}
        return {"size": size, "image_mean": self.mean, "image_std": self.std}

    def features(self, image: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            found = self.model.model.get_image_features(**self.processed([image]))
        deep = [each[0] for each in getattr(found, "deepstack_features", None) or []]
        parts = [torch.cat(list(found.pooler_output)), *deep]
        return np.concatenate([part.numpy() for part in parts], axis=1)

    def text_of(self, image: np.ndarray) -> str:
        (_, high, wide), *_ = self.processed([image])["image_grid_thw"].tolist()
        return f"<|vision_start|>{self.row * (high * wide // 4)}<|vision_end|>"

    def kinds_of(self, tokens: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"mm_token_type_ids": (tokens == self.id_of(self.row)).int()}

    def sight(self) -> Sight:
        return TOWERS[self.tower].sight

    def projector_keys(self) -> dict[str, Any]:
        return TOWERS[self.tower].keys

    def decoder_keys(self) -> dict[str, Any]:
        return {"rope.freq_base": 1e4, "rope.dimension_sections": [*SECTIONS, 0]}

    def tower_tensors(self) -> list[Tensor]:
        """Split the frames of a patch, and what the family's converter splits."""
        sight = self.sight()
        own_names = [own for own in sight.shapes() if own != SECOND_FRAME]
        named = {sight.checkpoint_name(own): own for own in own_names}
        found = []
        for name, tensor in self.model.model.visual.state_dict().items():
            values = tensor.float().numpy()
            if values.ndim == 5:
                found.append(Tensor.floats("v.patch_embd.weight", values[:, :, 0]))
                found.append(Tensor.floats("v.patch_embd.weight.1", values[:, :, 1]))
            elif ".qkv." in name:
                found += self.turned(name, values)
            else:
                found.append(Tensor.floats(sight.gguf_name(named[name]), values))
        return found

    @abstractmethod
    def turned(self, name: str, values: np.ndarray) -> Iterator[Tensor]:
        """Write the tower's queries, keys and values as the family's files have them."""


class SmallQwen25(SmallQwen):
    """Qwen2.5-VL: windows of two rows by two, and a layer without."""

    architecture, projector = "qwen2vl", "qwen2.5vl_merger"
    tower = "qwen2.5-vl"

    def make(self) -> PreTrainedModel:
        tower = {"window_size": WINDOW, "fullatt_block_indexes": [1]}
        config = Qwen2_5_VLConfig(
            text_config=self.text_config,
            vision_config={**self.tower_config, **tower},
            **self.ids,
        )
        return Qwen2_5_VLForConditionalGeneration(config)

    def turned(self, name: str, values: np.ndarray) -> Iterator[Tensor]:
        _, number, *_, ending = name.split(".")
        for part, rows in zip("qkv", np.split(values, 3), strict=True):
            yield Tensor.floats(f"v.blk.{number}.attn_{part}.{ending}", rows)


class SmallQwen3(SmallQwen):
    """Qwen3-VL: a table of positions, and rows of its own for the first layer."""

    architecture, projector = "qwen3vl", "qwen3vl_merger"
    tower = "qwen3-vl"
    parts: ClassVar = {"self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm"}

    def make(self) -> PreTrainedModel:
        tower = {"num_position_embeddings": 16, "deepstack_visual_indexes": [1]}
        config = Qwen3VLConfig(
            text_config=self.text_config,
            vision_config={**self.tower_config, **tower},
            **self.ids,
        )
        return Qwen3VLForConditionalGeneration(config)

    def decoder_keys(self) -> dict[str, Any]:
        return {**super().decoder_keys(), "n_deepstack_layers": 1}

    def turned(self, name: str, values: np.ndarray) -> Iterator[Tensor]:
        _, number, *_, ending = name.split(".")
        yield Tensor.floats(f"v.blk.{number}.attn_qkv.{ending}", values)
