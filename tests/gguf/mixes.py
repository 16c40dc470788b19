"""Small random models whose tensors have the types that llama.cpp's quantiser gives them."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.gguf import small
from tests.gguf.blocks import random_blocks
from tests.gguf.written import Tensor, file

CONTEXT = 32
WIDTH, HIDDEN, LAYERS, HEADS, KV_HEADS, HEAD_DIM = 256, 512, 2, 4, 1, 64
ARCHITECTURES = {"llama": "llama", "mistral": "llama", "qwen2": "qwen2", "qwen3": "qwen3"}

Mix = Callable[[str, int], str]  # part of a layer ("" for the embedding) and its number → type


def gets_more_bits(layer: int) -> bool:
    """Return whether the layer gets more bits."""
    return layer < LAYERS // 8 or layer >= 7 * LAYERS // 8 or (layer - LAYERS // 8) % 3 == 2


def k_mix(base: str, better: str = "Q6_K") -> Mix:
    def kind(part: str, layer: int) -> str:
        if part == "" or (part in ("attn_v", "ffn_down") and gets_more_bits(layer)):
            return better
        return base

    return kind


def iq4_xs(part: str, layer: int) -> str:
    """Return the type; with four heads to a key and value, v gets more."""
    return {"": "Q6_K", "attn_v": "Q5_K"}.get(part, "IQ4_XS")


def q4_0(part: str, layer: int) -> str:
    return "Q6_K" if part == "" else "Q4_0"


def dynamic(part: str, layer: int) -> str:
    """Return any type anywhere, as in files that were made with measured importance."""
    kinds = {
        "": "Q5_0",
        "attn_q": "Q3_K",
        "attn_k": "Q2_K",
        "attn_v": "F16",
        "attn_output": "IQ4_NL",
        "ffn_gate": "Q5_1",
        "ffn_up": "Q4_1",
        "ffn_down": "MXFP4",
    }
    return kinds[part] if layer == 0 else "BF16"


MIXES: dict[str, Mix] = {
    "Q4_K_M": k_mix("Q4_K"),
    "Q5_K_M": k_mix("Q5_K"),
    "Q6_K": k_mix("Q6_K"),
    "Q8_0": k_mix("Q8_0", "Q8_0"),
    "Q4_0": q4_0,
    "IQ4_XS": iq4_xs,
    "F16": k_mix("F16", "F16"),
    "dynamic": dynamic,
}


def write(family: str, mix: Mix) -> bytes:
    """Write the file.

    Rows of q and k of `llama` are as its converter orders them: random either way.
    """
    return file(metadata(ARCHITECTURES[family]), tensors_of(family, mix))


def tensors_of(family: str, mix: Mix) -> list[Tensor]:
    rng = np.random.default_rng(7)

    def matrix(name: str, part: str, layer: int, rows: int, columns: int) -> Tensor:
        kind = mix(part, layer)
        size = 1.0 / np.sqrt(columns)
        values = {"F16": 1, "BF16": 1}.get(kind, 256 if kind.endswith(("_K", "_XS")) else 32)
        data = random_blocks(kind, rows * columns // values, rng, size)
        return Tensor(name, (rows, columns), kind, data.tobytes())

    tensors = [matrix("token_embd.weight", "", 0, small.VOCABULARY, WIDTH)]
    shapes = {
        "attn_q": (HEADS * HEAD_DIM, WIDTH),
        "attn_k": (KV_HEADS * HEAD_DIM, WIDTH),
        "attn_v": (KV_HEADS * HEAD_DIM, WIDTH),
        "attn_output": (WIDTH, HEADS * HEAD_DIM),
        "ffn_gate": (HIDDEN, WIDTH),
        "ffn_up": (HIDDEN, WIDTH),
        "ffn_down": (WIDTH, HIDDEN),
    }
    norms = {"attn_norm": WIDTH, "ffn_norm": WIDTH}
    if family == "qwen3":
        norms |= {"attn_q_norm": HEAD_DIM, "attn_k_norm": HEAD_DIM}
    for layer in range(LAYERS):
        for part, (rows, columns) in shapes.items():
            tensors.append(matrix(f"blk.{layer}.{part}.weight", part, layer, rows, columns))
            if family == "qwen2" and part in ("attn_q", "attn_k", "attn_v"):
                bias = rng.normal(0, 0.1, rows)
                tensors.append(Tensor.floats(f"blk.{layer}.{part}.bias", bias))
        for norm, width in norms.items():
            values = rng.uniform(0.5, 1.5, width)
            tensors.append(Tensor.floats(f"blk.{layer}.{norm}.weight", values))
    tensors.append(Tensor.floats("output_norm.weight", rng.uniform(0.5, 1.5, WIDTH)))
    return tensors


def metadata(architecture: str) -> dict[str, Any]:
    return small.metadata(architecture) | {
        f"{architecture}.block_count": LAYERS,
        f"{architecture}.context_length": CONTEXT,
        f"{architecture}.embedding_length": WIDTH,
        f"{architecture}.feed_forward_length": HIDDEN,
        f"{architecture}.attention.head_count": HEADS,
        f"{architecture}.attention.head_count_kv": KV_HEADS,
    }
