"""A tokenizer.json that cannot be used is one line that names the part of it."""

import copy
import json
from typing import Any

import pytest
import tokenizers

from py_runtime.tokens import Tokenizer, TokenizerError

BASE: dict[str, Any] = {
    "version": "1.0",
    "truncation": {"max_length": 2, "stride": 0, "strategy": "LongestFirst", "direction": "Right"},
    "padding": None,
    "added_tokens": [
        {
            "id": 9,
            "content": "<x>",
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": True,
        }
    ],
    "normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}]},
    "pre_tokenizer": {"type": "WhitespaceSplit"},
    "post_processor": None,
    "decoder": {"type": "Fuse"},
    "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]},
}
SPLIT = {"type": "Split", "pattern": {"String": "x"}, "behavior": "Isolated", "invert": False}
METASPACE = {"type": "Metaspace", "replacement": "▁"}
TEMPLATE: dict[str, Any] = {"type": "TemplateProcessing", "pair": [], "special_tokens": {}}
TEXT = {"Sequence": {"id": "A", "type_id": 0}}
BOS = {"SpecialToken": {"id": "<s>", "type_id": 0}}

FAULTS: list[tuple[str, Any, str]] = [
    ("model", None, "the file: model is missing"),
    ("model", [], "model is list, not an object"),
    ("model.type", "WordLevel", "model: 'WordLevel' is not supported"),
    ("model.vocab", None, "model: vocab is missing"),
    ("model.vocab", {"a": -1}, "model: vocab has an id that is not a whole number from 0 on"),
    ("model.vocab", {"a": True}, "model: vocab has an id that is not a whole number from 0 on"),
    ("model.vocab", {"a\ud800": 0}, "model: vocab has half of a surrogate pair"),
    ("model.merges", "a b", "model: merges is str, not list"),
    ("model.merges", ["a b", "a b c"], "model: merges are not all pairs of tokens"),
    ("model.merges", [["a"]], "model: merges are not all pairs of tokens"),
    ("model.merges", [["a", {}]], "model: merges are not all pairs of tokens"),
    ("model.merges", [7], "model: merges are not all pairs of tokens"),
    ("model.merges", ["a c"], "model: a merge needs the token 'c', which is not in the vocabulary"),
    (
        "model.merges",
        ["b a"],
        "model: a merge needs the token 'ba', which is not in the vocabulary",
    ),
    ("model.unk_token", "<unk>", "model: unk_token '<unk>' is not in the vocabulary"),
    ("model.ignore_merges", 1, "model: ignore_merges is int, not bool"),
    ("added_tokens", {}, "the file: added_tokens is dict, not list"),
    ("added_tokens", [{"content": "<y>"}], "added_tokens[0]: single_word is missing"),
    ("normalizer", {"type": "Nmt"}, "normalizer: 'Nmt' is not supported"),
    ("normalizer", {}, "normalizer: type is missing"),
    (
        "normalizer",
        {"type": "Prepend", "prepend": "\udc00"},
        "normalizer: prepend has half of a surrogate pair",
    ),
    (
        "normalizer",
        {"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Nmt"}]},
        "normalizer.normalizers[1]: 'Nmt' is not supported",
    ),
    (
        "normalizer",
        {"type": "Replace", "pattern": {"Glob": "*"}, "content": ""},
        "normalizer: is neither a Regex nor a String",
    ),
    ("pre_tokenizer", {"type": "Punctuation"}, "pre_tokenizer: 'Punctuation' is not supported"),
    (
        "pre_tokenizer",
        SPLIT | {"behavior": "Sideways"},
        "pre_tokenizer: behavior 'Sideways' is not supported",
    ),
    (
        "pre_tokenizer",
        METASPACE | {"prepend_scheme": "last"},
        "pre_tokenizer: prepend_scheme 'last' is not supported",
    ),
    (
        "pre_tokenizer",
        METASPACE | {"add_prefix_space": False},
        "pre_tokenizer: add_prefix_space is false, but prepend_scheme is not 'never'",
    ),
    ("decoder", {"type": "CTC"}, "decoder: 'CTC' is not supported"),
    (
        "decoder",
        {"type": "Strip", "content": " ", "start": 0, "stop": 1},
        "decoder: Strip with a stop other than 0 is not supported",
    ),
    (
        "post_processor",
        {"type": "ByteLevels"},
        "post_processor: 'ByteLevels' is not supported",
    ),
    (
        "post_processor",
        TEMPLATE | {"single": []},
        "post_processor: the template has no place for the text",
    ),
    (
        "post_processor",
        TEMPLATE | {"single": [BOS, TEXT], "special_tokens": {"<s>": {"ids": ["1"]}}},
        "post_processor.special_tokens.<s>: ids are not all whole numbers",
    ),
    (
        "post_processor",
        TEMPLATE | {"single": [TEXT, TEXT]},
        "post_processor.single[1]: {'Sequence': {'id': 'A', 'type_id': 0}} is not supported in a "
        "template",
    ),
    (
        "post_processor",
        TEMPLATE | {"single": [{"SpecialToken": {"id": "<y>", "type_id": 0}}]},
        "post_processor.single[0]: {'SpecialToken': {'id': '<y>', 'type_id': 0}} is not supported "
        "in a template",
    ),
]


