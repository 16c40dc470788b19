"""GGUF files at the very limits of what is read: the last that is taken, the first that is not."""

import struct
from typing import Any, cast

import numpy as np
import pytest

from py_runtime.decoder.limits import (
    MAX_CONTEXT,
    MAX_HEAD_DIM,
    MAX_HEADS,
    MAX_HIDDEN,
    MAX_LAYERS,
    MAX_WIDTH,
)
from py_runtime.gguf import container
from py_runtime.gguf.about import MAX_VALUE, about_gguf
from py_runtime.gguf.config import read_config
from py_runtime.gguf.container import MAX_DIM, MAX_KEY, MAX_TENSOR_NAME, MIN_ENTRY, MIN_TENSOR
from py_runtime.gguf.errors import GgufError
from py_runtime.gguf.metadata import ValueType
from py_runtime.gguf.model import factors_name
from py_runtime.gguf.names import LONG_FACTORS, SHORT_FACTORS
from py_runtime.gguf.part_names import model_name, parts_of
from py_runtime.gguf.planes import HALVES_AT, are_finite
from py_runtime.gguf.reader import GgufFile, open_gguf
from py_runtime.gguf.stored_weights import in_halves, kind_of, parts_of_blocks
from py_runtime.gguf.tensor_types import BY_NAME, TENSOR_TYPES, WITHDRAWN
from py_runtime.gguf.token_rows import GgufTokenRows
from tests.fuzz.in_line import result_of
from tests.gguf import small, written
from tests.gguf.test_dequantise import HALVES
from tests.gguf.written import ARRAY, BOOL, Tensor, Typed, entry, file, start, tensor_info
from tests.pte.memory_source import MemorySource
from tests.runners import wait

ONE = Tensor.floats("one.weight", np.arange(64).reshape(2, 32))


def open_bytes(data: bytes) -> GgufFile:
    return result_of(open_gguf([MemorySource(data, "x.gguf")]))


def is_refused(data: bytes, fault: str) -> bool:
    with pytest.raises(GgufError) as caught:
        open_bytes(data)
    return fault in str(caught.value)


LARGEST: dict[int, Any] = {
    written.U8: 2**8 - 1,
    written.I8: -(2**7),
    written.U16: 2**16 - 1,
    written.I16: -(2**15),
    written.U32: 2**32 - 1,
    written.I32: -(2**31),
    written.U64: 2**63 - 1,
    written.I64: -(2**63),
    written.F32: 1.5,
    written.F64: 1e300,
    BOOL: True,
}


@pytest.mark.parametrize("kind", LARGEST)
def test_every_type_of_value_alone_and_in_an_array(kind: int) -> None:
    value = LARGEST[kind]
    metadata = open_bytes(
        file({"a": Typed(kind, value), "b": Typed(kind, [0, value]), "c": "end"}, [ONE])
    ).metadata
    assert metadata.values["a"].item == value
    assert type(metadata.values["a"].item) is type(value)
    assert np.array_equal(cast(Any, metadata.values["b"].item), np.array([0, value]))
    assert metadata.text("c") == "end"
    if isinstance(value, float):
        assert metadata.number("a", value, value) == value
    elif isinstance(value, bool):
        assert metadata.flag("a") is True
    else:
        assert metadata.integer("a", -(2**63)) == value


def test_types_of_values_are_numbered_as_in_the_package() -> None:
    from gguf import GGUFValueType

    ours = {"TEXT": "STRING"} | {
        f"{short}{bits}": f"{long}{bits}"
        for short, long in (("U", "UINT"), ("I", "INT"), ("F", "FLOAT"))
        for bits in (8, 16, 32, 64)
    }
    theirs = {kind.name: int(kind) for kind in GGUFValueType}
    assert {ours.get(kind.name, kind.name): int(kind) for kind in ValueType} == theirs


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (start(0, 1) + entry("k" * (MAX_KEY + 1), 1), "the name of an entry of metadata claims"),
        (
            file({}, [Tensor("n" * (MAX_TENSOR_NAME + 1), (1,), "F32", bytes(4))]),
            "name of a tensor",
        ),
        (file({}, [Tensor("five", (1,) * 5, "F32", bytes(4))]), "has 5 dims, not 1 to 4"),
        (file({}, [Tensor("none", (), "F32", bytes(4))]), "has 0 dims, not 1 to 4"),
        (file({}, [Tensor("empty", (0,), "F32", b"")]), "has a dim of 0, not 1 to"),
        (
            file({}, [Tensor("wide", (MAX_DIM + 1,), "F32", b"")]),
            f"has a dim of {MAX_DIM + 1}, not",
        ),
        (file({}, [Tensor("many", (2**22, 2**31), "F32", b"")]), "claims 9007199254740992 values"),
        (file({}, [Tensor("nearly", (2**22 - 1, 2**31), "F32", b"")]), "it is cut short"),
        (file({}, [Tensor("long", (MAX_DIM,), "F32", b"")]), "it is cut short"),
        (file({"general.alignment": 7}, [ONE]), "'general.alignment' is 7, not from 8"),
        (file({"general.alignment": 8192}, [ONE]), "'general.alignment' is 8192, not from 8"),
        (file({"general.alignment": 24}, [ONE], alignment=24), "24, which is not a power of two"),
        (file({"general.alignment": 34}, [ONE], alignment=34), "34, which is not a power of two"),
        (file({}, [ONE]) + bytes(1), "1 bytes follow its last tensor"),
        (file({}, [ONE])[:-1], "it is cut short"),
        (file({}, [Tensor("ragged", (33,), "Q8_0", bytes(34))]), "rows of 33 values, but Q8_0"),
    ],
)
def test_one_too_many(data: bytes, fault: str) -> None:
    assert is_refused(data, fault)


