"""Folders whose parts are sound and do not belong together: each fault has its own text."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from py_runtime.base.dtypes import F32, I32
from py_runtime.base.errors import GraphError
from py_runtime.base.model_errors import DAMAGED, ModelFileError, ModelHashError, ModelTensorsError
from py_runtime.folder.layout import combine_model, constants_of
from py_runtime.folder.manifest import parse_manifest
from py_runtime.program.json_format import dump_program
from py_runtime.program.writer import ProgramWriter
from tests.folder.small_model import (
    bytes_of_folder,
    open_bytes,
    safetensors_bytes,
    small_program,
    with_file,
    write_small,
)

SHARD = "weights-00001-of-00001.safetensors"
Header = dict[str, Any]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Write the small model in one shard: table f32 [60, 40], indices i64 [3], mask bool [40]."""
    folder = tmp_path_factory.mktemp("honest") / "small"
    write_small(folder, shard_size=1 << 20, goldens=None)
    return bytes_of_folder(folder)


def packed(**tensors: tuple[str, list[int]]) -> bytes:
    """Write a sound file of such (dtype code, shape), all zeros; '_' stands for '#' in names."""
    widths = {"F32": 4, "I32": 4, "I64": 8, "U8": 1, "BOOL": 1}
    header: Header = {}
    position = 0
    for name, (code, shape) in tensors.items():
        end = position + int(np.prod(shape)) * widths[code]
        header[name.replace("_", "#")] = entry(code, shape, position, end)
        position = end + -end % 16
        if position > end:
            header[f"__pad_{end}"] = entry("U8", [position - end], end, position)
    return safetensors_bytes(header, bytes(position))


def entry(code: str, shape: list[int], begin: int, end: int) -> Header:
    return {"dtype": code, "shape": shape, "data_offsets": [begin, end]}


TABLE, INDICES, MASK = ("F32", [60, 40]), ("I32", [3]), ("I32", [40])
REST = {"indices": INDICES, "mask": MASK}
MISFITS = {
    "missing": (
        packed(table=TABLE, mask=MASK),
        "the graph's constant 'indices' is not in any of the weight files",
    ),
    "unknown": (
        packed(table=TABLE, extra=MASK, **REST),
        f"{SHARD} holds the tensor 'extra', which the graph does not know",
    ),
    "piece of an unknown": (
        packed(table=TABLE, extra_0=MASK, **REST),
        f"{SHARD} holds the tensor 'extra#0', which the graph does not know",
    ),
    "other dims": (
        packed(table=("F32", [40, 60]), **REST),
        f"{SHARD}: tensor 'table' is f32 [40, 60], but the graph's constant is f32 [60, 40], "
        "stored as f32",
    ),
    "other dtype": (
        packed(table=("I32", [60, 40]), **REST),
        f"{SHARD}: tensor 'table' is i32 [60, 40], but the graph's constant is f32 [60, 40], "
        "stored as f32",
    ),
    "i64 as it is": (
        packed(table=TABLE, indices=("I64", [3]), mask=MASK),
        f"{SHARD}: tensor 'indices' is i64 [3], but the graph's constant is i64 [3], stored as i32",
    ),
    "bool as it is": (
        packed(table=TABLE, indices=INDICES, mask=("BOOL", [40])),
        f"{SHARD}: tensor 'mask' is bool [40], but the graph's constant is bool [40], "
        "stored as i32",
    ),
    "whole and in pieces": (
        packed(table=TABLE, table_0=TABLE, **REST),
        "the tensor 'table' is stored both whole and in pieces",
    ),
    "first piece missing": (
        packed(table_1=("F32", [30, 40]), table_2=("F32", [30, 40]), **REST),
        "the tensor 'table' lacks its piece '#0'",
    ),
    "a piece missing": (
        packed(table_0=("F32", [30, 40]), table_2=("F32", [30, 40]), **REST),
        "the tensor 'table' lacks its piece '#1'",
    ),
    "too little": (
        packed(table_0=("F32", [30, 40]), table_1=("F32", [29, 40]), **REST),
        "the pieces of 'table' have 9440 bytes together, but the graph's f32 [60, 40] takes 9600",
    ),
    "too much": (
        packed(table_0=("F32", [30, 40]), table_1=("F32", [31, 40]), **REST),
        "the pieces of 'table' have 9760 bytes together, but the graph's f32 [60, 40] takes 9600",
    ),
    "a piece of other rows": (
        packed(table_0=("F32", [30, 40]), table_1=("F32", [60, 20]), **REST),
        f"{SHARD}: tensor 'table#1' is f32 [60, 20], but the graph's constant is f32 [60, 40], "
        "stored as f32",
    ),
    "a piece of other dtype": (
        packed(table_0=("F32", [30, 40]), table_1=("I32", [30, 40]), **REST),
        f"{SHARD}: tensor 'table#1' is i32 [30, 40], but the graph's constant is f32 [60, 40], "
        "stored as f32",
    ),
    "an odd piece": (
        packed(table=TABLE, indices=INDICES, mask_0=("I32", [3]), mask_1=("I32", [37])),
        f"{SHARD}: 'mask#0' has 12 bytes; only the last piece may have a length that is not a "
        "multiple of 16",
    ),
    "a number with zeros": (
        packed(table_00=TABLE, **REST),
        f"{SHARD} holds the tensor 'table#00', which the graph does not know",
    ),
}


