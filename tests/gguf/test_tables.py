"""Tables of GGUF against the package gguf, and numbers of metadata at the ends of their ranges."""

from typing import Any

import numpy as np
import pytest
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType
from gguf import TokenType as PackageTokenType

from py_runtime.gguf import reader
from py_runtime.gguf.container import MAGIC, VERSIONS
from py_runtime.gguf.errors import GgufError
from py_runtime.gguf.metadata import Metadata, Value, ValueType
from py_runtime.gguf.reader import open_gguf, read_header
from py_runtime.gguf.tensor_types import TENSOR_TYPES, WITHDRAWN
from py_runtime.gguf.tokenizer import TokenType, end_tokens, read_tokenizer, token_ids
from tests.gguf import small
from tests.gguf.test_boundaries import ONE, config_of
from tests.gguf.test_tokenizer import metadata_of
from tests.gguf.written import Tensor, file
from tests.pte.memory_source import MemorySource
from tests.runners import wait

LAST = small.VOCABULARY - 1


def test_tensor_types_are_those_of_the_package() -> None:
    theirs = {
        int(kind): (kind.name, values, nbytes)
        for kind, (values, nbytes) in GGML_QUANT_SIZES.items()
        if kind in GGMLQuantizationType
    }
    ours = {number: (kind.name, kind.values, kind.nbytes) for number, kind in TENSOR_TYPES.items()}
    assert {number: ours[number] for number in theirs if number in ours} == {
        number: row for number, row in theirs.items() if number in ours
    }
    assert len(ours.keys() & theirs.keys()) >= 31, "older packages lack the newest types"
    assert not WITHDRAWN.keys() & theirs.keys()
    assert all(number == kind.number for number, kind in TENSOR_TYPES.items())


@pytest.mark.parametrize("kind", TENSOR_TYPES.values(), ids=lambda kind: kind.name)
def test_bytes_of_rows(kind: Any) -> None:
    for blocks in (1, 3):
        assert kind.row_bytes(blocks * kind.values) == blocks * kind.nbytes


def test_token_types_are_those_of_the_package() -> None:
    assert {kind.name: int(kind) for kind in TokenType} == {
        kind.name: int(kind) for kind in PackageTokenType
    }


def test_the_first_bytes() -> None:
    assert MAGIC == b"GGUF"
    assert VERSIONS == (2, 3)


# Integers of metadata -----------------------------------------------------------------------------

TOKEN_KEYS = ("bos_token_id", "eos_token_id", "eot_token_id", "eom_token_id")
NAMED = {"bos_token_id": "bos_token", "eos_token_id": "eos_token"}
NAMED |= {"unknown_token_id": "unk_token", "padding_token_id": "pad_token"}


@pytest.mark.parametrize("key", TOKEN_KEYS)
def test_ids_of_a_config_are_those_of_tokens(key: str) -> None:
    for number in (0, 1, LAST):
        metadata = metadata_of(small.tokenizer() | {f"tokenizer.ggml.{key}": number})
        ids = token_ids(metadata)
        if key == "bos_token_id":
            assert ids["bos_token_id"] == number
        else:
            assert number in end_tokens(metadata)
            assert ids["eos_token_id"] == sorted(end_tokens(metadata))
    with pytest.raises(GgufError, match=f"is {LAST + 1}, not from 0 to {LAST}"):
        token_ids(metadata_of(small.tokenizer() | {f"tokenizer.ggml.{key}": LAST + 1}))


def test_a_file_need_not_say_where_a_text_begins() -> None:
    values = small.tokenizer()
    del values["tokenizer.ggml.bos_token_id"]
    assert "bos_token_id" not in token_ids(metadata_of(values))


@pytest.mark.parametrize("key", NAMED)
def test_named_tokens(key: str) -> None:
    for number in (0, LAST):
        values = small.tokenizer() | {f"tokenizer.ggml.{key}": number}
        config = read_tokenizer(metadata_of(values))["tokenizer_config.json"]
        assert config[NAMED[key]] == small.TOKENS[number]
    with pytest.raises(GgufError, match=f"is {LAST + 1}, not from 0 to {LAST}"):
        read_tokenizer(metadata_of(small.tokenizer() | {f"tokenizer.ggml.{key}": LAST + 1}))


FLAGS = ("add_bos_token", "add_eos_token")


@pytest.mark.parametrize("name", FLAGS)
def test_flags_of_a_tokenizer(name: str) -> None:
    """Left out, a text of this style has neither token around it; given, it is as given."""
    for given, expected in (({}, False), ({name: True}, True), ({name: False}, False)):
        values = {key: value for key, value in small.tokenizer().items() if name not in key}
        values |= {f"tokenizer.ggml.{key}": value for key, value in given.items()}
        made = read_tokenizer(metadata_of(values))
        assert made["tokenizer_config.json"][name] is expected
        assert (made["tokenizer.json"]["post_processor"] is not None) is expected


@pytest.mark.parametrize("given", [{}, {"add_space_prefix": True}, {"add_space_prefix": False}])
def test_the_space_before_a_text(given: dict[str, bool]) -> None:
    values = small.sentence_pieces() | {f"tokenizer.ggml.{key}": x for key, x in given.items()}
    made = read_tokenizer(metadata_of(values))
    parts = made["tokenizer.json"]["normalizer"]["normalizers"]
    decoders = made["tokenizer.json"]["decoder"]["decoders"]
    has_space = given.get("add_space_prefix", True)
    assert [part["type"] for part in parts] == ["Prepend"] * has_space + ["Replace"]
    assert [part["type"] for part in decoders[3:]] == ["Strip"] * has_space
    assert made["tokenizer_config.json"]["add_bos_token"] is True
    assert made["tokenizer.json"]["model"]["byte_fallback"] is True
    assert made["tokenizer.json"]["model"]["fuse_unk"] is True
    assert made["tokenizer.json"]["model"]["unk_token"] == "<unk>"
    assert made["tokenizer.json"]["model"]["ignore_merges"] is False


