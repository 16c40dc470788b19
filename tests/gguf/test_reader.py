"""The container: what the package `gguf` reads is read the same, and ten kinds of lies are told."""

import struct
from pathlib import Path

import numpy as np
import pytest
from gguf import GGUFReader
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType

from py_runtime.gguf import container, reader
from py_runtime.gguf.errors import GgufError, UnsupportedGgufError
from py_runtime.gguf.part_names import is_first_part, parts_of
from py_runtime.gguf.reader import GgufFile, open_gguf
from py_runtime.gguf.tensor_types import TENSOR_TYPES
from tests.fuzz.in_line import result_of
from tests.gguf import small
from tests.gguf.written import (
    ARRAY,
    BOOL,
    F32,
    TEXT,
    U32,
    U64,
    Tensor,
    Typed,
    entry,
    file,
    pad,
    start,
    tensor_info,
    text,
)
from tests.pte.memory_source import MemorySource

ONE = Tensor.floats("one.weight", np.arange(64).reshape(2, 32))
TWO = Tensor.floats("two.weight", np.arange(5))


def open_bytes(*files: bytes) -> GgufFile:
    sources = [MemorySource(data, f"part{n}.gguf") for n, data in enumerate(files)]
    return result_of(open_gguf(sources))


def refused(*files: bytes) -> str:
    with pytest.raises(GgufError) as caught:
        open_bytes(*files)
    told = str(caught.value)
    assert "\n" not in told
    assert told.startswith(("part0.gguf", "part1.gguf", "the tensor"))
    assert "; " in told, "what to do is said too"
    return told


# Sound files -------------------------------------------------------------------------------------


def test_it_reads_what_the_package_reads(tmp_path: Path) -> None:
    data = small.small_file()
    (tmp_path / "x.gguf").write_bytes(data)
    theirs, ours = GGUFReader(tmp_path / "x.gguf"), open_bytes(data)
    fields = {key: field for key, field in theirs.fields.items() if not key.startswith("GGUF.")}
    assert list(ours.metadata.values) == list(fields)
    for key, field in fields.items():
        item = ours.metadata.values[key].item
        assert (item.tolist() if isinstance(item, np.ndarray) else item) == field.contents()
    assert list(ours.tensors) == [tensor.name for tensor in theirs.tensors]
    for tensor in theirs.tensors:
        info = ours.tensors[tensor.name].info
        assert (info.offset, info.nbytes) == (tensor.data_offset, tensor.n_bytes)
        assert info.kind.name == tensor.tensor_type.name
        assert info.dims == tuple(reversed([int(size) for size in tensor.shape]))


def test_the_table_of_types_is_the_package_s() -> None:
    theirs = {int(kind): (kind.name, *GGML_QUANT_SIZES[kind]) for kind in GGMLQuantizationType}
    ours = {kind.number: (kind.name, kind.values, kind.nbytes) for kind in TENSOR_TYPES.values()}
    assert ours == theirs


def test_a_header_longer_than_the_first_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """It goes on where it was; no byte of the data is read, and none of the header twice."""
    data = small.small_file()
    monkeypatch.setattr(reader, "FIRST_BYTES", 5)
    source = MemorySource(data)
    found = result_of(open_gguf([source]))
    first = min(tensor.info.offset for tensor in found.tensors.values())
    assert source.bytes_read <= 2 * first
    assert found.metadata.texts("tokenizer.ggml.tokens") == small.TOKENS
    assert found.tensors.keys() == open_bytes(data).tensors.keys()


@pytest.mark.parametrize("alignment", [8, 64, 4096])
def test_another_alignment(alignment: int) -> None:
    found = open_bytes(file({"general.alignment": alignment}, [TWO, ONE], alignment=alignment))
    assert all(tensor.info.offset % alignment == 0 for tensor in found.tensors.values())


def test_version_two_and_a_file_that_ends_without_padding() -> None:
    assert open_bytes(file({}, [TWO], version=2)[:-12]).tensors.keys() == {"two.weight"}


# The checks, by the numbers of the list ----------------------------------------------------------


def with_entry(key: str, kind: int, rest: bytes) -> bytes:
    """Write one entry as it stands, before a lot of room that a count may claim."""
    return start(0, 1) + text(key) + struct.pack("<I", kind) + rest + bytes(64)


