"""Unigram, and the normalizer that SentencePiece compiles: the ids that `tokenizers` gives."""

import base64
import json
import struct
from typing import Any

import pytest
from tokenizers import Tokenizer as Oracle
from tokenizers import models, normalizers, pre_tokenizers, trainers

from py_runtime.gguf.container import HeaderWalk
from py_runtime.gguf.tokenizer import read_tokenizer
from py_runtime.tokens import Tokenizer
from py_runtime.tokens.errors import TokenizerError
from tests.gguf.written import U8, Typed, file
from tests.tokens.corpus import lines

# A cluster of two characters, its first alone, one of three bytes, one that goes, one of four.
CHANGES = {"e\u0301": "é", "\u2460": "1", "\ufb01": "fi", "\u00ad": "", "\U0001d400": "A"}
CHANGES |= {"\t": " ", "\r\n": " ", "\uff41": "a", "\u0345": "i", "a\u0345": "ai"}
TRICKY = [
    "e\u0301e\u0301\u0301",
    "\u2460\u2461 \ufb01ne",
    "so\u00adft \U0001d400",
    "a\r\nb\t\uff42\uff41",
    "a\u0345\u0301",
]
TRICKY += [
    "\u0600e\u0301 \u0e01\u0e33",
    "a\u200dé",
    "\u0301 first",
    "",
    " ",
    "▁ x",
    "\U0001f600\U0001f600 y",
    "x" * 300,
]


def charsmap() -> bytes:
    """Compile the changes: each node of the trie has a block of 256 units to itself."""
    nodes: dict[bytes, int] = {b"": 1}  # by prefixes; block 0 has the root's unit alone
    keys = {key.encode(): value for key, value in CHANGES.items()}
    for key in keys:
        for end in range(1, len(key) + 1):
            nodes.setdefault(key[:end], len(nodes) + 1)
    units = [0] * (256 * (len(nodes) + 1))
    units[0] = 256 << 10
    texts = b""
    for prefix, block in nodes.items():
        if prefix:
            at = 256 * nodes[prefix[:-1]] ^ prefix[-1]
            units[at] = (at ^ 256 * block) << 10 | (prefix in keys) << 8 | prefix[-1]
        if prefix in keys:
            units[256 * block] = 1 << 31 | len(texts)
            texts += keys[prefix].encode() + b"\0"
    return struct.pack(f"<I{len(units)}I", 4 * len(units), *units) + texts


def trained() -> dict[str, Any]:
    oracle = Oracle(models.Unigram())
    oracle.normalizer = normalizers.Precompiled(charsmap())
    oracle.pre_tokenizer = pre_tokenizers.Metaspace()
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    trainer = trainers.UnigramTrainer(
        vocab_size=900, special_tokens=special, unk_token="<unk>", show_progress=False
    )
    # With letters of few scripts, so that many characters are unknown.
    oracle.train_from_iterator(
        [line for line in lines()[::2] if max(line, default="") < "\u0180"], trainer
    )
    found: dict[str, Any] = json.loads(oracle.to_str())
    # `tokenizers` reads long decimals less exactly than Python: ties of sums would differ.
    scores: dict[str, float] = {}
    for token, score in found["model"]["vocab"]:  # which has the unknown token twice
        scores.setdefault(token, round(score * 1024) / 1024)
    vocabulary = [list(scored) for scored in scores.items()]
    return {**found, "model": {**found["model"], "vocab": vocabulary}}


def test_ids_are_those_of_tokenizers() -> None:
    made = trained()
    ours, oracle = Tokenizer.from_json(made), Oracle.from_str(json.dumps(made))
    for text in [*lines()[::4], *TRICKY]:
        found = ours.encode(text)
        assert found == oracle.encode(text).ids, text
    unknown = made["model"]["unk_id"]
    assert ours.encode("\U0001f600\U0001f600").count(unknown) == 1, "a run is one unknown token"


def test_a_gguf_file_has_the_same() -> None:
    made = trained()
    vocabulary = made["model"]["vocab"]
    metadata = {
        "general.architecture": "bert",
        "tokenizer.ggml.model": "t5",
        "tokenizer.ggml.tokens": [token for token, _ in vocabulary],
        "tokenizer.ggml.scores": [float(score) for _, score in vocabulary],
        "tokenizer.ggml.token_type": [*[3] * 3, 2, *[1] * (len(vocabulary) - 4)],
        "tokenizer.ggml.precompiled_charsmap": Typed(U8, list(charsmap())),
        "tokenizer.ggml.unknown_token_id": 3,
        "tokenizer.ggml.bos_token_id": 0,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.add_bos_token": True,
        "tokenizer.ggml.add_eos_token": True,
    }
    data = file(metadata)
    read = read_tokenizer(HeaderWalk("x.gguf", len(data)).read(data).metadata)
    ours, wanted = Tokenizer.from_json(read["tokenizer.json"]), Tokenizer.from_json(made)
    for text in ("hello  world", "e\u0301 \u2460", " the hills ", "x"):
        assert ours.encode(text) == [0, *wanted.encode(" ".join(text.split())), 2], text


@pytest.mark.parametrize(
    ("section", "change", "fault"),
    [
        ("model", {"unk_id": 10**6}, "unk_id is 1000000"),
        ("model", {"vocab": [["a", "b"]]}, "no list of tokens with scores"),
        ("model", {"byte_fallback": True}, "byte_fallback"),
        ("normalizer", {"precompiled_charsmap": "?"}, "not base64"),
        ("normalizer", {"precompiled_charsmap": base64.b64encode(b"abcdefgh").decode()}, "trie"),
    ],
)
def test_a_damaged_file_is_refused(section: str, change: dict[str, Any], fault: str) -> None:
    vocabulary = {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0.0], ["a", -1.0]]}
    compiled = {
        "type": "Precompiled",
        "precompiled_charsmap": base64.b64encode(charsmap()).decode(),
    }
    sound: dict[str, Any] = {"model": vocabulary, "normalizer": compiled}
    Tokenizer.from_json(sound)
    with pytest.raises(TokenizerError, match=fault):
        Tokenizer.from_json({**sound, section: {**sound[section], **change}})
