"""The tokenizer of a GGUF file gives the ids of the tokenizer that the file was made from."""

import json
from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise
from typing import Any

import pytest
import tokenizers
from tokenizers import models, normalizers, pre_tokenizers

from py_runtime.gguf.container import HeaderWalk
from py_runtime.gguf.errors import GgufError
from py_runtime.gguf.metadata import Metadata
from py_runtime.gguf.pre_tokenizers import STYLES
from py_runtime.gguf.tokenizer import end_tokens, read_tokenizer
from py_runtime.tokens import Tokenizer
from tests.gguf.written import file
from tests.tokens.corpus import lines
from tests.tokens.reference import smollm2_metadata
from tests.tokens.styles import as_json, byte_level, cached, split, trained_byte_level

Json = dict[str, Any]

# As they stand in the tokenizer.json of a model of each kind.
QWEN35 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+"
    r"[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
TEKKEN = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?"
    r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|"
    r"\s*[\r\n]+|\s+(?!\S)|\s+"
)
GPT4O = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+"
    r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
UNNAMED = (
    r"[\p{P}\$\+<=>\^~\|]+",
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)",
    r"\p{N}+",
    r"[0-9][0-9][0-9]",
)
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6


def train_tokenizer(*steps: Any, **model: Any) -> Json:
    sequence = pre_tokenizers.Sequence([*steps])
    made = as_json(trained_byte_level(sequence, ["<|endoftext|>"]))
    made["model"] |= model
    return made


def without_some_merges(made: Json) -> Json:
    """Words that no merge leads to any more: only ignore_merges finds them."""
    del made["model"]["merges"][5::7]
    return made


def dbrx() -> Json:
    made = json.loads(json.dumps(cached("llama3")))
    made["model"]["ignore_merges"] = False
    return made | {"post_processor": None}


MADE: dict[str, Callable[[], Json]] = {
    "gpt-2": lambda: cached("gpt2"),
    "llama-bpe": lambda: cached("llama3"),
    "dbrx": dbrx,
    "qwen2": lambda: cached("qwen2"),
    "deepseek-r1-qwen": lambda: cached("qwen2") | {"normalizer": None},
    "qwen35": lambda: (
        train_tokenizer(split(QWEN35), byte_level()) | {"normalizer": {"type": "NFC"}}
    ),
    "smollm": lambda: train_tokenizer(
        pre_tokenizers.Digits(individual_digits=True), byte_level(use_regex=True)
    ),
    "tekken": lambda: without_some_merges(
        train_tokenizer(split(TEKKEN), byte_level(), ignore_merges=True)
    ),
    "gpt-4o": lambda: train_tokenizer(split(GPT4O), byte_level()),
    "default": lambda: train_tokenizer(*map(split, UNNAMED), byte_level()),
}
# Names of models people run, and which of the above they are.
ALIASES = {"falcon3": "llama-bpe", "lfm2": "llama-bpe", "refact": "smollm", "llama4": "gpt-4o"}


@cache
def make_tokenizer(pre: str) -> Json:
    return MADE[pre]()


def metadata_of(values: Json) -> Metadata:
    data = file(values)
    return HeaderWalk("x.gguf", len(data)).read(data).metadata


def as_gguf(pre: str) -> Json:
    """Return the metadata that llama.cpp would write for a tokenizer.json."""
    file = make_tokenizer(pre)
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
        "tokenizer.ggml.pre": pre,
        "tokenizer.ggml.tokens": tokens + padding,
        "tokenizer.ggml.token_type": types + [UNUSED] * len(padding),
        "tokenizer.ggml.merges": [" ".join(pair) for pair in file["model"]["merges"]],
        "tokenizer.ggml.bos_token_id": 0,
    }


def sentence_piece_as_gguf() -> Json:
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


NEWLINES = ("\n", "\n\n", "\n\n\n")


@cache
def gemma() -> tuple[Json, Json]:
    """Return the tokenizer of transformers' GemmaTokenizer, and the same as a GGUF has it."""
    model = cached("llama2")["model"]
    tokens = sorted(model["vocab"], key=model["vocab"].__getitem__)
    pairs = [tuple(merge.split(" ")) for merge in model["merges"]]
    tokens += [line for line in NEWLINES if line not in tokens]
    pairs += [(line, "\n") for line in NEWLINES[:2]]
    types = [UNKNOWN, CONTROL, CONTROL, *[BYTE] * 256]
    vocabulary = {token: number for number, token in enumerate(tokens)}
    theirs = tokenizers.Tokenizer(
        models.BPE(vocabulary, pairs, fuse_unk=True, unk_token="<unk>", byte_fallback=True)
    )
    theirs.normalizer = normalizers.Replace(" ", "▁")
    theirs.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    theirs.add_special_tokens(["<unk>", "<s>", "</s>"])
    return as_json(theirs), {
        "tokenizer.ggml.model": "gemma4",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": types + [NORMAL] * (len(tokens) - len(types)),
        "tokenizer.ggml.scores": [-1000.0] * len(tokens),  # are not asked
        "tokenizer.ggml.merges": [" ".join(pair) for pair in pairs],
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.unknown_token_id": 0,
    }