COUNTS = {
    "tensors": (start(2**63, 0) + bytes(99), "it claims 9223372036854775808 tensors; at most"),
    "entries": (start(0, 2**40) + bytes(99), "it claims 1099511627776 entries of metadata; at"),
    "tensors for the file": (start(100, 0) + bytes(99), "100 tensors, for which it is too short"),
    "entries for the file": (start(0, 100) + bytes(99), "100 entries of metadata, for which it"),
    "items": (
        with_entry("a", ARRAY, struct.pack("<IQ", U32, 2**61)),
        "'a' claims 2305843009213693952 items; at most",
    ),
    "items for the file": (
        with_entry("a", ARRAY, struct.pack("<IQ", U64, 1_000_000)),
        "'a' claims 1000000 items, for which the file is too short",
    ),
    "texts for the file": (
        with_entry("a", ARRAY, struct.pack("<IQ", TEXT, 1_000_000)),
        "'a' claims 1000000 items, for which the file is too short",
    ),
    "a tensor too many": (
        start(100_001, 0) + bytes(99),
        "it claims 100001 tensors; at most",
    ),
    "an entry too many": (start(0, 100_001) + bytes(99), "100001 entries of metadata; at most"),
    "an item too many": (
        with_entry("a", ARRAY, struct.pack("<IQ", U32, 2_000_001)),
        "'a' claims 2000001 items; at most 2000000",
    ),
    "a byte too many": (
        with_entry("a", TEXT, struct.pack("<Q", (16 << 20) + 1)),
        "'a' claims 16777217 bytes; at most 16777216",
    ),
    "a text": (
        with_entry("a", TEXT, struct.pack("<Q", 2**63)),
        "'a' claims 9223372036854775808 bytes; at most",
    ),
    "a text of many": (
        with_entry("a", ARRAY, struct.pack("<IQQ", TEXT, 1, 2**63)),
        "item 0 of 'a' claims 9223372036854775808 bytes",
    ),
}


@pytest.mark.parametrize(("data", "fault"), COUNTS.values(), ids=COUNTS)
def test_1_counts_are_compared_with_the_file_before_anything_is_made(
    data: bytes, fault: str
) -> None:
    assert fault in refused(data)


FORMS = {
    "nothing": (b"", "is not a GGUF file: it does not begin with 'GGUF'"),
    "another file": (b"PK\3\4" + bytes(99), "is not a GGUF file: it does not begin with 'GGUF'"),
    "version 0": (start(0, 0, version=0), "is of version 0 of GGUF; only 2 and 3 are read; get a"),
    "version 65536": (start(0, 0, version=1 << 16), "version 65536 of GGUF; only 2 and 3 are read"),
    "version 1": (start(0, 0, version=1), "is of version 1 of GGUF; only 2 and 3 are read"),
    "a later version": (start(0, 0, version=4), "version 4 of GGUF; only 2 and 3 are read; update"),
    "big-endian": (start(0, 0, version=3 << 24), "a GGUF file for big-endian machines; get"),
    "cut in its header": (small.small_file()[:500], "it ends after 500 bytes, in the middle of"),
    "a long key": (
        start(0, 1) + text("k" * 65_536) + bytes(99),
        "the name of an entry of metadata claims 65536 bytes; at most 65535",
    ),
    "a long name": (
        start(1, 0) + tensor_info(Tensor("n" * 64, (1,), "F32", b""), 0) + bytes(99),
        "the name of a tensor claims 64 bytes; at most 63",
    ),
    "a nested array": (
        with_entry("a", ARRAY, struct.pack("<IQ", ARRAY, 1)),
        "'a' has arrays inside an array",
    ),
    "an unknown type": (with_entry("a", 13, b""), "'a' is of the unknown type 13"),
    "an odd bool": (file({"a": Typed(BOOL, 2)}, [ONE]), "'a' is a bool of the value 2"),
    "odd bools": (file({"a": Typed(BOOL, [0, 2])}, [ONE]), "a bool that is neither 0 nor 1"),
    "a key that is no text": (start(0, 1) + entry(b"\xff", 1) + bytes(9), "is not UTF-8 text"),
    "a text that is none": (file({"a": b"\xff"}, [ONE]), "its metadata 'a' is not UTF-8 text"),
    "a token that is no text": (
        file({"tokenizer.ggml.tokens": ["a", "b", b"\xc3(", "c"]}, [ONE]),
        "item 2 of its metadata 'tokenizer.ggml.tokens' is not UTF-8 text",
    ),
    "no name": (start(0, 1) + entry("", 1) + bytes(9), "an entry of its metadata has no name"),
    "a tensor without name": (
        file({}, [Tensor.floats("", np.ones(8))]),
        "a tensor has no name",
    ),
    "no tensors": (file({"a": 1}), "has no tensors; get a file that has the model's weights"),
}


