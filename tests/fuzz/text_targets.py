"""The ways from text to tokens and back: tokenizers, their patterns, templates, config files."""

import json
import zlib
from random import Random
from typing import Any

from py_runtime.chat.template import ChatTemplate
from py_runtime.model.config import Config, read_json
from py_runtime.tokens import Tokenizer
from py_runtime.tokens.patterns import Pattern
from tests.chat.chats import CALLS, SPECIAL_TOKENS, TEMPLATES
from tests.fuzz.documents import make_lie
from tests.fuzz.driver import Target
from tests.fuzz.snippets import pattern, template
from tests.fuzz.template_grammar import greedy_template
from tests.tokens.styles import DEEPSEEK_SPLITS, GPT4O_SPLIT, LLAMA3_SPLIT, QWEN2_SPLIT

Json = dict[str, Any]

# Tokenizers --------------------------------------------------------------------------------------

TEXTS = ["", "ab a b <x>", "aaaaaaaab" * 40, " Hi, é💚 1234\r\n  ", "▁a▁b", "\0\ufeff\u0301"]
FLAGS = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
BYTE_LEVEL = {
    "type": "ByteLevel",
    "add_prefix_space": True,
    "trim_offsets": True,
    "use_regex": True,
}
METASPACE = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": True}
REGEX = {"Regex": "[ab]+"}
NORMALIZERS: list[Json] = [
    *({"type": kind} for kind in ("NFC", "NFKD", "Lowercase")),
    {"type": "Strip", "strip_left": True, "strip_right": True},
    {"type": "Prepend", "prepend": "▁"},
    {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
    {"type": "Replace", "pattern": REGEX, "content": "b"},
]
SPLIT = {"type": "Split", "behavior": "Isolated", "invert": False}
PRE_TOKENIZERS: list[Json] = [
    BYTE_LEVEL,
    METASPACE,
    {"type": "Digits", "individual_digits": True},
    {"type": "Whitespace"},
    {"type": "WhitespaceSplit"},
    *(SPLIT | {"pattern": {"Regex": text}} for text in (LLAMA3_SPLIT, GPT4O_SPLIT, "[ab]+")),
    SPLIT | {"pattern": {"String": "a"}, "behavior": "MergedWithNext", "invert": True},
]
DECODERS: list[Json] = [
    BYTE_LEVEL,
    METASPACE,
    *({"type": kind} for kind in ("ByteFallback", "Fuse")),
    {"type": "Strip", "content": "a", "start": 1, "stop": 0},
    {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
]
BOS = {"SpecialToken": {"id": "<x>", "type_id": 0}}
POST_PROCESSOR: Json = {
    "type": "TemplateProcessing",
    "single": [BOS, {"Sequence": {"id": "A", "type_id": 0}}],
    "pair": [],
    "special_tokens": {"<x>": {"id": "<x>", "ids": [1], "tokens": ["<x>"]}},
}


def tokenizers() -> list[bytes]:
    """Return one tokenizer for each part that it may have, with a tiny vocabulary."""
    letters = ["a", "b", "ab", "▁", "▁a", "Ġ", "Ġa", "<unk>", "<0x41>", "<0xC3>", "1"]
    merges = ["a b", "▁ a", ["Ġ", "a"]]
    model = {
        "type": "BPE",
        "vocab": {text: at for at, text in enumerate(letters)},
        "merges": merges,
    }
    added = [
        {"id": 11, "content": "<x>", "special": True, **FLAGS},
        {"id": 12, "content": "b b", "special": False, **FLAGS, "normalized": True, "lstrip": True},
    ]
    made = []
    for at in range(max(map(len, (NORMALIZERS, PRE_TOKENIZERS, DECODERS)))):
        document = {
            "added_tokens": added,
            "normalizer": NORMALIZERS[at % len(NORMALIZERS)],
            "pre_tokenizer": PRE_TOKENIZERS[at % len(PRE_TOKENIZERS)],
            "post_processor": [POST_PROCESSOR, BYTE_LEVEL, None][at % 3],
            "decoder": DECODERS[at % len(DECODERS)],
            "model": model
            | {"unk_token": "<unk>" if at % 2 else None, "byte_fallback": at % 3 == 0},
        }
        made.append(json.dumps(document).encode())
    whole = json.loads(made[0]) | {
        "normalizer": {"type": "Sequence", "normalizers": NORMALIZERS},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": PRE_TOKENIZERS},
        "decoder": {"type": "Sequence", "decoders": DECODERS},
    }
    return [*made, json.dumps(whole).encode()]


def read_tokenizer(data: bytes) -> None:
    tokenizer = Tokenizer.from_json(data)
    assert tokenizer.vocabulary_size >= 0
    for text in TEXTS:
        tokenizer.decode(tokenizer.encode(text), skip_special_tokens=False)
        tokenizer.encode(text, literal=[(1, 4)])
    tokenizer.decode([*range(20), -1, 2**40])


# Patterns ----------------------------------------------------------------------------------------

LONG = ["a" * 3000, "ab" * 1500, " " * 3000, "a " * 1500 + "!", "aB1é'\r\n" * 400, "💚" * 1000]


def patterns() -> list[bytes]:
    found = (LLAMA3_SPLIT, QWEN2_SPLIT, GPT4O_SPLIT, *DEEPSEEK_SPLITS)
    return [text.encode() for text in found]


def change_pattern(rng: Random, base: bytes) -> bytes:
    """Make a new pattern, or a model's own with another in it."""
    text = base.decode()
    if rng.random() < 0.7:
        return pattern(rng).encode()
    at = rng.randrange(len(text))
    return (text[:at] + pattern(rng, 2) + text[at + rng.randint(0, 3) :]).encode()


def read_pattern(data: bytes) -> None:
    found = Pattern(data.decode())
    for text in LONG:
        found.replace(text, content="-")


# Chat templates and config files -----------------------------------------------------------------


def templates() -> list[bytes]:
    return [source.encode() for source in TEMPLATES.values()]


def read_template(data: bytes) -> None:
    """Read a template with one of the chats; the others would take the same ways."""
    call = CALLS[2 + zlib.crc32(data) % 2]
    ChatTemplate(data.decode(errors="replace"), SPECIAL_TOKENS).render(**call)


def configs() -> list[bytes]:
    """Return both files as one document."""
    source = TEMPLATES["INST"]
    named = [{"name": "default", "template": source}, {"name": "tools", "template": "x"}]
    tokens = {"bos_token": {"content": "<s>"}, "eos_token": "<x>", "unk_token": None}
    pairs = [
        {"tokenizer": {**tokens, "chat_template": source}, "model": {"eos_token_id": [1, 2]}},
        {"tokenizer": {**tokens, "chat_template": named}, "model": {"eos_token_id": 1}},
        {"tokenizer": {}, "model": {}},
    ]
    return [json.dumps(pair).encode() for pair in pairs]


def read_config(data: bytes) -> None:
    both = read_json("both", data)
    files = [json.dumps(both.get(name)).encode() for name in ("tokenizer", "model")]
    config = Config(
        read_json("tokenizer_config.json", files[0]), read_json("config.json", files[1])
    )
    config.end_tokens(Tokenizer.from_json(tokenizers()[0]))
    if config.chat_template is not None:
        config.chat_template.render(**CALLS[0])


TARGETS = [
    Target("tokenizer", tokenizers, make_lie, read_tokenizer, count=150),
    Target("pattern", patterns, change_pattern, read_pattern, count=50),
    Target("template", templates, template, read_template, count=100, memory=600 << 20),
    Target(
        "greedy-template", templates, greedy_template, read_template, count=12, memory=600 << 20
    ),
    Target("config", configs, make_lie, read_config, count=300, memory=64 << 20),
]