def files_of(values: Json) -> Json:
    return read_tokenizer(metadata_of(values))


def ids_of(values: Json, texts: list[str]) -> list[list[int]]:
    tokenizer = Tokenizer.from_json(files_of(values)["tokenizer.json"])
    return [tokenizer.encode(text) for text in texts]


def theirs(original: Json, texts: list[str]) -> list[list[int]]:
    tokenizer = tokenizers.Tokenizer.from_str(json.dumps(original))
    return [encoding.ids for encoding in tokenizer.encode_batch(texts)]


@pytest.mark.long
@pytest.mark.parametrize("pre", MADE)
def test_byte_level_styles(pre: str) -> None:
    texts = [*lines()[::10], "[PAD1]", "It'S 12345 ÀÉ nǅ e\u0301\u0301x ISO/IEC\n\n \t//\r\n ½"]
    values = as_gguf(pre) | {"tokenizer.ggml.add_bos_token": pre == "llama-bpe"}
    assert ids_of(values, texts) == theirs(make_tokenizer(pre), texts)


def test_a_file_without_the_name_of_a_style() -> None:
    values = as_gguf("default")
    del values["tokenizer.ggml.pre"]
    assert ids_of(values, lines()[::100]) == theirs(make_tokenizer("default"), lines()[::100])


@pytest.mark.parametrize(("name", "same_as"), ALIASES.items())
def test_names_of_the_same_style(name: str, same_as: str) -> None:
    assert STYLES[name] == STYLES[same_as]