@pytest.mark.parametrize(("data", "fault"), FORMS.values(), ids=FORMS)
def test_2_the_form_is_kept(data: bytes, fault: str) -> None:
    assert fault in refused(data)


def test_2_a_header_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(container, "MAX_HEADER", 100)
    monkeypatch.setattr(reader, "FIRST_BYTES", 64)
    assert "its header has more than 100 bytes" in refused(small.small_file())


def test_3_nothing_is_there_twice() -> None:
    twice = start(0, 2) + entry("a", 1) * 2 + bytes(64)
    assert "its metadata has 'a' twice" in refused(twice)
    assert "it has the tensor 'one.weight' twice" in refused(file({}, [ONE, ONE]))


def test_3_a_value_has_the_type_that_is_asked_for() -> None:
    values = {"n": 1, "f": 0.5, "t": "x", "b": True, "ns": [1], "fs": [0.5], "ts": ["x"]}
    metadata = open_bytes(file(values, [ONE])).metadata
    asked = {
        "n": lambda key: metadata.integer(key),
        "f": lambda key: metadata.number(key, 0, 1),
        "t": metadata.text,
        "b": metadata.flag,
        "ns": metadata.integers,
        "fs": metadata.numbers,
        "ts": metadata.texts,
    }
    for wanted, ask in asked.items():
        assert ask(wanted) == values[wanted]
        for other in values.keys() - {wanted}:
            with pytest.raises(GgufError, match=f"its metadata '{other}' is .*, not "):
                ask(other)
        with pytest.raises(GgufError, match="its metadata 'none' is missing"):
            ask("none")


ALIGNMENTS = {
    "no power of two": (24, "is 24, which is not a power of two"),
    "zero": (0, "is 0, not from 8 to 4096"),
    "huge": (Typed(U32, 0x80000000), "is 2147483648, not from 8 to 4096"),
    "no integer": (32.0, "is f32, not an integer"),
}


@pytest.mark.parametrize(("alignment", "fault"), ALIGNMENTS.values(), ids=ALIGNMENTS)
def test_4_the_alignment_is_a_power_of_two(alignment: object, fault: str) -> None:
    told = refused(file({"general.alignment": alignment}, [ONE]))
    assert f"its metadata 'general.alignment' {fault}" in told


def lone(tensor: Tensor, offset: int = 0, number: int | None = None) -> bytes:
    return pad(start(1, 0) + tensor_info(tensor, offset, number), 32) + tensor.data


PLACES = {
    "no dims": (lone(Tensor("x", (), "F32", bytes(64))), "'x' has 0 dims, not 1 to 4"),
    "five dims": (lone(Tensor("x", (1,) * 5, "F32", b"")), "'x' has 5 dims, not 1 to 4"),
    "an empty dim": (lone(Tensor("x", (0, 4), "F32", b"")), "a dim of 0, not 1 to 2147483648"),
    "a huge dim": (lone(Tensor("x", (2**32, 4), "F32", b"")), "a dim of 4294967296, not"),
    "a product that overflows": (
        lone(Tensor("x", (2**31, 2**31, 4), "F32", b"")),
        "'x' claims 18446744073709551616 values",
    ),
    "half a block": (
        lone(Tensor("x", (2, 48), "Q8_0", bytes(102))),
        "'x' has rows of 48 values, but Q8_0 stores 32 together",
    ),
    "a gap": (lone(ONE, offset=32), "begin at byte 32 of the data, but the tensors before it end"),
    "an overlap": (
        pad(start(2, 0) + tensor_info(ONE, 0) + tensor_info(TWO, 32), 32) + bytes(512),
        "begin at byte 32 of the data, but the tensors before it end at 256",
    ),
    "cut short": (file({}, [ONE])[:-1], "its tensors take 352 bytes: it is cut short"),
    "a tail": (file({}, [ONE]) + bytes(1), "1 bytes follow its last tensor"),
    "an unknown type": (lone(ONE, number=99), "'one.weight' is of the type 99, which this engine"),
    "a withdrawn type": (lone(ONE, number=31), "is Q4_0_4_4, a type that GGUF has no more; get a"),
}