PATTERN = "attention__sliding_window_pattern"
WINDOW = {"attention__sliding_window": 8}


@pytest.mark.parametrize("period", [1, 2, 1024])
def test_a_period_of_layers(period: int) -> None:
    found = config_of("gemma2", block_count=3, **{PATTERN: period}, **WINDOW)["layer_types"]
    slides = ["sliding_attention", "full_attention"]
    assert found == [slides[(number + 1) % period == 0] for number in range(3)]


@pytest.mark.parametrize("period", [0, 1025])
def test_a_period_that_is_none(period: int) -> None:
    with pytest.raises(GgufError, match=f"is {period}, not from 1 to 1024"):
        config_of("gemma2", **{PATTERN: period}, **WINDOW)


@pytest.mark.parametrize(("flags", "is_whole"), [(2, False), (3, True), (4, True)])
def test_a_flag_for_each_layer(flags: int, is_whole: bool) -> None:
    given = [True, False, True, False][:flags]
    if not is_whole:
        with pytest.raises(GgufError, match="has 2 items for 3 layers"):
            config_of("gemma2", block_count=3, **{PATTERN: given}, **WINDOW)
        return
    found = config_of("gemma2", block_count=3, **{PATTERN: given}, **WINDOW)["layer_types"]
    assert found == ["sliding_attention", "full_attention", "sliding_attention"]


@pytest.mark.parametrize("heads", [1, 2])
def test_heads_of_each_layer(heads: int) -> None:
    key = "attention__head_count_kv"
    assert config_of(block_count=3, **{key: [heads] * 3})["num_key_value_heads"] == heads
    for wrong in ([heads] * 2, [0] * 3, [heads, heads, 0]):
        with pytest.raises(GgufError, match="needs 3 integers from 1"):
            config_of(block_count=3, **{key: wrong})
    with pytest.raises(GgufError, match="differs from layer to layer"):
        config_of(block_count=3, **{key: [1, 2, 1]})
    with pytest.raises(GgufError, match="does not divide the 2 query heads"):
        config_of(**{key: 4})


def test_integers_are_asked_for_from_zero_on_unless_told() -> None:
    values = {name: Value(ValueType.I64, item) for name, item in {"a": 0, "b": -1}.items()}
    metadata = Metadata("x.gguf", values | {"c": Value(ValueType.I64, 2**63 - 1)})
    assert metadata.integer("a") == 0
    assert metadata.integer("c") == 2**63 - 1
    with pytest.raises(GgufError, match="is -1, not from 0"):
        metadata.integer("b")
    assert metadata.integer("b", -1) == -1


def test_what_is_an_array() -> None:
    metadata = metadata_of({"one": 1, "list": [1, 2]})
    assert metadata.is_array("list")
    assert not metadata.is_array("one")
    assert not metadata.is_array("none")
    assert "one" in metadata
    assert "none" not in metadata


# Headers that come in parts -----------------------------------------------------------------------


class CountingSource(MemorySource):
    """A source that remembers the ranges that were asked for."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data, "x.gguf")
        self.asked: list[tuple[int, int]] = []

    async def read(self, offset: int, nbytes: int) -> bytes:
        self.asked.append((offset, nbytes))
        return await super().read(offset, nbytes)


def test_a_header_is_read_in_ranges_that_double(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "FIRST_BYTES", 64)
    source = CountingSource(file({f"key {n:03}": n for n in range(40)}, [ONE]))
    header = wait(read_header(source))
    assert [info.name for info in header.tensors] == ["one.weight"]
    size = wait(source.size())
    ends = [64, 128, 256, 512, 1024, 2048]
    starts = [0, *ends]
    assert (
        source.asked
        == [
            (begin, min(end, size) - begin)
            for begin, end in zip(starts, ends, strict=False)
            if begin < size
        ][: len(source.asked)]
    )
    assert len(source.asked) > 3


def test_a_text_that_is_longer_is_asked_for_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "FIRST_BYTES", 64)
    source = CountingSource(file({"a": "x" * 5000, "b": 1}, [ONE]))
    wait(read_header(source))
    before_text = 24 + 8 + 1 + 4 + 8  # start, the key and its length, the type, the text's length
    assert source.asked[:2] == [(0, 64), (64, before_text + 5000 - 64)]


def test_parts_of_a_model_are_counted() -> None:
    two = np.ones(32, np.float32)

    def part(number: int, name: str, **more: int) -> MemorySource:
        entries = {"split.count": 2, "split.no": number, **more}
        return MemorySource(file(entries, [Tensor.floats(name, two)]), f"{number}.gguf")

    key = "split.tensors.count"
    found = wait(open_gguf([part(1, "b"), part(0, "a", **{key: 2})]))
    assert found.name == "0.gguf"
    assert list(found.tensors) == ["a", "b"]
    sources = [part(1, "b"), part(0, "a", **{key: 2})]
    assert found.size == sum(wait(source.size()) for source in sources)
    for claimed in (1, 3):
        with pytest.raises(GgufError, match=f"speaks of {claimed} tensors"):
            wait(open_gguf([part(0, "a", **{key: claimed}), part(1, "b")]))
    with pytest.raises(GgufError, match="is 2, not from 0 to 1"):
        wait(open_gguf([part(0, "a"), part(2, "b")]))