@pytest.mark.parametrize(
    "data",
    [
        file({"k" * MAX_KEY: 1}, [ONE]),
        file({}, [Tensor("n" * MAX_TENSOR_NAME, (1,), "F32", bytes(4))]),
        file({}, [Tensor("four", (1, 2, 3, 5), "F32", bytes(120))]),
        file({"general.alignment": 8}, [ONE], alignment=8),
        file({"general.alignment": 4096}, [ONE], alignment=4096),
        file({}, [ONE], version=2),
        file({}, [ONE], version=3),
    ],
)
def test_the_last_that_is_taken(data: bytes) -> None:
    assert len(open_bytes(data).tensors) == 1


def test_dims_and_places_of_tensors() -> None:
    """The second begins where the first ends, padded."""
    odd = Tensor("odd", (3, 32), "Q8_0", bytes(3 * 34))
    data = file({}, [odd, ONE])
    infos = {name: tensor.info for name, tensor in open_bytes(data).tensors.items()}
    assert (infos["odd"].dims, infos["odd"].nbytes) == ((3, 32), 102)
    assert infos["one.weight"].offset == infos["odd"].offset + 128
    assert data[infos["one.weight"].offset :] == ONE.data


@pytest.mark.parametrize(("tensors", "entries"), [(7, 0), (0, 9)])
def test_counts_for_which_a_file_is_just_long_enough(tensors: int, entries: int) -> None:
    """The fault is another one then: there is no room for all that they claim."""
    least = tensors * MIN_TENSOR + entries * MIN_ENTRY
    assert is_refused(start(tensors, entries) + bytes(least - 1), "for which it is too short")
    assert is_refused(start(tensors, entries) + bytes(least), "has no name")


def test_the_smallest_entry_and_tensor() -> None:
    assert len(entry("k", Typed(BOOL, 0))) == MIN_ENTRY
    assert len(tensor_info(Tensor("n", (1,), "F32", b""), 0)) == MIN_TENSOR


@pytest.mark.parametrize(("kind", "size"), [(written.U16, 2), (written.F64, 8), (written.TEXT, 8)])
def test_items_for_which_a_file_is_just_long_enough(kind: int, size: int) -> None:
    def with_items(count: int, room: int) -> bytes:
        head = written.text("a") + struct.pack("<IIQ", ARRAY, kind, count)
        return start(0, 1) + head + bytes(room)

    assert is_refused(with_items(5, 5 * size - 1), "claims 5 items, for which the file is too")
    assert is_refused(with_items(5, 5 * size), "has no tensors")


def test_a_file_of_texts_that_comes_byte_by_byte(monkeypatch: pytest.MonkeyPatch) -> None:
    """The walk asks for just what it lacks, and goes on where it was."""
    texts = ["", "a", "bc", "ü" * 9]
    data = file({"a": texts, "b": 7, "c": "x"}, [ONE])
    walk = container.HeaderWalk("x.gguf", len(data))
    wanted = [0]
    with pytest.raises(container.TooFewBytes) as short:
        walk.read(b"")
    while isinstance(short, pytest.ExceptionInfo):
        wanted.append(short.value.wanted)
        try:
            header = walk.read(data[: wanted[-1]])
            break
        except container.TooFewBytes as error:
            short = pytest.ExceptionInfo.from_exception(error)
    assert wanted == sorted(set(wanted)), "each time for more"
    assert wanted[-1] <= len(data)
    assert header.metadata.texts("a") == texts
    assert header.metadata.integer("b") == 7
    assert [info.name for info in header.tensors] == ["one.weight"]


