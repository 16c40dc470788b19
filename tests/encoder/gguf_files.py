"""GGUF files of text encoders, as llama.cpp's converter writes them; and a small model."""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from py_runtime.encoder.config import EncoderConfig, encoder_config
from py_runtime.encoder.tensors import expected_shapes, is_matrix
from py_runtime.folder.plain_safetensors import write_safetensors
from py_runtime.gguf.encoder import OF_A_LAYER, OF_THE_MODEL
from tests.gguf.written import Tensor, file

QKV = ("attn_q.weight", "attn_k.weight", "attn_v.weight")
ROLES = ("PAD", "UNK", "CLS", "SEP", "MASK")
LETTERS = "abcdefghijklmnopqrstuvwxyz"
SMALL_WORDS = [*(f"[{role}]" for role in ROLES), *LETTERS, *(f"##{x}" for x in LETTERS), "the"]
SMALL: dict[str, Any] = {
    "model_type": "bert",
    "vocab_size": len(SMALL_WORDS),
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "max_position_embeddings": 48,
    "type_vocab_size": 2,
}


def small_encoder(architecture: str = "bert") -> bytes:
    """Write a file of some fifty kilobytes, with random weights."""
    config = encoder_config({**SMALL, "model_type": architecture.replace("-", "_")})
    words = {word: number for number, word in enumerate(SMALL_WORDS)}
    return encoder_file(architecture, config, words, _state(config))


def small_checkpoint() -> dict[str, bytes]:
    """Return the files of the same model as people publish it, by their paths."""
    config = encoder_config(SMALL)
    weights = {config.family.checkpoint_name(own): it for own, it in _state(config).items()}
    modules = [
        {"type": f"sentence_transformers.models.{kind}", "path": path}
        for kind, path in (("Transformer", ""), ("Pooling", "1_Pooling"), ("Normalize", "2_N"))
    ]
    prompts = {"prompts": {"query": "find "}, "default_prompt_name": None}
    parsed: dict[str, Any] = {
        "config.json": SMALL,
        "modules.json": modules,
        "1_Pooling/config.json": {"pooling_mode_mean_tokens": True},
        "config_sentence_transformers.json": prompts,
    }
    return {
        **{name: json.dumps(content).encode() for name, content in parsed.items()},
        "vocab.txt": "\n".join(SMALL_WORDS).encode(),
        "model.safetensors": write_safetensors(weights),
    }


def _state(config: EncoderConfig) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(2)
    return {name: rng.normal(0, 0.2, dims) for name, dims in expected_shapes(config).items()}


def encoder_file(
    architecture: str,
    config: EncoderConfig,
    words: Mapping[str, int],
    state: Mapping[str, np.ndarray],  # by the engine's names
    kind: str = "F32",
    pooling: int = 1,
) -> bytes:
    """Write a file whose matrices are of this kind."""
    tensors = []
    fused: dict[str, list[np.ndarray]] = {}
    for own, dims in expected_shapes(config).items():
        name = gguf_name(own)
        if architecture == "nomic-bert" and name.endswith(QKV):
            fused.setdefault(name.rpartition(".attn_")[0], []).append(state[own])
        else:
            tensors.append(tensor(name, state[own], kind if is_matrix(own, dims) else "F32"))
    for block, parts in fused.items():
        tensors.append(tensor(f"{block}.attn_qkv.weight", np.concatenate(parts), kind))
    return file(metadata(architecture, config, words, pooling), tensors)


def tensor(name: str, values: np.ndarray, kind: str) -> Tensor:
    if kind == "F32":
        return Tensor.floats(name, values)
    from gguf import GGMLQuantizationType, quantize  # few tests need it

    data = quantize(np.ascontiguousarray(values, np.float32), GGMLQuantizationType[kind])
    return Tensor(name, values.shape, kind, data.tobytes())


def gguf_name(own: str) -> str:
    if own in OF_THE_MODEL:
        return OF_THE_MODEL[own]
    _, number, part = own.split(".", 2)
    owner, _, ending = part.rpartition(".")
    return f"blk.{number}.{OF_A_LAYER[owner]}.{ending}"


def metadata(
    architecture: str, config: EncoderConfig, words: Mapping[str, int], pooling: int
) -> dict[str, Any]:
    tokens = sorted(words, key=words.__getitem__)
    roles = {role: words[f"[{role}]"] for role in ROLES}
    special = {f"[{role}]" for role in ROLES}
    return {
        "general.architecture": architecture,
        f"{architecture}.block_count": config.layers,
        f"{architecture}.context_length": config.positions,
        f"{architecture}.embedding_length": config.width,
        f"{architecture}.feed_forward_length": config.hidden,
        f"{architecture}.attention.head_count": config.heads,
        f"{architecture}.attention.layer_norm_epsilon": config.eps,
        f"{architecture}.attention.causal": False,
        f"{architecture}.pooling_type": pooling,
        **({f"{architecture}.rope.freq_base": 1000.0} if architecture == "nomic-bert" else {}),
        "tokenizer.ggml.model": "bert",
        "tokenizer.ggml.tokens": [as_stored(token, special) for token in tokens],
        "tokenizer.ggml.token_type": [3 if token in special else 1 for token in tokens],
        "tokenizer.ggml.cls_token_id": roles["CLS"],
        "tokenizer.ggml.seperator_token_id": roles["SEP"],
        "tokenizer.ggml.unknown_token_id": roles["UNK"],
        "tokenizer.ggml.padding_token_id": roles["PAD"],
        "tokenizer.ggml.mask_token_id": roles["MASK"],
    }


def as_stored(token: str, special: set[str]) -> str:
    """Spell a token as GGUF files do: those that begin a word are marked."""
    if token in special:
        return token
    return token[2:] if token.startswith("##") else f"▁{token}"
