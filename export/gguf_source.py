"""GGUF files: metadata gives config, tokenizer and template; known types are taken bit for bit."""

import mmap
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gguf import GGMLQuantizationType, GGUFReader, ReaderTensor, dequantize
from torch import Tensor

from export.decoder import WeightKind
from export.errors import ExportError
from export.gguf_check import check_gguf
from export.gguf_tokenizer import read_tokenizer
from export.quantisers import Parts
from export.sources import Quantisation, Source
from py_runtime.program.weight_kinds import pack_nibbles

ARCHITECTURES = {"llama": "llama", "qwen2": "qwen2", "qwen3": "qwen3"}
# Only this one stores the rows of q and k so that rotary pairs lie side by side.
INTERLEAVED_ROTARY = ("llama",)
KIND_OF = {
    GGMLQuantizationType.Q4_0: "q4_0",
    GGMLQuantizationType.Q4_1: "q4_1",
    GGMLQuantizationType.Q8_0: "q8_0",
    GGMLQuantizationType.F32: "f32",
    GGMLQuantizationType.F16: "f32",
    GGMLQuantizationType.BF16: "f32",
}
LAYER_NAMES = {
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
TOP_NAMES = {"embed_tokens": "token_embd", "norm": "output_norm", "lm_head": "output"}


class GgufSource(Source):
    """A GGUF file, mapped into memory: tensors are read when they are asked for."""

    _tensors: dict[str, ReaderTensor]
    _file: mmap.mmap
    _interleaved: bool

    @classmethod
    def open(cls, path: Path, quantisation: Quantisation) -> "GgufSource":
        try:
            check_gguf(path)
            reader = GGUFReader(path)
            metadata = {name: field.contents() for name, field in reader.fields.items()}
        except FileNotFoundError:
            raise ExportError(f"there is no file {path}") from None
        except (ValueError, IndexError, KeyError, TypeError, OSError, OverflowError) as error:
            raise ExportError(f"{path} is not a whole GGUF file: {error}") from None
        architecture = metadata.get("general.architecture")
        if architecture not in ARCHITECTURES:
            raise ExportError(
                f"{path}: the architecture '{architecture}' is not supported; these are: "
                f"{', '.join(ARCHITECTURES)}"
            )
        tensors = {tensor.name: tensor for tensor in reader.tensors}
        source = cls(
            str(metadata.get("general.name") or path.stem),
            str(metadata.get("general.license") or "unknown"),
            _hf_config(path, metadata, architecture, tensors),
            read_tokenizer(metadata),
            quantisation,
        )
        source._tensors = tensors
        source._file = reader.data._mmap
        source._interleaved = architecture in INTERLEAVED_ROTARY
        return source

    def kind(self, weight: str) -> WeightKind:
        tensor = self._tensors.get(_gguf_name(weight))
        if tensor is None:
            return self.quantisation.kind_of(weight)  # check() will name it
        known = KIND_OF.get(tensor.tensor_type)
        if known is not None:
            return WeightKind(known)
        text = (
            f"{tensor.tensor_type.name} tensors are dequantised and quantised again as "
            f"{self.quantisation.name}"
        )
        if text not in self.warnings:
            self.warnings.append(text)
        return self.quantisation.kind_of(weight)

    def shape(self, name: str) -> tuple[int, ...] | None:
        tensor = self._tensors.get(_gguf_name(name))
        return None if tensor is None else tuple(int(size) for size in reversed(tensor.shape))

    def dense(self, name: str) -> np.ndarray:
        tensor = self._tensors[_gguf_name(name)]
        try:
            values = dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
        except NotImplementedError:
            kind = tensor.tensor_type.name
            raise ExportError(f"'{tensor.name}' is {kind}, which cannot be dequantised") from None
        self._forget_pages()
        return self._in_halves(name, values)

    def parts(self, weight: str) -> Parts:
        tensor = self._tensors[_gguf_name(weight)]
        kind = KIND_OF.get(tensor.tensor_type)
        if kind is None or kind == "f32":
            return super().parts(weight)
        raw = self._in_halves(weight, tensor.data)  # [N, bytes of a row]
        parts = {"q4_0": _q4_0_parts, "q4_1": _q4_1_parts, "q8_0": _q8_0_parts}[kind](raw)
        self._forget_pages()
        return parts

    def rotary_tables(self, context: int) -> tuple[Tensor, Tensor]:
        """Llama 3.1 and later carry their frequency factors as a tensor."""
        factors = self._tensors.get("rope_freqs.weight")
        if factors is None:
            return super().rotary_tables(context)
        head_dim = self.config.head_dim
        base = self.config.rope_parameters["rope_theta"]
        frequencies = 1.0 / (base ** (torch.arange(0, head_dim, 2).float() / head_dim))
        frequencies = frequencies / torch.from_numpy(np.array(factors.data, np.float32))
        angles = torch.outer(torch.arange(context).float(), frequencies).repeat(1, 2)
        return angles.cos(), angles.sin()

    def _forget_pages(self) -> None:
        """What was read of the mapped file need not stay in memory beside what was made of it."""
        if hasattr(mmap, "MADV_DONTNEED"):
            self._file.madvise(mmap.MADV_DONTNEED)

    def _in_halves(self, name: str, rows: np.ndarray) -> np.ndarray:
        """Undoes the interleaving of rotary pairs: rows (2i, 2i + 1) go back to (i, i + half)."""
        if not self._interleaved or (".q_proj." not in name and ".k_proj." not in name):
            return rows
        is_query = ".q_proj." in name
        heads = self.config.num_attention_heads if is_query else self.config.num_key_value_heads
        pairs = rows.reshape(heads, len(rows) // heads // 2, 2, *rows.shape[1:])
        return pairs.swapaxes(1, 2).reshape(rows.shape)


def _gguf_name(name: str) -> str:
    owner, _, part = name.rpartition(".")
    if owner.startswith("layers."):
        _, number, inner = owner.split(".", 2)
        return f"blk.{number}.{LAYER_NAMES[inner]}.{part}"
    return f"{TOP_NAMES[owner]}.{part}"


def _hf_config(
    path: Path, metadata: dict[str, Any], architecture: str, tensors: dict[str, Any]
) -> dict[str, Any]:
    def get(key: str, default: Any = None) -> Any:
        value = metadata.get(f"{architecture}.{key}", default)
        if value is None:
            raise ExportError(f"{path} has no metadata '{architecture}.{key}'")
        return value

    heads, width = get("attention.head_count"), get("embedding_length")
    for value, what in ((heads, "attention heads"), (width, "as its width")):
        if not isinstance(value, int) or value < 1:
            raise ExportError(f"{path} has {value} {what}, which is not one number for all layers")
    rope: dict[str, Any] = {"rope_type": "default", "rope_theta": get("rope.freq_base", 10000.0)}
    scaling = metadata.get(f"{architecture}.rope.scaling.type", "none")
    if scaling != "none":
        rope |= {"rope_type": scaling, "factor": get("rope.scaling.factor")}
        original = metadata.get(f"{architecture}.rope.scaling.original_context_length")
        if original is not None:
            rope["original_max_position_embeddings"] = original
    tokens = metadata.get("tokenizer.ggml.tokens", [])
    if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
        raise ExportError(f"{path}: tokenizer.ggml.tokens is no list of texts")
    vocabulary = len(tokens) or get("vocab_size")
    return {
        "model_type": ARCHITECTURES[architecture],
        "vocab_size": vocabulary,
        "hidden_size": width,
        "intermediate_size": get("feed_forward_length"),
        "num_hidden_layers": get("block_count"),
        "num_attention_heads": heads,
        "num_key_value_heads": get("attention.head_count_kv", heads),
        "head_dim": get("attention.key_length", width // heads),
        "max_position_embeddings": get("context_length"),
        "rms_norm_eps": get("attention.layer_norm_rms_epsilon"),
        "rope_parameters": rope,
        "attention_bias": architecture == "llama" and "blk.0.attn_q.bias" in tensors,
        "hidden_act": "silu",
        "tie_word_embeddings": "output.weight" not in tensors,
        "bos_token_id": metadata.get("tokenizer.ggml.bos_token_id"),
        "eos_token_id": metadata.get("tokenizer.ggml.eos_token_id"),
    }


def _blocks(raw: np.ndarray, nbytes: int) -> np.ndarray:
    return np.ascontiguousarray(raw).reshape(len(raw), -1, nbytes)  # [N, K/32, nbytes]


def _nibbles(packed: np.ndarray) -> np.ndarray:
    """GGUF has elements 0..15 of a block in low nibbles, 16..31 in high ones; we keep pairs."""
    values = np.concatenate((packed & 15, packed >> 4), -1)  # [N, K/32, 32]
    return pack_nibbles(values.reshape(len(packed), -1))


def _q4_0_parts(raw: np.ndarray) -> Parts:
    blocks = _blocks(raw, 18)
    scales = np.ascontiguousarray(blocks[..., :2]).view(np.float16)[..., 0]
    return {"weight": _nibbles(blocks[..., 2:]), "scales": np.ascontiguousarray(scales)}


def _q4_1_parts(raw: np.ndarray) -> Parts:
    blocks = _blocks(raw, 20)
    scales = np.ascontiguousarray(blocks[..., :4]).view(np.float16)
    return {"weight": _nibbles(blocks[..., 4:]), "scales": scales}


def _q8_0_parts(raw: np.ndarray) -> Parts:
    blocks = _blocks(raw, 34)
    scales = np.ascontiguousarray(blocks[..., :2]).view(np.float16)[..., 0]
    weight = np.ascontiguousarray(blocks[..., 2:]).view(np.int8).reshape(len(raw), -1)
    return {"weight": weight, "scales": np.ascontiguousarray(scales)}