def test_metadata_has_bounds_that_belong_to_them() -> None:
    metadata = open_bytes(file({"n": 5, "f": 0.5}, [ONE])).metadata
    assert metadata.integer("n", 5, 5) == 5
    assert metadata.number("f", 0.5, 0.5) == 0.5
    for ask in (
        lambda: metadata.integer("n", 6),
        lambda: metadata.integer("n", 0, 4),
        lambda: metadata.number("f", 0.6, 1),
        lambda: metadata.number("f", 0, 0.4),
    ):
        with pytest.raises(GgufError):
            ask()


@pytest.mark.parametrize(
    ("name", "parts", "model"),
    [
        ("a-00001-of-00001.gguf", ["a-00001-of-00001.gguf"], "a"),
        ("a-00002-of-00002.GGUF", ["a-00001-of-00002.GGUF", "a-00002-of-00002.GGUF"], "a"),
        ("a-00001-of-00000.gguf", ["a-00001-of-00000.gguf"], "a"),
        ("a-00001-of-65536.gguf", ["a-00001-of-65536.gguf"], "a"),
        ("a-1-of-2.gguf", ["a-1-of-2.gguf"], "a-1-of-2"),
        ("b.GGUF", ["b.GGUF"], "b"),
    ],
)
def test_names_of_parts(name: str, parts: list[str], model: str) -> None:
    assert list(parts_of(name)) == parts
    assert model_name(name) == model


def test_factors_of_frequencies_go_by_the_context() -> None:
    def name(model_type: str, context: int, **rope: Any) -> str:
        return factors_name({"model_type": model_type, "rope_parameters": rope}, context)

    original = {"original_max_position_embeddings": 64}
    assert name("phi3", 64, **original) == SHORT_FACTORS
    assert name("phi3", 65, **original) == LONG_FACTORS
    assert name("phi3", 65) == "rope_freqs.weight"
    assert name("llama", 65, **original) == "rope_freqs.weight"


def test_the_halves_of_blocks_are_where_llama_cpp_has_them() -> None:
    blocks = {name: places for name, places in HALVES.items() if name != "F16"}
    assert {name: list(places) for name, places in HALVES_AT.items()} == blocks


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_floats_that_are_no_numbers(value: float) -> None:
    kind = BY_NAME["F32"]
    values = np.arange(5, dtype=np.float32)
    assert are_finite(kind, values.view(np.uint8)) is True
    values[3] = value
    assert are_finite(kind, values.view(np.uint8)) is False


def test_a_file_in_words() -> None:
    small = Tensor("small", (2, 32), "Q8_0", bytes(68))
    long = "x" * MAX_VALUE
    values = {"fits": long, "long": f"{long}y", "list": [1, 2, 3], "flag": True}
    about = about_gguf(
        open_bytes(file(values, [small, ONE, Tensor.floats("two", np.ones(3))])), "Fine."
    )
    assert "3 tensors. Fine." in about
    assert "| F32 | 2 | 268 bytes |\n| Q8_0 | 1 | 68 bytes |" in about, "the largest first"
    assert f"`{long}` |" in about
    assert f"`{long}…` |" in about
    assert "| 3 × i32 |" in about
    assert "| `flag` | `True` |" in about


def test_no_number_of_a_tensor_type_is_left_out() -> None:
    """GGUF counts them through; those without a meaning of today had one."""
    assert sorted([*TENSOR_TYPES, *WITHDRAWN]) == list(range(max(TENSOR_TYPES) + 1))
    assert not {*WITHDRAWN.values()} & {kind.name for kind in TENSOR_TYPES.values()}
    assert BY_NAME["Q8_0"].row_bytes(96) == 102


@pytest.mark.parametrize(
    ("stored", "columns", "kind"),
    [
        ("F32", 8, "f32"),
        ("F16", 8, "f16"),
        ("F16", 12, "f32"),
        ("BF16", 16, "bf16"),
        ("BF16", 9, "f32"),
        ("Q8_0", 36, "q8_0"),
        ("IQ1_S", 256, None),
    ],
)
def test_which_kind_of_weight_a_tensor_becomes(stored: str, columns: int, kind: str | None) -> None:
    found = kind_of(BY_NAME[stored], columns)
    assert (found and found.name) == kind
    if stored == "F16":
        data = np.arange(8, dtype=np.float16).view(np.uint8)
        part = parts_of_blocks(BY_NAME[stored], found, data)["weight"]
        assert part.view(np.float32 if kind == "f32" else np.float16).tolist() == list(range(8))
        wide = parts_of_blocks(BY_NAME[stored], None, data)["weight"]
        assert wide.dtype == np.float32


def test_rotary_pairs_side_by_side_become_halves() -> None:
    """Two heads of six rows, of three columns each."""
    rows = np.arange(36).reshape(12, 3)
    order = [0, 2, 4, 1, 3, 5, 6, 8, 10, 7, 9, 11]
    assert np.array_equal(in_halves(rows, 6), rows[order])