@pytest.mark.parametrize("case", MISFITS)
def test_weights_that_are_not_the_graphs(case: str, files: dict[str, bytes]) -> None:
    data, text = MISFITS[case]
    with pytest.raises(ModelTensorsError) as caught:
        open_bytes(with_file(files, SHARD, data))
    assert str(caught.value) == f"{text}; {DAMAGED}"


def test_the_same_tensor_in_two_files(files: dict[str, bytes]) -> None:
    twice = with_file(files, "more.safetensors", packed(indices=INDICES))
    manifest = json.loads(twice["manifest.json"])
    manifest["weights"].append("more.safetensors")
    with pytest.raises(ModelTensorsError) as caught:
        open_bytes({**twice, "manifest.json": json.dumps(manifest).encode()})
    text = f"the tensor 'indices' is both in {SHARD} and in more.safetensors"
    assert str(caught.value) == f"{text}; {DAMAGED}"


def test_a_header_that_was_not_read(files: dict[str, bytes]) -> None:
    manifest = parse_manifest(files["manifest.json"])
    with pytest.raises(ModelFileError, match=f"^the header of {SHARD} was not read; "):
        combine_model(manifest, files["graph.json"], {})


def test_a_graph_of_another_export(files: dict[str, bytes]) -> None:
    changed = files["graph.json"].replace(b'"small"', b'"smell"')
    with pytest.raises(ModelHashError, match=r"^graph\.json is not the file that was exported: "):
        open_bytes({**files, "graph.json": changed})


def test_a_broken_graph(files: dict[str, bytes]) -> None:
    with pytest.raises(GraphError, match=r"^the graph is not JSON: Expecting value: line 1"):
        open_bytes(with_file(files, "graph.json", b"no"))


@pytest.mark.parametrize(
    ("name", "shown"), [("", "''"), ("__pad_0", "'__pad_0'"), ("a#0", "'a#0'")]
)
def test_constants_with_names_that_files_cannot_hold(name: str, shown: str) -> None:
    writer = ProgramWriter()
    writer.constant(name, np.zeros(4, np.float32))
    with pytest.raises(GraphError) as caught:
        constants_of(writer.program())
    label = f"value 0 '{name}'" if name else "value 0"
    assert str(caught.value) == (
        f"{label} has the constant {shown}; names must not be empty, begin with '__' or contain '#'"
    )


def test_one_constant_taken_in_two_ways() -> None:
    writer = ProgramWriter()
    writer.constant("a", np.zeros((2, 3), np.float32))
    writer.constant("a", np.zeros((3, 2), np.float32))
    with pytest.raises(GraphError) as caught:
        constants_of(writer.program())
    assert str(caught.value) == (
        "value 1 'a' takes the constant 'a' as f32 [3, 2], but an earlier value as f32 [2, 3]"
    )


def test_places_lead_to_the_data(tmp_path: Path) -> None:
    """The table is larger than a shard; every place is where the bytes are, in order."""
    write_small(tmp_path / "small")
    files = bytes_of_folder(tmp_path / "small")
    model = open_bytes(files)
    assert dump_program(model.program) == dump_program(small_program().program())
    assert len(model.tensors["table"].pieces) == 3
    constants = small_program().constants
    stored = {"table": F32, "indices": I32, "mask": I32}
    assert {name: place.dtype for name, place in model.tensors.items()} == stored
    for name, place in model.tensors.items():
        data = b"".join(files[p.file][p.offset : p.offset + p.nbytes] for p in place.pieces)
        assert all(piece.offset % 16 == 0 for piece in place.pieces)
        found = np.frombuffer(data, place.dtype.host).reshape(place.dims)
        np.testing.assert_array_equal(found, constants[name])
    assert {name: place.dims for name, place in model.goldens.items()} == {
        "logits": (5,),
        "ids": (3,),
    }


def test_flat_pieces_are_read(files: dict[str, bytes]) -> None:
    data = packed(table_0=("F32", [1000]), table_1=("F32", [1400]), **REST)
    model = open_bytes(with_file(files, SHARD, data))
    assert [piece.nbytes for piece in model.tensors["table"].pieces] == [4000, 5600]
