"""Small random encoders, saved by transformers as people save theirs, and the same as GGUF."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gguf import GGMLQuantizationType, quantize
from transformers import AutoConfig, AutoModel, PreTrainedModel

from py_runtime.encoder.config import EncoderConfig, encoder_config
from py_runtime.encoder.families import BY_ARCHITECTURE
from py_runtime.encoder.tensors import expected_shapes, is_matrix
from py_runtime.gguf.encoder import OF_A_LAYER, OF_THE_MODEL
from tests.gguf.written import Tensor, file
from tests.tokens.styles import cached

WIDTH, HIDDEN, LAYERS, HEADS, POSITIONS = 64, 160, 2, 4, 96
SIZES: dict[str, Any] = {
    "hidden_size": WIDTH,
    "intermediate_size": HIDDEN,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "max_position_embeddings": POSITIONS,
    "pad_token_id": 0,
}
DISTILBERT = {
    "dim": WIDTH,
    "hidden_dim": HIDDEN,
    "n_layers": LAYERS,
    "n_heads": HEADS,
    "max_position_embeddings": POSITIONS,
}
FAMILIES: dict[str, dict[str, Any]] = {
    "bert": {"model_type": "bert", **SIZES},
    "bert with relu": {"model_type": "bert", **SIZES, "hidden_act": "relu"},
    "roberta": {"model_type": "roberta", **SIZES, "type_vocab_size": 1, "pad_token_id": 1},
    "distilbert": {"model_type": "distilbert", **DISTILBERT},
    "nomic": {"model_type": "nomic_bert", **SIZES},
}
SENTENCES = ["Two foxes ran.", "the hills are far away", "Ünïcode, 42 times!", "a"]
Files = dict[str, np.ndarray]  # bytes


def vocabulary() -> dict[str, int]:
    found: dict[str, int] = cached("bert")["model"]["vocab"]
    return found


def make_encoder(family: str) -> PreTrainedModel:
    """Random weights that matter: norms and biases differ from 1 and 0, too."""
    torch.manual_seed(0)
    config = AutoConfig.for_model(**FAMILIES[family], vocab_size=len(vocabulary()))
    model = AutoModel.from_config(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "norm" in name.lower() and name.endswith("weight"):
                parameter.uniform_(0.5, 1.5)
            elif name.endswith("bias"):
                parameter.normal_(0, 0.2)
            else:
                parameter.normal_(0, 0.15)
    return model


def files_of(folder: Path, model: PreTrainedModel, **others: Any) -> Files:
    """Save a checkpoint and return its files; `others` are JSON files by their names."""
    model.save_pretrained(folder)
    (folder / "tokenizer.json").write_text(json.dumps(cached("bert")))
    for name, content in others.items():
        path = folder / f"{name.replace('__', '/')}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(content))
    paths = [path for path in folder.rglob("*") if path.is_file()]
    return {
        path.relative_to(folder).as_posix(): np.frombuffer(path.read_bytes(), np.uint8)
        for path in paths
    }


def hidden_states(model: PreTrainedModel, tokens: list[int]) -> np.ndarray:
    """Return what transformers computes of one text: f64 [S, W]."""
    with torch.no_grad():
        states = model(torch.tensor([tokens])).last_hidden_state[0]
    return np.asarray(states.double().numpy())


def pooled(states: np.ndarray, pooling: str = "mean") -> np.ndarray:
    """Pool hidden states as sentence-transformers does, to a vector of any length."""
    places = np.arange(1, len(states) + 1)
    return {
        "mean": states.mean(axis=0),
        "cls": states[0],
        "last": states[-1],
        "mean_sqrt_len": states.sum(axis=0) / len(states) ** 0.5,
        "weightedmean": (states * places[:, None]).sum(axis=0) / places.sum(),
    }[pooling]


def gguf_of(
    architecture: str,
    model: PreTrainedModel,
    kind: str = "F32",
    pooling: int = 1,
    words: dict[str, int] | None = None,
) -> np.ndarray:
    """Write a file as llama.cpp's converter does: its bytes."""
    family = BY_ARCHITECTURE[architecture]
    config = encoder_config(model.config.to_dict())
    state = {name: value.numpy() for name, value in model.state_dict().items()}
    tensors = []
    fused: dict[str, list[np.ndarray]] = {}
    for own, dims in expected_shapes(config).items():
        values = state[family.checkpoint_name(own)]
        name = gguf_name(own)
        if architecture == "nomic-bert" and name.endswith(QKV):
            fused.setdefault(name.rpartition(".attn_")[0], []).append(values)
        else:
            tensors.append(tensor(name, values, kind if is_matrix(own, dims) else "F32"))
    for block, parts in fused.items():
        tensors.append(tensor(f"{block}.attn_qkv.weight", np.concatenate(parts), kind))
    about = metadata(architecture, config, pooling, words or vocabulary())
    return np.frombuffer(file(about, tensors), np.uint8)


QKV = ("attn_q.weight", "attn_k.weight", "attn_v.weight")


def tensor(name: str, values: np.ndarray, kind: str) -> Tensor:
    data = quantize(np.ascontiguousarray(values, np.float32), GGMLQuantizationType[kind])
    return Tensor(name, values.shape, kind, data.tobytes())


def gguf_name(own: str) -> str:
    if own in OF_THE_MODEL:
        return OF_THE_MODEL[own]
    _, number, part = own.split(".", 2)
    owner, _, ending = part.rpartition(".")
    return f"blk.{number}.{OF_A_LAYER[owner]}.{ending}"


def metadata(
    architecture: str, config: EncoderConfig, pooling: int, words: dict[str, int]
) -> dict[str, Any]:
    tokens = sorted(words, key=words.__getitem__)
    roles = {role: words[f"[{role}]"] for role in ("PAD", "UNK", "CLS", "SEP", "MASK")}
    special = {f"[{role}]" for role in roles}
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