def changed(path: str, value: Any) -> dict[str, Any]:
    file = copy.deepcopy(BASE)
    *outer, last = path.split(".")
    target = file
    for name in outer:
        target = target[name]
    target[last] = value
    return file


@pytest.mark.parametrize(("path", "value", "fault"), FAULTS)
def test_a_fault_is_named(path: str, value: Any, fault: str) -> None:
    with pytest.raises(TokenizerError) as caught:
        Tokenizer.from_json(changed(path, value))
    assert str(caught.value) == f"tokenizer.json: {fault}"


@pytest.mark.parametrize("text", ["{", b"\xff", "[]", '"a"', "", "[" * 200_000])
def test_what_is_no_object(text: str | bytes) -> None:
    with pytest.raises(TokenizerError, match=r"^tokenizer\.json"):
        Tokenizer.from_json(text)


def test_padding_and_truncation_do_not_touch_a_prompt() -> None:
    ours = Tokenizer.from_json(json.dumps(BASE))
    assert ours.encode("ab a b <x>") == [2, 0, 1, 3]
    theirs = tokenizers.Tokenizer.from_str(json.dumps(BASE))
    theirs.no_truncation()
    assert theirs.encode("ab a b <x>").ids == [2, 0, 1, 3]


def test_a_text_of_which_nothing_is_left() -> None:
    file = changed("normalizer", {"type": "Strip", "strip_left": True, "strip_right": True})
    file["pre_tokenizer"] = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True}
    file["model"] |= {"vocab": {"Ġ": 0, "a": 1}, "merges": []}
    theirs = tokenizers.Tokenizer.from_str(json.dumps(file))
    theirs.no_truncation()
    for text in ("", " ", "a", " <x> a"):
        assert Tokenizer.from_json(file).encode(text) == theirs.encode(text).ids


def test_what_else_a_tokenizer_knows() -> None:
    ours = Tokenizer.from_json(BASE)
    assert ours.vocabulary_size == 4
    assert ours.id_of("ab") == 2
    assert ours.id_of("<x>") == 3  # the next after the vocabulary, whatever the file says
    assert ours.id_of("c") is None


DECODERS: dict[str, list[dict[str, Any]]] = {
    "strip every token": [{"type": "Strip", "content": "a", "start": 1, "stop": 0}],
    "strip the whole": [{"type": "Fuse"}, {"type": "Strip", "content": "a", "start": 3, "stop": 0}],
    "replace in the whole": [
        {"type": "Fuse"},
        {"type": "Replace", "pattern": {"Regex": "ba+"}, "content": "-"},
    ],
    "bytes, then a sign": [{"type": "ByteLevel"}, METASPACE | {"replacement": "b"}],
    "a sign": [METASPACE | {"replacement": "b"}],
    "a sign, kept": [METASPACE | {"replacement": "b", "prepend_scheme": "never"}],
}


@pytest.mark.parametrize("name", DECODERS)
def test_chains_of_decoders(name: str) -> None:
    defaults = {"add_prefix_space": True, "trim_offsets": True, "use_regex": True}
    chain = [step | (defaults if step["type"] == "ByteLevel" else {}) for step in DECODERS[name]]
    file = changed("decoder", {"type": "Sequence", "decoders": chain})
    theirs = tokenizers.Tokenizer.from_str(json.dumps(file))
    ours = Tokenizer.from_json(file)
    for ids in ([], [0], [0, 0, 0, 0, 1], [1, 0, 2, 1, 0, 3], [2, 2, 0, 1], [1, 1, 1]):
        assert ours.decode(ids, False) == theirs.decode(ids, skip_special_tokens=False), ids


@pytest.mark.parametrize("ignore_merges", [False, True])
@pytest.mark.parametrize("crossing", [False, True])
def test_merges_across_spaces(crossing: bool, ignore_merges: bool) -> None:
    """Words are cut before spaces only where no merge reaches across them."""
    tokens = ["▁", "a", "b", "▁a", "▁▁", "▁ab", "a▁", "a▁b", "▁ab▁a", "▁b"]
    merges = [["▁", "▁"], ["▁", "a"], ["▁a", "b"]]
    merges = [["a", "▁"], ["a▁", "b"], *merges] if crossing else merges
    model = {"vocab": {token: at for at, token in enumerate(tokens)}, "merges": merges}
    file = changed("model", {"type": "BPE", "ignore_merges": ignore_merges, **model})
    file["pre_tokenizer"] = METASPACE | {"prepend_scheme": "always", "split": False}
    ours = Tokenizer.from_json(file)
    theirs = tokenizers.Tokenizer.from_str(json.dumps(file))
    theirs.no_truncation()
    for text in ("a", "a b", "ab a", "aa  b a ab", "ab ab", "   a", "b a  "):
        assert ours.encode(text) == theirs.encode(text).ids, text
