"""The tokenizer of a GGUF file gives the ids of the tokenizer that the file was made from."""

import json
from typing import Any

import pytest
from tokenizers import Tokenizer

from export.errors import ExportError
from export.gguf_tokenizer import read_tokenizer
from tests.tokens.corpus import lines
from tests.tokens.reference import reference_ids, smollm2_metadata
from tests.tokens.styles import cached

PRE_TOKENIZERS = {"gpt2": "gpt-2", "llama3": "llama-bpe", "qwen2": "qwen2"}
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6


def as_gguf(style: str) -> dict[str, Any]:
    """What llama.cpp would write of a tokenizer.json."""
    file = cached(style)
    ids = dict(file["model"]["vocab"])
    added = {token["content"]: token["special"] for token in file["added_tokens"]}
    ids |= {token["content"]: token["id"] for token in file["added_tokens"]}
    tokens = sorted(ids, key=ids.__getitem__)
    types = [
        (CONTROL if added[token] else USER_DEFINED) if token in added else NORMAL
        for token in tokens
    ]
    padding = ["[PAD1]", "[PAD2]"]
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": PRE_TOKENIZERS.get(style, style),
        "tokenizer.ggml.tokens": tokens + padding,
        "tokenizer.ggml.token_type": types + [UNUSED] * len(padding),
        "tokenizer.ggml.merges": [" ".join(pair) for pair in file["model"]["merges"]],
        "tokenizer.ggml.bos_token_id": 0,
    }


def sentence_piece_as_gguf() -> dict[str, Any]:
    model = cached("llama2")["model"]
    tokens = sorted(model["vocab"], key=model["vocab"].__getitem__)
    made = ["".join(merge.split(" ")) for merge in model["merges"]]
    scores = {token: -rank for rank, token in reversed(list(enumerate(made)))}
    types = [UNKNOWN, CONTROL, CONTROL, *[BYTE] * 256]
    return {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": types + [NORMAL] * (len(tokens) - len(types)),
        "tokenizer.ggml.scores": [float(scores.get(token, -1e9)) for token in tokens],
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.unknown_token_id": 0,
    }


def ids_of(files: dict[str, Any], texts: list[str]) -> list[list[int]]:
    tokenizer = Tokenizer.from_str(json.dumps(files["tokenizer.json"]))
    return [encoding.ids for encoding in tokenizer.encode_batch(texts)]


@pytest.mark.parametrize("style", PRE_TOKENIZERS)
def test_byte_level_styles(style: str) -> None:
    texts = [*lines()[::10], "[PAD1]"]
    files = read_tokenizer(as_gguf(style))
    assert ids_of(files, texts) == reference_ids(style, texts, add_special_tokens=True)


def test_sentence_piece() -> None:
    texts = lines()[::10]
    files = read_tokenizer(sentence_piece_as_gguf())
    assert ids_of(files, texts) == reference_ids("llama2", texts, add_special_tokens=True)
    config = files["tokenizer_config.json"]
    assert (config["bos_token"], config["eos_token"], config["unk_token"]) == (
        "<s>",
        "</s>",
        "<unk>",
    )


def test_no_space_before_the_text_and_an_end_after_it() -> None:
    metadata = sentence_piece_as_gguf() | {
        "tokenizer.ggml.add_space_prefix": False,
        "tokenizer.ggml.add_bos_token": False,
        "tokenizer.ggml.add_eos_token": True,
    }
    files = read_tokenizer(metadata)
    tokenizer = Tokenizer.from_str(json.dumps(files["tokenizer.json"]))
    encoding = tokenizer.encode("the <s> cat")
    assert tokenizer.decode(encoding.ids, skip_special_tokens=False) == "the <s> cat</s>"
    assert not encoding.tokens[0].startswith("▁")


@pytest.mark.model
def test_the_default_model() -> None:
    files = read_tokenizer(smollm2_metadata())
    file, config = files["tokenizer.json"], files["tokenizer_config.json"]
    specials = [token["content"] for token in file["added_tokens"] if token["special"]]
    assert len(specials) == 17
    assert specials[:3] == ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    assert [step["type"] for step in file["pre_tokenizer"]["pretokenizers"]] == [
        "Digits",
        "ByteLevel",
    ]
    assert config["eos_token"] == config["pad_token"] == "<|im_end|>"
    assert config["add_bos_token"] is False
    assert file["post_processor"] is None
    assert config["chat_template"].startswith("{% for message in messages %}")


FAULTS = [
    ({"tokenizer.ggml.model": None}, "has no tokenizer: tokenizer.ggml.model is missing"),
    ({"tokenizer.ggml.tokens": None}, "has no tokenizer: tokenizer.ggml.tokens is missing"),
    ({"tokenizer.ggml.pre": None}, "has no tokenizer: tokenizer.ggml.pre is missing"),
    ({"tokenizer.ggml.merges": None}, "has no tokenizer: tokenizer.ggml.merges is missing"),
    ({"tokenizer.ggml.model": "t5"}, "has a tokenizer of the model 't5'; only 'gpt2' (byte-level "),
    (
        {"tokenizer.ggml.pre": "falcon"},
        "'s pre-tokenizer is 'falcon'; only gpt-2, llama-bpe, qwen2",
    ),
    ({"tokenizer.ggml.token_type": [1]}, "has 2502 tokens, but 1 token types"),
    ({"tokenizer.ggml.bos_token_id": 9999}, "'s bos_token has the id 9999, which no token has"),
]


@pytest.mark.parametrize(("change", "fault"), FAULTS)
def test_a_fault_is_named(change: dict[str, Any], fault: str) -> None:
    metadata = as_gguf("gpt2") | change
    metadata = {name: value for name, value in metadata.items() if value is not None}
    with pytest.raises(ExportError) as caught:
        read_tokenizer(metadata)
    assert fault in str(caught.value)
    assert "\n" not in str(caught.value)
