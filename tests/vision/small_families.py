"""Small random models that see, of several families: in transformers, and as GGUF files."""

import json
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from transformers import PreTrainedModel

from py_runtime.gguf.container import HeaderWalk
from py_runtime.gguf.tokenizer import read_tokenizer
from py_runtime.vision.sight import Sight
from tests.gguf.small import CONTROL, LETTERS, MERGES, NORMAL
from tests.gguf.written import Tensor, file
from tests.vision.small_models import END, PARTS, START, TEMPLATE, tower_tensors
from tests.vision.towers import metadata_of

Images = list[np.ndarray]  # u8 [H, W, 3]
WIDTH, LAYERS, HEADS, KV_HEADS, HEAD_DIM, CONTEXT = 32, 2, 2, 1, 16, 1024

HALF_A_STEP = 0.5 / 127.5  # of a byte, in what towers take: Pillow may take lines first


def check_scaling(whole: torch.Tensor, scaled: torch.Tensor) -> None:
    """Check that images scaled here are those that Pillow scales, up to roundings."""
    assert (whole - scaled).abs().mean() < HALF_A_STEP, "scaled as by the family's processor"


class SmallFamily(ABC):
    """A family: its model, its processor, and its files."""

    special: ClassVar[tuple[str, ...]]  # tokens
    row: ClassVar[str]  # the token of a row
    written: ClassVar[str]  # what a template has for an image
    architecture: ClassVar[str]
    projector: ClassVar[str]
    parts: ClassVar[dict[str, str]] = {}  # names of tensors besides Llama's
    whole: ClassVar[dict[str, str]] = {}  # and of the whole decoder
    norms_from_one: ClassVar[bool] = False
    carries: ClassVar[bool] = False  # states that cannot be cut back

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.tokens = [START, END, *self.special, *LETTERS, "th", "the"]
        self.model = self.make().eval()
        self.model.generation_config.eos_token_id = None  # a token like others
        with torch.no_grad():
            for name, parameter in self.model.named_parameters():
                self._fill(name, parameter)

    def _fill(self, name: str, parameter: torch.Tensor) -> None:
        """Set weights that matter: norms and biases differ from 1 and 0, too."""
        is_norm = "norm" in name or name.endswith("ln_q.weight")
        if is_norm and name.endswith("weight"):
            is_more = self.norms_from_one and ("language_model" in name or "soft_emb" in name)
            parameter.uniform_(0.5 - is_more, 1.5 - is_more)
        elif name.endswith("bias"):
            parameter.normal_(0, 0.2)
        else:
            parameter.normal_(0, 0.15)

    @property
    def text_config(self) -> dict[str, Any]:
        return {
            "vocab_size": len(self.tokens),
            "hidden_size": WIDTH,
            "intermediate_size": 48,
            "num_hidden_layers": LAYERS,
            "num_attention_heads": HEADS,
            "num_key_value_heads": KV_HEADS,
            "head_dim": HEAD_DIM,
            "max_position_embeddings": CONTEXT,
            "rms_norm_eps": 1e-5,
            "bos_token_id": 0,
            "eos_token_id": 1,
            "pad_token_id": None,
        }

    def id_of(self, token: str) -> int:
        return self.tokens.index(token)

    @property
    def template(self) -> str:
        return TEMPLATE.replace("<image>", self.written)

    # What the family's own code does -----------------------------------------------------------

    @abstractmethod
    def make(self) -> PreTrainedModel: ...

    @abstractmethod
    def processed(self, images: Images) -> dict[str, Any]:
        """Return what the family's processor makes of images."""

    @abstractmethod
    def features(self, image: np.ndarray) -> np.ndarray:
        """Return the rows of one image: f32 [rows, columns]."""

    @abstractmethod
    def text_of(self, image: np.ndarray) -> str:
        """Return what the family's processor writes for an image."""

    def greedy(self, ids: list[int], images: Images, count: int) -> list[int]:
        """Return the likeliest tokens after a prompt with images."""
        given = self.processed(images) if images else {}
        tokens = torch.tensor([ids])
        kinds = self.kinds_of(tokens)
        with torch.no_grad():
            out = self.model.generate(
                input_ids=tokens,
                attention_mask=torch.ones_like(tokens),
                max_new_tokens=count,
                do_sample=False,
                **given,
                **kinds,
            )
        return [int(token) for token in out[0, len(ids) :]]

    def kinds_of(self, tokens: torch.Tensor) -> dict[str, torch.Tensor]:
        return {}

    # Files -------------------------------------------------------------------------------------

    @abstractmethod
    def sight(self) -> Sight: ...

    @abstractmethod
    def projector_keys(self) -> dict[str, Any]: ...

    def decoder_keys(self) -> dict[str, Any]:
        return {}

    @abstractmethod
    def preprocessor(self) -> dict[str, Any]: ...

    def model_file(self) -> np.ndarray:
        """Write the decoder as llama.cpp's converter does: its bytes."""
        text = self.model.config.text_config
        keys = {
            "block_count": LAYERS,
            "context_length": CONTEXT,
            "embedding_length": WIDTH,
            "feed_forward_length": text.intermediate_size,
            "attention.head_count": HEADS,
            "attention.head_count_kv": KV_HEADS,
            "attention.key_length": HEAD_DIM,
            "attention.value_length": HEAD_DIM,
            "attention.layer_norm_rms_epsilon": text.rms_norm_eps,
            **self.decoder_keys(),
        }
        metadata = {
            "general.architecture": self.architecture,
            "general.name": "small that sees",
            **{f"{self.architecture}.{key}": value for key, value in keys.items()},
            "tokenizer.ggml.model": "gpt2",
            "tokenizer.ggml.pre": "smollm",
            "tokenizer.ggml.tokens": self.tokens,
            "tokenizer.ggml.token_type": [
                CONTROL if token in (START, END, *self.special) else NORMAL for token in self.tokens
            ],
            "tokenizer.ggml.merges": MERGES,
            "tokenizer.ggml.bos_token_id": 0,
            "tokenizer.ggml.eos_token_id": 1,
            "tokenizer.ggml.add_bos_token": False,
            "tokenizer.chat_template": self.template,
        }
        return np.frombuffer(file(metadata, list(self._decoder_tensors())), np.uint8)

    def _decoder_tensors(self) -> Any:
        usual = {"embed_tokens": "token_embd", "norm": "output_norm", "lm_head": "output"}
        whole = {**usual, **self.whole}
        is_tied = self.model.config.tie_word_embeddings
        for name, tensor in self.model.state_dict().items():
            values = tensor.float().numpy()
            values = values[:, 0] if values.ndim == 3 else values  # what convolves
            own = name.removeprefix("model.language_model.")
            if own == name and name != "lm_head.weight":
                continue
            owner, _, ending = own.rpartition(".")
            if "norm" in own and self.norms_from_one:
                values = values + 1
            if owner in whole and not (is_tied and owner == "lm_head"):
                yield Tensor.floats(f"{whole[owner]}.{ending}", values)
            elif owner.count(".") > 1:  # of a layer's part
                number, part = owner.removeprefix("layers.").split(".", 1)
                yield Tensor.floats(
                    f"blk.{number}.{({**PARTS, **self.parts})[part]}.{ending}", values
                )

    def projector_file(self, **changes: Any) -> np.ndarray:
        """Write the tower as llama.cpp's converter does: the bytes of an mmproj file."""
        metadata = metadata_of(self.projector, {**self.projector_keys(), **changes})
        return np.frombuffer(file(metadata, self.tower_tensors()), np.uint8)

    def tower_tensors(self) -> list[Tensor]:
        return tower_tensors(self.model, self.sight())

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a prompt, in which special ones are spelled."""
        from py_runtime.tokens import Tokenizer

        found = self._tokenizer_files()["tokenizer.json"]
        return Tokenizer.from_json(found).encode(text, add_special_tokens=False)

    def _tokenizer_files(self) -> dict[str, Any]:
        data = self.model_file()
        header = HeaderWalk("x.gguf", len(data)).read(data.tobytes())
        return read_tokenizer(header.metadata)

    def save_checkpoint(self, folder: Path) -> None:
        """Save the model as people publish it: in transformers' files, with a tokenizer."""
        self.model.save_pretrained(folder)
        files = {**self._tokenizer_files(), "preprocessor_config.json": self.preprocessor()}
        for name, content in files.items():
            (folder / name).write_text(json.dumps(content))
