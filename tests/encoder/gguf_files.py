"""GGUF files of text encoders, as llama.cpp's converter writes them; and a small model."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from py_runtime.encoder.config import EncoderConfig, encoder_config
from py_runtime.encoder.tensors import expected_shapes, is_matrix
from py_runtime.folder.plain_safetensors import write_safetensors
from py_runtime.gguf.encoder import gguf_name
from tests.gguf.written import Tensor, file

FUSED = {
    "attn_qkv": ("attn_q.weight", "attn_k.weight", "attn_v.weight"),
    "ffn_up": ("ffn_gate.weight", "ffn_up.weight"),
}
FUSING = {"nomic-bert": ("attn_qkv",), "modern-bert": ("attn_qkv", "ffn_up")}
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
        name = gguf_name(own, config.family)
        block, _, part = name.rpartition(".weight")[0].rpartition(".")
        wholes = [each for each in FUSING.get(architecture, ()) if f"{part}.weight" in FUSED[each]]
        if wholes:
            fused.setdefault(f"{block}.{wholes[0]}.weight", []).append(state[own])
        else:
            tensors.append(tensor(name, state[own], kind if is_matrix(own, dims) else "F32"))
    for name, parts in fused.items():
        tensors.append(tensor(name, np.concatenate(parts), kind))
    return file(metadata(architecture, config, words, pooling), tensors)


def tensor(name: str, values: np.ndarray, kind: str) -> Tensor:
    if kind == "F32":
        return Tensor.floats(name, values)
    from gguf import GGMLQuantizationType, quantize  # few tests need it

    data = quantize(np.ascontiguousarray(values, np.float32), GGMLQuantizationType[kind])
    return Tensor(name, values.shape, kind, data.tobytes())


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
        **{f"{architecture}.{key}": value for key, value in _own_keys(architecture, config)},
        "tokenizer.ggml.model": "bert",
        "tokenizer.ggml.tokens": [as_stored(token, special) for token in tokens],
        "tokenizer.ggml.token_type": [3 if token in special else 1 for token in tokens],
        "tokenizer.ggml.cls_token_id": roles["CLS"],
        "tokenizer.ggml.seperator_token_id": roles["SEP"],
        "tokenizer.ggml.unknown_token_id": roles["UNK"],
        "tokenizer.ggml.padding_token_id": roles["PAD"],
        "tokenizer.ggml.mask_token_id": roles["MASK"],
    }


def _own_keys(architecture: str, config: EncoderConfig) -> Iterator[tuple[str, Any]]:
    if config.family.is_turned:
        yield "rope.freq_base", config.theta
    if config.reaches:
        whole = [number for number, reach in enumerate(config.reaches) if reach is None]
        yield "attention.sliding_window", 2 * next(filter(None, config.reaches))
        yield "attention.sliding_window_pattern", whole[1] if len(whole) > 1 else whole[0] + 1
        yield "rope.freq_base_swa", config.local_theta
    if config.family.is_rms:
        yield "attention.layer_norm_rms_epsilon", config.eps
        yield "attention.head_count_kv", config.kv_heads
        yield "attention.key_length", config.head_dim


def as_stored(token: str, special: set[str]) -> str:
    """Spell a token as GGUF files do: those that begin a word are marked."""
    if token in special:
        return token
    return token[2:] if token.startswith("##") else f"▁{token}"