def test_styles_that_begin_a_text_unless_the_file_says_otherwise() -> None:
    assert {name for name, style in STYLES.items() if style.adds_bos} == {
        *("llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "lfm2", "pixtral", "tekken")
    }
    assert ids_of(as_gguf("tekken"), ["a"])[0][0] == 0
    assert ids_of(as_gguf("tekken") | {"tokenizer.ggml.add_bos_token": False}, ["a"])[0][0] != 0


def test_sentence_piece() -> None:
    texts = lines()[::10]
    values = sentence_piece_as_gguf()
    assert ids_of(values, texts) == theirs(cached("llama2"), texts)
    config = files_of(values)["tokenizer_config.json"]
    assert (config["bos_token"], config["eos_token"], config["unk_token"]) == (
        "<s>",
        "</s>",
        "<unk>",
    )


def test_gemma_4() -> None:
    """Merges on characters, spaces as ▁, bytes for what is no token; a beginning, but no space."""
    lined = [f"{one}\n\n{other}\n" for one, other in pairwise(lines()[::400])]
    texts = [*lines()[::10], *lined, "a\n\n\n\n  b", " <s> \N{LINEAR B SYLLABLE B008 A}"]
    original, values = gemma()
    plain = values | {"tokenizer.ggml.add_bos_token": False}
    wanted = theirs(original, texts)
    assert ids_of(plain, texts) == wanted
    tokenizer = Tokenizer.from_json(files_of(plain)["tokenizer.json"])
    decoded = [tokenizer.decode(ids, skip_special_tokens=False) for ids in wanted]
    assert decoded == [text.replace("▁", " ") for text in texts]
    assert ids_of(values, texts[:3]) == [[1, *ids] for ids in wanted[:3]]


def test_no_space_before_the_text_and_an_end_after_it() -> None:
    values = sentence_piece_as_gguf() | {
        "tokenizer.ggml.add_space_prefix": False,
        "tokenizer.ggml.add_bos_token": False,
        "tokenizer.ggml.add_eos_token": True,
    }
    tokenizer = Tokenizer.from_json(files_of(values)["tokenizer.json"])
    ids = tokenizer.encode("the <s> cat")
    assert tokenizer.decode(ids, skip_special_tokens=False) == "the <s> cat</s>"
    assert not values["tokenizer.ggml.tokens"][ids[0]].startswith("▁")


def test_the_package_tokenizers_reads_what_is_written() -> None:
    """Two texts at once, too, which nothing here asks for; and it writes the same text back."""
    ends = {"tokenizer.ggml.add_bos_token": True, "tokenizer.ggml.add_eos_token": True}
    for values in (sentence_piece_as_gguf() | ends, as_gguf("tekken") | ends):
        file = files_of(values)["tokenizer.json"]
        package = tokenizers.Tokenizer.from_str(json.dumps(file))
        ours = Tokenizer.from_json(file)
        first, second = ours.encode("the cat"), ours.encode("a dog\u2603")
        assert package.encode("the cat").ids == first
        pair = package.encode("the cat", "a dog\u2603")
        assert pair.ids == first + second
        assert pair.type_ids.index(1) in (len(first), len(first) + 1), "the second begins there"
        assert package.decode(second) == ours.decode(second) == "a dog\u2603"


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


# Ends ---------------------------------------------------------------------------------------------


def ends(tokens: list[str], **keys: int) -> list[str]:
    named = {f"tokenizer.ggml.{key}_token_id": number for key, number in keys.items()}
    found = end_tokens(metadata_of({"tokenizer.ggml.tokens": tokens} | named))
    return [tokens[number] for number in sorted(found)]


def test_ends_by_key_and_by_spelling() -> None:
    assert ends(["a", "b", "c", "d"], eos=1, eot=2, eom=3) == ["b", "c", "d"]
    assert ends(["<|end|>", "<|endoftext|>", "a"], eos=1) == ["<|end|>", "<|endoftext|>"]  # Phi-3.5
    llama3 = ["<|eot_id|>", "<|eom_id|>", "<|end_of_text|>", "<|start_header_id|>"]
    assert ends(llama3, eos=0) == llama3[:3]


def test_an_end_of_a_channel_is_no_end_of_an_answer() -> None:
    assert ends(["<|end|>", "<|return|>", "<|call|>"]) == ["<|return|>", "<|call|>"]  # gpt-oss
    assert ends(["</s>", "<turn|>", "<|tool_response>"]) == ["<turn|>", "<|tool_response>"]


@pytest.mark.model
def test_the_default_model_ends() -> None:
    metadata = smollm2_metadata()
    tokens = metadata.texts("tokenizer.ggml.tokens")
    found = {tokens[number] for number in end_tokens(metadata)}
    assert found == {"<|im_end|>", "<|endoftext|>", "<reponame>"}


# Markers ------------------------------------------------------------------------------------------

MARKERS = ["<|turn>", "<turn|>", "<|im_start|>", "<start_of_turn>", "<\uff5cUser\uff5c>"]
NO_MARKERS = ["<div>", "<|>", "|>", "<| x |>"]


def with_markers(values: Json, types: Sequence[int] = ()) -> Json:
    tokens = [*values["tokenizer.ggml.tokens"], *MARKERS, *NO_MARKERS]
    added = [*types, *[NORMAL] * (len(MARKERS + NO_MARKERS) - len(types))]
    types = [*values["tokenizer.ggml.token_type"], *added]
    changes: Json = {"tokens": tokens, "token_type": types, "scores": [-1000.0] * len(tokens)}
    return values | {f"tokenizer.ggml.{key}": value for key, value in changes.items()}


@pytest.mark.parametrize("types", [(), (NORMAL, USER_DEFINED)], ids=["normal", "user-defined end"])
def test_markers_of_turns_that_are_listed_as_ordinary_tokens(types: Sequence[int]) -> None:
    """Templates write them as one token each; what users write is text, whatever it spells."""
    values = with_markers(gemma()[1], types)
    tokenizer = Tokenizer.from_json(files_of(values)["tokenizer.json"])
    assert tokenizer.control_tokens >= {*MARKERS, "<s>"}
    assert tokenizer.control_tokens.isdisjoint(NO_MARKERS)
    first = len(gemma()[1]["tokenizer.ggml.tokens"])
    markers = list(range(first, first + len(MARKERS)))
    text = "".join(MARKERS)
    assert tokenizer.encode(text, add_special_tokens=False) == markers
    literal = tokenizer.encode(text, add_special_tokens=False, literal=[(0, len(text))])
    assert not {*literal} & {*markers}
    assert tokenizer.decode(literal, skip_special_tokens=False) == text


def test_no_text_is_merged_into_a_control_token() -> None:
    """SentencePiece has no merges of its own: two tokens that make a third would be one."""
    values = sentence_piece_as_gguf()
    tokens = [*values["tokenizer.ggml.tokens"], "<s"]
    values |= {
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [*values["tokenizer.ggml.token_type"], NORMAL],
        "tokenizer.ggml.scores": [*values["tokenizer.ggml.scores"], 1.0],
    }
    tokenizer = Tokenizer.from_json(files_of(values)["tokenizer.json"])
    ids = tokenizer.encode("<s>", add_special_tokens=False, literal=[(0, 3)])
    assert len(tokens) - 1 in ids, "the two first characters are merged"
    assert tokens.index("<s>") not in ids


# Faults -------------------------------------------------------------------------------------------


def spoilt(key: str, place: int, value: Any, values: Json) -> Json:
    items = list(values[f"tokenizer.ggml.{key}"])
    items[place] = value
    return {f"tokenizer.ggml.{key}": items}


GPT2_FAULTS: dict[str, tuple[Json, str]] = {
    "no model": ({"tokenizer.ggml.model": None}, "'tokenizer.ggml.model' is missing"),
    "no tokens": ({"tokenizer.ggml.tokens": None}, "'tokenizer.ggml.tokens' is missing"),
    "no merges": ({"tokenizer.ggml.merges": None}, "'tokenizer.ggml.merges' is missing"),
    "another model": (
        {"tokenizer.ggml.model": "rwkv"},
        "has a tokenizer of the model 'rwkv'; only 'gpt2' (byte-level ",
    ),
    "another style": (
        {"tokenizer.ggml.pre": "falcon"},
        "its pre-tokenizer is 'falcon', which is not supported; these are: chatglm-bpe, ",
    ),
    "few types": (
        {"tokenizer.ggml.token_type": [1]},
        "'tokenizer.ggml.token_type' has 1 items, but there are 2502 tokens",
    ),
    "floats for types": (
        {"tokenizer.ggml.token_type": [1.0]},
        "'tokenizer.ggml.token_type' is an array of f32, not an array of integers",
    ),
    "an id past the end": (
        {"tokenizer.ggml.bos_token_id": 9999},
        "'tokenizer.ggml.bos_token_id' is 9999, not from 0 to 2501",
    ),
    "numbers for tokens": (
        {"tokenizer.ggml.tokens": [1, 2]},
        "'tokenizer.ggml.tokens' is an array of i32, not an array of texts",
    ),
    "a merge of nothing": (
        {"tokenizer.ggml.merges": ["Ġ t", "Ġt nosuchtoken"]},
        "'tokenizer.ggml.merges' has 'Ġt nosuchtoken' at 1, which joins no two tokens into one",
    ),
    "a merge without a cut": (
        {"tokenizer.ggml.merges": ["Ġ"]},
        "'tokenizer.ggml.merges' has 'Ġ' at 0, which joins no two tokens into one",
    ),
}


@pytest.mark.parametrize(("change", "fault"), GPT2_FAULTS.values(), ids=GPT2_FAULTS)
def test_a_fault_is_named(change: Json, fault: str) -> None:
    values = as_gguf("gpt-2") | change
    with pytest.raises(GgufError) as caught:
        files_of({name: value for name, value in values.items() if value is not None})
    assert fault in str(caught.value)
    assert str(caught.value).startswith("x.gguf")
    assert "\n" not in str(caught.value)


IDS = ("bos", "eos", "unknown", "padding")


@pytest.mark.parametrize("name", [*IDS, "eot", "eom"])
def test_every_special_token_is_one_of_the_tokens(name: str) -> None:
    """The ends, which are asked for apart, are among them."""
    key = f"tokenizer.ggml.{name}_token_id"
    for number in (2502, 2**31):
        metadata = metadata_of(as_gguf("gpt-2") | {key: number})
        with pytest.raises(GgufError, match=f"'{key}' is {number}, not from 0 to 2501"):
            (read_tokenizer if name in IDS else end_tokens)(metadata)


def test_a_token_that_is_there_twice() -> None:
    values = as_gguf("gpt-2")
    values |= spoilt("tokens", 7, values["tokenizer.ggml.tokens"][5], values)
    with pytest.raises(GgufError, match=r"'tokenizer.ggml.tokens' has '.*' twice, at 5 and at 7"):
        files_of(values)


PIECE_FAULTS = {
    "a score that is none": ("scores", 9, float("nan"), "has the value nan at 9, which is not"),
    "a byte below zero": ("tokens", 3, "<0x-1>", "not among <0x00> to <0xFF>: '<0x-1>'"),
    "a byte twice": ("tokens", 20, "<0x00>", "has '<0x00>' twice, at 3 and at 20"),
    "a byte in small letters": ("tokens", 20, "<0xab>", "not among <0x00> to <0xFF>: '<0xab>'"),
    "a byte that is none": ("token_type", 30, NORMAL, "has tokens for 255 bytes, not for all 256"),
}


@pytest.mark.parametrize(
    ("key", "place", "value", "fault"), PIECE_FAULTS.values(), ids=PIECE_FAULTS
)
def test_faults_of_sentence_piece(key: str, place: int, value: Any, fault: str) -> None:
    values = sentence_piece_as_gguf()
    with pytest.raises(GgufError, match=r"its metadata 'tokenizer.ggml.") as caught:
        files_of(values | spoilt(key, place, value, values))
    assert fault in str(caught.value)


def test_fewer_scores_than_tokens() -> None:
    with pytest.raises(GgufError, match=r"'tokenizer.ggml.scores' has 1 items, but there are"):
        files_of(sentence_piece_as_gguf() | {"tokenizer.ggml.scores": [0.5]})
