"""Small random encoders, saved by transformers as people save theirs, and the same as GGUF."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoConfig, AutoModel, PreTrainedModel

from py_runtime.encoder.config import encoder_config
from py_runtime.encoder.tensors import expected_shapes
from tests.encoder.gguf_files import encoder_file
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
    "xlm-roberta": {
        "model_type": "xlm-roberta",
        **SIZES,
        "type_vocab_size": 1,
        "pad_token_id": 1,
    },
    "distilbert": {"model_type": "distilbert", **DISTILBERT},
    "nomic": {"model_type": "nomic_bert", **SIZES},
    "modernbert": {
        "model_type": "modernbert",
        **SIZES,
        "num_hidden_layers": 3,
        "global_attn_every_n_layers": 2,
        "local_attention": 16,
        **dict.fromkeys(("cls_token_id", "sep_token_id", "bos_token_id", "eos_token_id"), 1),
    },
    "embedding gemma": {
        "model_type": "gemma3_text",
        **SIZES,
        "num_key_value_heads": 2,
        "head_dim": 24,
        "query_pre_attn_scalar": 24,
        "sliding_window": 16,
        "layer_types": ["sliding_attention", "full_attention"],
        "use_bidirectional_attention": True,
    },
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
    dense: Sequence[np.ndarray] = (),  # behind the pooling
) -> np.ndarray:
    """Write the same model as a GGUF file: its bytes."""
    own_config = encoder_config(model.config.to_dict())
    config = replace(own_config, dense=tuple(len(matrix) for matrix in dense))
    stored = {name: value.numpy() for name, value in model.state_dict().items()}
    is_nomic = architecture == "nomic-bert"  # its tensors in transformers have our names
    state = {
        own: _stored(stored, own if is_nomic else config.family.checkpoint_name(own))
        for own in expected_shapes(own_config)
    }
    state |= {f"dense.{number}.weight": matrix for number, matrix in enumerate(dense)}
    if config.family.norms_from_one:
        state = {own: value + (value.ndim == 1) for own, value in state.items()}
    data = encoder_file(architecture, config, words or vocabulary(), state, kind, pooling)
    return np.frombuffer(data, np.uint8)


def _stored(stored: dict[str, np.ndarray], name: str) -> np.ndarray:
    """Return a tensor, or its rows of a fused one: `Wqkv, self_attn.k_proj.weight`."""
    fused, comma, part = name.partition(", ")
    if not comma:
        return stored[name]
    parts = [f"self_attn.{each}_proj.weight" for each in "qkv"]
    parts = parts if part in parts else ["mlp.gate_proj.weight", "mlp.up_proj.weight"]
    return np.split(stored[f"{fused}.weight"], len(parts))[parts.index(part)]
