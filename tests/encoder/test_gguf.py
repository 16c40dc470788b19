"""GGUF files of text encoders: their tokenizers, and what is wrong with a file."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from py_runtime.encoder.config import encoder_config
from py_runtime.encoder.tensors import expected_shapes
from py_runtime.gguf.container import HeaderWalk
from py_runtime.gguf.encoder import read_encoder
from py_runtime.gguf.errors import GgufError
from py_runtime.gguf.reader import open_gguf
from py_runtime.gguf.tokenizer import read_tokenizer
from py_runtime.tokens import Tokenizer
from tests.encoder.gguf_files import SMALL, SMALL_WORDS, encoder_file, metadata
from tests.fuzz.in_line import result_of
from tests.gguf.written import Tensor, file
from tests.pte.memory_source import MemorySource
from tests.tokens.corpus import lines
from tests.tokens.styles import cached

CONFIG = encoder_config(SMALL)
WORDS = {word: number for number, word in enumerate(SMALL_WORDS)}
Change = Callable[[dict[str, Any], dict[str, Tensor]], None]


def tokenizer_of(words: dict[str, int]) -> Tokenizer:
    data = file(metadata("bert", CONFIG, words, 1))
    read = read_tokenizer(HeaderWalk("x.gguf", len(data)).read(data).metadata)
    return Tokenizer.from_json(read["tokenizer.json"])


def test_ids_are_those_of_the_tokenizer_it_was_made_from() -> None:
    made = cached("bert")
    ours, wanted = tokenizer_of(made["model"]["vocab"]), Tokenizer.from_json(made)
    for text in lines()[::20]:
        assert ours.encode(text) == wanted.encode(text), text


def test_capitals_are_kept_where_tokens_have_some() -> None:
    assert tokenizer_of(WORDS).encode("The") == tokenizer_of(WORDS).encode("the")
    words = {**WORDS, "London": len(WORDS)}
    kept = tokenizer_of(words)
    assert kept.encode("London", add_special_tokens=False) == [len(WORDS)]
    assert kept.encode("The") != kept.encode("the")


def refused(change: Change, architecture: str = "bert") -> str:
    """Return the error of a sound file that was changed."""
    config = encoder_config({**SMALL, "model_type": architecture.replace("-", "_")})
    entries = metadata(architecture, config, WORDS, 1)
    tensors = {tensor.name: tensor for tensor in tensors_of(architecture)}
    change(entries, tensors)
    data = file(entries, list(tensors.values()))
    with pytest.raises(GgufError) as caught:
        read_encoder(result_of(open_gguf([MemorySource(data, "x.gguf")])))
    return str(caught.value)


def tensors_of(architecture: str) -> list[Tensor]:
    """Return the tensors of a small file, as they are in it."""
    config = encoder_config({**SMALL, "model_type": architecture.replace("-", "_")})
    state = {name: np.zeros(dims) for name, dims in expected_shapes(config).items()}
    data = encoder_file(architecture, config, WORDS, state)
    opened = result_of(open_gguf([MemorySource(data, "x.gguf")]))
    return [
        Tensor(name, one.info.dims, one.info.kind.name, bytes(one.info.nbytes))
        for name, one in opened.tensors.items()
    ]


def drop(name: str) -> Change:
    def change(entries: dict[str, Any], tensors: dict[str, Tensor]) -> None:
        del tensors[name]

    return change


def entry(key: str, value: Any) -> Change:
    return lambda entries, tensors: entries.update({key: value})


def add(name: str, *dims: int) -> Change:
    tensor = Tensor.floats(name, np.zeros(dims))
    return lambda entries, tensors: tensors.update({name: tensor})


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (drop("blk.0.attn_q.bias"), "'blk.0.attn_q.bias' is missing"),
        (drop("position_embd.weight"), "'position_embd.weight' is missing"),
        (add("token_embd_norm.weight", 31), "has the shape [31], not [32]"),
        (add("blk.0.attn_q_norm.weight", 32), "tensors that this engine does not compute with"),
        (add("token_embd.weight", 9, 32), f"has {len(WORDS)} tokens, but embeddings of 9"),
        (entry("bert.attention.causal", True), "says that tokens see only those before them"),
        (entry("bert.pooling_type", 4), "asks for scores of pairs of texts"),
        (entry("bert.pooling_type", 0), "is 0, which this engine does not compute"),
        (entry("bert.attention.head_count", 3), "3 heads do not share 32 columns"),
        (entry("bert.block_count", 2), "'blk.1.attn_q.weight' is missing"),
        (entry("bert.attention.layer_norm_epsilon", 2.0), "is 2, not from 1e-13 to 0.1"),
        (entry("tokenizer.ggml.unknown_token_id", 10**6), "is 1000000, not from 0 to"),
        (entry("tokenizer.ggml.model", "rwkv"), "a tokenizer of the model 'rwkv'"),
    ],
)
def test_a_file_that_cannot_be_computed(change: Change, fault: str) -> None:
    assert fault in refused(change)


def test_queries_keys_and_values_of_another_shape() -> None:
    change = add("blk.0.attn_qkv.weight", 90, 32)
    assert "'blk.0.attn_q.weight' is missing" in refused(change, "nomic-bert")