@pytest.mark.parametrize(("data", "fault"), PLACES.values(), ids=PLACES)
def test_5_tensors_lie_where_their_sizes_say(data: bytes, fault: str) -> None:
    assert fault in refused(data)


def test_8_floats_are_finite_and_within_bounds() -> None:
    values = {"a": float("nan"), "b": float("inf"), "c": 2.0, "d": Typed(F32, [0.0, -np.inf])}
    metadata = open_bytes(file(values, [ONE])).metadata
    for key, fault in (
        ("a", "is nan, which is not"),
        ("b", "is inf"),
        ("c", "is 2, not from 0 to"),
    ):
        with pytest.raises(GgufError, match=fault):
            metadata.number(key, 0, 1)
    with pytest.raises(GgufError, match="has the value -inf at 1, which is not finite"):
        metadata.numbers("d")


# Parts -------------------------------------------------------------------------------------------


def part(number: int, count: int, *tensors: Tensor, total: int = 2) -> bytes:
    split = {"split.no": number, "split.count": count, "split.tensors.count": total}
    return file(({"general.name": "whole"} if number == 0 else {}) | split, tensors)


def test_parts_are_one_model_in_any_order() -> None:
    found = open_bytes(part(1, 2, TWO), part(0, 2, ONE))
    assert found.name == "part1.gguf"
    assert found.metadata.text("general.name") == "whole"
    assert {name: t.source.name for name, t in found.tensors.items()} == {
        "one.weight": "part1.gguf",
        "two.weight": "part0.gguf",
    }


SPLITS = {
    "one alone": ([part(0, 3, ONE)], "in 3 parts, of which these were not given: 2, 3; give all"),
    "not the first": ([part(1, 2, TWO)], "in 2 parts, of which these were not given: 1; give all"),
    "one twice": ([part(0, 2, ONE), part(0, 2, ONE)], "part1.gguf and part0.gguf are both part 1"),
    "a stranger": ([part(0, 2, ONE), file({}, [TWO])], "part1.gguf is not part of the same model"),
    "a number too many": ([part(0, 2, ONE), part(2, 2, TWO)], "'split.no' is 2, not from 0 to 1"),
    "a tensor twice": ([part(0, 2, ONE), part(1, 2, ONE)], "'one.weight' is in part0.gguf and in"),
    "a tensor less": (
        [part(0, 2, ONE, total=3), part(1, 2, TWO)],
        "part0.gguf speaks of 3 tensors, but its parts have 2",
    ),
}


@pytest.mark.parametrize(("files", "fault"), SPLITS.values(), ids=SPLITS)
def test_parts_that_do_not_belong_together(files: list[bytes], fault: str) -> None:
    assert fault in refused(*files)


def test_names_of_parts() -> None:
    name = "Big-Q4_K_M-00002-of-00003.gguf"
    assert list(parts_of(name)) == [f"Big-Q4_K_M-0000{n}-of-00003.gguf" for n in (1, 2, 3)]
    assert list(parts_of("small.gguf")) == ["small.gguf"]
    assert list(parts_of("X-00001-OF-00002.GGUF")) == [f"X-0000{n}-OF-00002.GGUF" for n in (1, 2)]
    assert [is_first_part(each) for each in (name, *parts_of(name), "small.gguf")] == [
        *(False, True, False, False, True)
    ]


def test_what_is_unsupported_is_told_apart_from_damage() -> None:
    with pytest.raises(UnsupportedGgufError):
        open_bytes(start(0, 0, version=1))