def test_a_row_is_read_where_it_lies() -> None:
    table = np.random.default_rng(1).normal(size=(7, 40)).astype(np.float32)
    data = file({}, [ONE, Tensor.floats("table", table)])
    rows = GgufTokenRows(open_bytes(data).tensors["table"])
    assert rows.columns == 40
    found = wait(rows.read([6, 0, 6, 3]))
    assert np.array_equal(found, table[None, [6, 0, 6, 3]])


def config_of(architecture: Any = "llama", **changes: Any) -> dict[str, Any]:
    """Read the config of a file without regard for its tensors."""
    values = small.metadata(architecture) | {
        f"{architecture}.{key.replace('__', '.')}": value for key, value in changes.items()
    }
    return read_config(open_bytes(file(values, small.tensors())))


@pytest.mark.parametrize(
    ("key", "least", "most", "word"),
    [
        ("block_count", 1, MAX_LAYERS, "num_hidden_layers"),
        ("embedding_length", 1, MAX_WIDTH, "hidden_size"),
        ("feed_forward_length", 1, MAX_HIDDEN, "intermediate_size"),
        ("context_length", 1, MAX_CONTEXT, "max_position_embeddings"),
        ("attention__head_count", 1, MAX_HEADS, "num_attention_heads"),
        ("attention__key_length", 1, MAX_HEAD_DIM, "head_dim"),
    ],
)
def test_bounds_of_sizes(key: str, least: int, most: int, word: str) -> None:
    for value in (least, most):
        assert config_of(**{key: value})[word] == value
    for value in (least - 1, most + 1):
        with pytest.raises(GgufError, match=f"is {value}, not from {least} to {most}"):
            config_of(**{key: value})


def test_heads_that_files_leave_to_the_width() -> None:
    assert config_of(embedding_length=100, attention__head_count=7)["head_dim"] == 14
    assert config_of(embedding_length=3, attention__head_count=7)["head_dim"] == 1


def test_what_turns_of_a_head() -> None:
    """Pairs that lie side by side must all turn; elsewhere the first columns may."""
    assert "partial_rotary_factor" not in config_of(rope__dimension_count=16)["rope_parameters"]
    half = config_of("qwen3", rope__dimension_count=8)["rope_parameters"]
    assert half["partial_rotary_factor"] == 0.5
    for architecture, turned in (("llama", 8), ("llama", 17), ("qwen3", 17), ("qwen3", 0)):
        with pytest.raises(GgufError, match="dimension_count"):
            config_of(architecture, rope__dimension_count=turned)
    assert config_of("qwen3", rope__dimension_count=1)["rope_parameters"]
    with pytest.raises(GgufError, match="value_length"):
        config_of(attention__value_length=15)


def test_layers_for_tokens_to_come_do_not_count() -> None:
    ssm = {"ssm__time_step_rank": 2, "ssm__inner_size": 4, "ssm__conv_kernel": 2}
    given = ssm | {"ssm__group_count": 1, "ssm__state_size": 2, "block_count": 5}
    assert config_of("qwen35", **given)["num_hidden_layers"] == 5
    for ahead in (0, 1, 4):
        found = config_of("qwen35", **given, nextn_predict_layers=ahead)
        assert found["num_hidden_layers"] == 5 - ahead
    with pytest.raises(GgufError, match="nextn_predict_layers"):
        config_of("qwen35", **given, nextn_predict_layers=5)
    assert config_of(block_count=5, nextn_predict_layers=1)["num_hidden_layers"] == 5


@pytest.mark.parametrize(
    ("epsilon", "sound"), [(1e-12, False), (2e-12, True), (0.09, True), (0.2, False)]
)
def test_bounds_of_epsilon(epsilon: float, sound: bool) -> None:
    key = {"attention__layer_norm_rms_epsilon": epsilon}
    if sound:
        assert config_of(**key)["rms_norm_eps"] == pytest.approx(epsilon)
    else:
        with pytest.raises(GgufError, match="epsilon"):
            config_of(**key)


def test_words_of_what_lies_in_the_file() -> None:
    plain = config_of()
    assert (plain["attention_bias"], plain["mlp_bias"], plain["tie_word_embeddings"]) == (
        *(False, False, True),
    )
    assert plain["hidden_act"] == "silu"
    assert config_of("gemma2")["hidden_act"] == "gelu_pytorch_tanh"
    biases = [Tensor.floats(f"blk.0.{name}.bias", np.ones(3)) for name in ("attn_q", "ffn_gate")]
    head = Tensor.floats("output.weight", np.ones(3))
    for architecture, has_bias in (("llama", True), ("qwen2", False)):  # which always has them
        values = small.metadata(architecture)
        found = read_config(open_bytes(file(values, [*small.tensors(), *biases, head])))
        assert (found["attention_bias"], found["mlp_bias"]) == (has_bias, True)
        assert found["tie_word_embeddings"] is False
