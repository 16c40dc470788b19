"""A whole model in a GGUF file of some twenty kilobytes, written without torch."""

from typing import Any

import numpy as np

from py_runtime.gguf.tensor_types import BY_NAME
from py_runtime.tokens.byte_level import ALPHABET
from tests.gguf.written import Tensor, file

WIDTH, HIDDEN, LAYERS, HEADS, KV_HEADS, HEAD_DIM = 32, 64, 1, 2, 1, 16
CONTROL, NORMAL = 3, 1
SPECIAL = ["<|user|>", "<|assistant|>", "<|end|>"]
MERGES = ["t h", "th e"]
LETTERS = [ALPHABET.get(byte, chr(byte)) for byte in range(256)]
TOKENS = [*SPECIAL, *LETTERS, "th", "the"]
VOCABULARY = len(TOKENS)
TEMPLATE = (
    "{% for message in messages %}<|{{ message['role'] }}|>{{ message['content'] }}<|end|>"
    "{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


def metadata(architecture: str = "llama") -> dict[str, Any]:
    return {
        "general.architecture": architecture,
        "general.name": "small",
        "general.license": "mit",
        f"{architecture}.block_count": LAYERS,
        f"{architecture}.context_length": 64,
        f"{architecture}.embedding_length": WIDTH,
        f"{architecture}.feed_forward_length": HIDDEN,
        f"{architecture}.attention.head_count": HEADS,
        f"{architecture}.attention.head_count_kv": KV_HEADS,
        f"{architecture}.rope.freq_base": 10000.0,
        f"{architecture}.attention.layer_norm_rms_epsilon": 1e-5,
        **tokenizer(),
    }


def tokenizer() -> dict[str, Any]:
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "smollm",
        "tokenizer.ggml.tokens": TOKENS,
        "tokenizer.ggml.token_type": [CONTROL] * len(SPECIAL)
        + [NORMAL] * (VOCABULARY - len(SPECIAL)),
        "tokenizer.ggml.merges": MERGES,
        "tokenizer.ggml.bos_token_id": 2,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.add_bos_token": False,
        "tokenizer.chat_template": TEMPLATE,
    }


def sentence_pieces() -> dict[str, Any]:
    """Return a tokenizer of the other kind, with as many tokens."""
    in_bytes = [f"<0x{byte:02X}>" for byte in range(256)]
    tokens = ["<unk>", "<s>", "</s>", *in_bytes, "▁", "a"]
    return {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [2, CONTROL, CONTROL, *[6] * 256, NORMAL, NORMAL],
        "tokenizer.ggml.scores": [-float(number) for number in range(len(tokens))],
        "tokenizer.ggml.unknown_token_id": 0,
    }


def qwen3_tensors() -> list[Tensor]:
    norms = [
        Tensor.floats(f"blk.0.attn_{part}_norm.weight", np.ones(HEAD_DIM)) for part in ("q", "k")
    ]
    return [*tensors("Q4_0"), *norms]


def tensors(kind: str = "Q8_0", width: int = WIDTH) -> list[Tensor]:
    rng = np.random.default_rng(1)
    made = [matrix(rng, "token_embd.weight", VOCABULARY, width, kind)]
    for layer in range(LAYERS):
        block = f"blk.{layer}"
        made += [
            Tensor.floats(f"{block}.attn_norm.weight", rng.uniform(0.5, 1.5, width)),
            matrix(rng, f"{block}.attn_q.weight", HEADS * HEAD_DIM, width, kind),
            matrix(rng, f"{block}.attn_k.weight", KV_HEADS * HEAD_DIM, width, kind),
            matrix(rng, f"{block}.attn_v.weight", KV_HEADS * HEAD_DIM, width, kind),
            matrix(rng, f"{block}.attn_output.weight", width, HEADS * HEAD_DIM, kind),
            Tensor.floats(f"{block}.ffn_norm.weight", rng.uniform(0.5, 1.5, width)),
            matrix(rng, f"{block}.ffn_gate.weight", HIDDEN, width, kind),
            matrix(rng, f"{block}.ffn_up.weight", HIDDEN, width, kind),
            matrix(rng, f"{block}.ffn_down.weight", width, HIDDEN, kind),
        ]
    return [*made, Tensor.floats("output_norm.weight", rng.uniform(0.5, 1.5, width))]


def spoilt_file() -> bytes:
    """Write a file with a sound header and an infinite scale near its end.

    Only a reader of all its weights finds that.
    """
    made = tensors()
    last = made[-2]
    spoilt = np.float16(np.inf).tobytes() + last.data[2:]
    made[-2] = Tensor(last.name, last.dims, last.kind, spoilt)
    return file(metadata(), made)


def matrix(rng: np.random.Generator, name: str, rows: int, columns: int, kind: str) -> Tensor:
    return Tensor(name, (rows, columns), kind, blocks(rng, kind, rows * columns))


def blocks(rng: np.random.Generator, kind: str, count: int) -> bytes:
    """Random values; of Q8_0, F32, F16, Q4_0 and Q4_1."""
    layout = BY_NAME[kind]
    if kind == "F32":
        return rng.normal(0, 0.1, count).astype(np.float32).tobytes()
    if kind == "F16":
        return rng.normal(0, 0.1, count).astype(np.float16).tobytes()
    made = rng.integers(0, 256, (count // layout.values, layout.nbytes), np.uint8)
    made[:, :2] = rng.uniform(0.001, 0.002, len(made)).astype(np.float16)[:, None].view(np.uint8)
    if kind == "Q4_1":
        made[:, 2:4] = made[:, :2]
    return made.tobytes()


def small_file(**changes: Any) -> bytes:
    return file(metadata() | changes, tensors())
