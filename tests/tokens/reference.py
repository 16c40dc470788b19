"""The answers of `tokenizers`, and the real tokenizer of the default model."""

import json
from functools import cache

import pytest
from tokenizers import Tokenizer

from export.default_model import default_gguf
from py_runtime.gguf.metadata import Metadata
from py_runtime.gguf.reader import read_header
from py_runtime.gguf.tokenizer import read_tokenizer
from py_runtime.weights.byte_source import FileSource
from tests.fuzz.in_line import result_of
from tests.tokens.styles import STYLES, cached

SMOLLM2 = "smollm2"
REAL = pytest.param(SMOLLM2, marks=pytest.mark.model)
NAMES = (REAL, *STYLES)


@cache
def smollm2_metadata() -> Metadata:
    return result_of(read_header(FileSource(default_gguf()))).metadata


@cache
def tokenizer_file(name: str) -> str:
    """tokenizer.json of a style, or of the default model."""
    is_real = name == SMOLLM2
    made = read_tokenizer(smollm2_metadata())["tokenizer.json"] if is_real else cached(name)
    return json.dumps(made, ensure_ascii=False)


@cache
def reference(name: str) -> Tokenizer:
    return Tokenizer.from_str(tokenizer_file(name))


def reference_ids(name: str, texts: list[str], add_special_tokens: bool) -> list[list[int]]:
    encoded = reference(name).encode_batch_fast(texts, add_special_tokens=add_special_tokens)
    return [encoding.ids for encoding in encoded]


def reference_texts(name: str, ids: list[list[int]], skip_special_tokens: bool) -> list[str]:
    return reference(name).decode_batch(ids, skip_special_tokens=skip_special_tokens)
