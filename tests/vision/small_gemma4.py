"""A small random Gemma 4 that sees."""

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import torch
from transformers import Gemma4Config, Gemma4ForConditionalGeneration, PreTrainedModel
from transformers.models.gemma4.image_processing_pil_gemma4 import Gemma4ImageProcessorPil

from py_runtime.vision.resample import BICUBIC, resized
from py_runtime.vision.sight import Sight
from tests.gguf.written import Tensor
from tests.vision.small_families import (
    CONTEXT,
    HEAD_DIM,
    HEADS,
    KV_HEADS,
    Images,
    SmallFamily,
    check_scaling,
)
from tests.vision.towers import TOWERS

PATCH, FACTOR, ROWS, POSITIONS = 4, 2, 70, 160
LAYERS, WINDOW, WIDE, OF_LAYERS = 4, 12, 32, 8
TYPES = ["sliding_attention", "full_attention"] * 2
TURNING = 0.25  # of a full layer's pairs


class SmallGemma4(SmallFamily):
    """Gemma 4: the last two layers share keys, and each has embeddings of its own."""

    special = ("<pad>", "<|image>", "<|image|>", "<image|>")
    row = written = "<|image|>"
    architecture, projector = "gemma4", "gemma4v"
    parts: ClassVar = {
        "post_attention_layernorm": "post_attention_norm",
        "pre_feedforward_layernorm": "ffn_norm",
        "post_feedforward_layernorm": "post_ffw_norm",
        "self_attn.q_norm": "attn_q_norm",
        "self_attn.k_norm": "attn_k_norm",
        "per_layer_input_gate": "inp_gate",
        "per_layer_projection": "proj",
        "post_per_layer_input_norm": "post_norm",
    }
    whole: ClassVar = {
        "embed_tokens_per_layer": "per_layer_token_embd",
        "per_layer_model_projection": "per_layer_model_proj",
        "per_layer_projection_norm": "per_layer_proj_norm",
    }

    def make(self) -> PreTrainedModel:
        text = {
            **self.text_config,
            "num_hidden_layers": LAYERS,
            "global_head_dim": WIDE,
            "num_kv_shared_layers": 2,
            "use_double_wide_mlp": True,
            "hidden_size_per_layer_input": OF_LAYERS,
            "vocab_size_per_layer_input": len(self.tokens),
            "sliding_window": WINDOW,
            "layer_types": TYPES,
            "pad_token_id": self.id_of("<pad>"),
            "final_logit_softcapping": 30.0,
        }
        tower = {
            "hidden_size": 48,
            "intermediate_size": 40,
            "num_hidden_layers": 2,
            "num_attention_heads": 3,
            "num_key_value_heads": 3,
            "head_dim": 16,
            "patch_size": PATCH,
            "pooling_kernel_size": FACTOR,
            "position_embedding_size": POSITIONS,
            "use_clipped_linears": True,
            "standardize": True,
        }
        config = Gemma4Config(
            text_config=text,
            vision_config=tower,
            audio_config=None,
            image_token_id=self.id_of(self.row),
            boi_token_id=self.id_of("<|image>"),
            eoi_token_id=self.id_of("<image|>"),
            video_token_id=len(self.tokens) + 1,
            audio_token_id=len(self.tokens) + 2,
            eos_token_id=1,
        )
        model = Gemma4ForConditionalGeneration(config)
        for name, bound in model.named_buffers():
            self._fill_buffer(name, bound)
        return model

    def _fill_buffer(self, name: str, values: torch.Tensor) -> None:
        """Set bounds that cut something off, and what centres and scales rows."""
        bounds = {"input_min": -0.9, "input_max": 1.1, "output_min": -0.8, "output_max": 0.7}
        for ending, bound in bounds.items():
            if name.endswith(ending):
                values.fill_(bound)
        if name.endswith("std_bias"):
            values.normal_(0, 0.5)
        elif name.endswith("std_scale"):
            values.uniform_(0.5, 1.5)
        elif name.endswith("layer_scalar"):
            values.fill_(0.9)

    def processed(self, images: Images) -> dict[str, Any]:
        processor = Gemma4ImageProcessorPil(
            patch_size=PATCH, pooling_kernel_size=FACTOR, max_soft_tokens=ROWS
        )
        how = {"return_tensors": "pt", "input_data_format": "channels_last"}
        whole = processor(images, **how)
        sizes = [(at.amax(0) + 1).tolist() for at in whole["image_position_ids"]]
        scaled = [
            resized(image, wide * PATCH, high * PATCH, BICUBIC)
            for image, (wide, high) in zip(images, sizes, strict=True)
        ]
        found = processor(scaled, do_resize=False, **how)
        check_scaling(2 * whole["pixel_values"], 2 * found["pixel_values"])
        return {name: found[name] for name in ("pixel_values", "image_position_ids")}

    def features(self, image: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            found = self.model.model.get_image_features(**self.processed([image]))
        return np.concatenate([part.numpy() for part in found.pooler_output])

    def text_of(self, image: np.ndarray) -> str:
        at = self.processed([image])["image_position_ids"]
        rows = int((at[0, :, 0] >= 0).sum()) // FACTOR**2
        return f"<|image>{self.row * rows}<image|>"

    def kinds_of(self, tokens: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"mm_token_type_ids": (tokens == self.id_of(self.row)).int()}

    def sight(self) -> Sight:
        return TOWERS["gemma4"].sight

    def projector_keys(self) -> dict[str, Any]:
        return TOWERS["gemma4"].keys

    def decoder_keys(self) -> dict[str, Any]:
        return {
            "block_count": LAYERS,
            "context_length": CONTEXT,
            "attention.head_count": HEADS,
            "attention.head_count_kv": KV_HEADS,
            "attention.key_length": WIDE,
            "attention.value_length": WIDE,
            "attention.key_length_swa": HEAD_DIM,
            "attention.value_length_swa": HEAD_DIM,
            "attention.shared_kv_layers": 2,
            "attention.sliding_window": WINDOW,
            "attention.sliding_window_pattern": [kind != TYPES[1] for kind in TYPES],
            "feed_forward_length": [48] * 2 + [96] * 2,
            "embedding_length_per_layer_input": OF_LAYERS,
            "rope.freq_base": 1e6,
            "rope.freq_base_swa": 1e4,
            "rope.dimension_count": WIDE,
            "rope.dimension_count_swa": HEAD_DIM,
        }

    def _decoder_tensors(self) -> Iterator[Tensor]:
        yield from super()._decoder_tensors()
        pairs = WIDE // 2
        stopped = np.full(pairs, 1e30, np.float32)
        stopped[: int(TURNING * pairs)] = 1
        yield Tensor.floats("rope_freqs.weight", stopped)
        for name, tensor in self.model.state_dict().items():
            if name.endswith("layer_scalar"):
                number = name.split(".")[-2]
                yield Tensor.floats(f"blk.{number}.layer_output_scale.weight", tensor.numpy())

    def preprocessor(self) -> dict[str, Any]:
        return {
            "patch_size": PATCH,
            "pooling_kernel_size": FACTOR,
            "max_soft_tokens": ROWS,
            "do_normalize": False,
        }

    def tower_tensors(self) -> list[Tensor]:
        """Give the first matrix by channels, as the family's converter does."""
        found = super().tower_tensors()
        for at, tensor in enumerate(found):
            if tensor.name == "v.patch_embd.weight":
                values = self.model.model.vision_tower.patch_embedder.input_proj.weight
                pixels = values.detach().numpy().reshape(-1, PATCH, PATCH, 3)
                found[at] = Tensor.floats(tensor.name, pixels.transpose(0, 3, 1, 2))
        return found
