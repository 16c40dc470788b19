"""Files written by hand for tests of the page: a decoder that counts, a large table, others."""

import hashlib
import json
from pathlib import Path

import numpy as np

from tests.pte.written import (
    call_delegate,
    call_kernel,
    delegate,
    integer,
    method,
    pte,
    tensor,
    vk_bool,
    vk_call,
    vk_graph,
    vk_int,
    vk_named,
    vk_tensor,
)

SPECIAL = ("<|unknown|>", "<|begin|>", "<|end|>", "<|turn|>")
CHARACTERS = tuple(map(chr, range(33, 127)))  # as a byte-level tokenizer writes them
VOCABULARY = (*SPECIAL, *CHARACTERS)
END = SPECIAL.index("<|end|>")
MAX_POSITIONS = 256
TEMPLATE = (
    "{% for message in messages %}<|turn|>{{ message.content }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|turn|>{% endif %}"
)


def successor(token: int) -> int:
    """Return what the decoder writes after a token: the next character.

    An answer begins with 'a'.
    """
    if token == SPECIAL.index("<|turn|>"):
        return VOCABULARY.index("a")
    return END if token == VOCABULARY.index("z") else (token + 1) % len(VOCABULARY)


def counting_decoder() -> bytes:
    """forward(tokens [1, S], position [1]) gives logits [1, S, V]: a table of successors."""
    count = len(VOCABULARY)
    logits = np.zeros((count, count), np.float32)
    for token in range(count):
        logits[token, successor(token)] = 100
    stated = {"get_max_seq_len": MAX_POSITIONS, "get_vocab_size": count, "get_eos_ids": END}
    return lookup(logits, MAX_POSITIONS - 1, stated)


def lookup(table: np.ndarray, longest: int, stated: dict[str, int]) -> bytes:
    """forward(tokens [1, S], position [1]) gives table[tokens], and reads no position.

    `table`: [rows, width]. The graph takes its inputs in another order than the method.
    """
    rows, width = table.shape
    key = hashlib.sha256(table.tobytes()).hexdigest()
    values = [
        vk_tensor("i32", 1),
        vk_tensor("i32", 1, longest),
        vk_tensor("f32", rows, width, constant=0),
        vk_int(-1),
        vk_bool(False),
        vk_tensor("f32", 1, longest, width),
    ]
    chain = [vk_call("aten.embedding.default", 2, 1, 3, 4, 4, 5)]
    graph = vk_graph(values, chain, [0, 1], [5], [vk_named(key, table.nbytes)])
    ends = [
        tensor("i64", 1),
        tensor("i64", 1, longest, dynamic=True),
        tensor("f32", 1, longest, width, dynamic=True),
    ]
    forward = method("forward", ends, [1, 0], [2], [call_delegate(0, 0, 1, 2)], [delegate(0)])
    others = [method(name, [integer(value)], [], [0]) for name, value in stated.items()]
    return pte([forward, *others], [graph, table.tobytes()], {key: 1})


def large_table() -> np.ndarray:
    """102 MB of rows that differ: [50,000, 512]."""
    rows, width = 50_000, 512
    numbers = np.arange(rows * width, dtype=np.uint32) % np.uint32(1 << 24)
    return numbers.astype(np.float32).reshape(rows, width)


def doubling() -> bytes:
    """Write a file with forward(x [4]) = x + x."""
    values = [vk_tensor("f32", 4), vk_int(1), vk_tensor("f32", 4)]
    graph = vk_graph(values, [vk_call("aten.add.Tensor", 0, 0, 1, 2)], [0], [2])
    call, ends = call_delegate(0, 0, 1), [tensor("f32", 4)] * 2
    return pte([method("forward", ends, [0], [1], [call], [delegate(0)])], [graph])


def unsupported_file() -> bytes:
    """forward(x [4]): an op that nobody has, then a kernel and a backend outside the delegate."""
    values = [vk_tensor("f32", 4), vk_tensor("f32", 4)]
    graph = vk_graph(values, [vk_call("aten.convolution.default", 0, 1)], [0], [1])
    forward = method(
        "forward",
        [tensor("f32", 4)] * 4,
        [0],
        [3],
        [call_delegate(0, 0, 1), call_kernel(0, 1, 2), call_delegate(1, 2, 3)],
        [delegate(0), delegate(0, backend="XnnpackBackend")],
        ["aten::cumsum"],
    )
    return pte([forward], [graph])


def write_tokenizer(folder: Path) -> None:
    """tokenizer.json and tokenizer_config.json of the decoder."""
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    vocabulary = {text: at for at, text in enumerate(VOCABULARY)}
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    tokenizer = {
        "version": "1.0",
        "added_tokens": [
            {"id": at, "content": text, "special": True, **flags} for at, text in enumerate(SPECIAL)
        ],
        "normalizer": None,
        "pre_tokenizer": {**byte_level, "use_regex": True},
        "post_processor": None,
        "decoder": {**byte_level, "use_regex": True},
        "model": {"type": "BPE", "vocab": vocabulary, "merges": []},
    }
    config = {"eos_token": "<|end|>", "chat_template": TEMPLATE}
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    (folder / "tokenizer_config.json").write_text(json.dumps(config))


def write_decoder(folder: Path) -> Path:
    """Write a model folder with the decoder."""
    folder.mkdir(parents=True)
    (folder / "model.pte").write_bytes(counting_decoder())
    write_tokenizer(folder)
    return folder
