"""Damage of every kind to a sound model: the reader raises one of its own errors, or reads it."""

import json
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import deserialize

from py_runtime.base.errors import InpageError
from py_runtime.base.model_errors import ModelError
from py_runtime.folder.on_disk import ConstantFiles, open_model_folder, verify_files
from py_runtime.folder.safetensors_header import parse_safetensors_header
from tests.folder.small_model import bytes_of_folder, open_bytes, with_file, write_small

pytestmark = pytest.mark.long

MANY = settings(max_examples=400)
SOME = settings(max_examples=100)


@cache
def sound_files() -> dict[str, bytes]:
    with TemporaryDirectory() as folder:
        write_small(Path(folder) / "small")
        return bytes_of_folder(Path(folder) / "small")


def survives(files: dict[str, bytes]) -> bool:
    """Whatever else is raised fails the test."""
    try:
        open_bytes(files)
    except InpageError:
        return False
    return True


@st.composite
def damage(draw: st.DrawFn, data: bytes) -> bytes:
    """Some bytes changed, most of them early, where the headers are; perhaps cut short."""
    damaged = bytearray(data)
    early = st.integers(0, min(len(data), 400) - 1)
    anywhere = st.integers(0, len(data) - 1)
    for place in draw(st.lists(early | anywhere, max_size=4)):
        damaged[place] = draw(st.integers(0, 255))
    length = draw(st.just(len(data)) | st.integers(0, len(data)))
    return bytes(damaged[:length])


def test_the_sound_model_survives() -> None:
    assert survives(sound_files())


@MANY
@given(st.data())
def test_damage_that_the_manifest_does_not_know(data: st.DataObject) -> None:
    files = sound_files()
    name = data.draw(st.sampled_from(sorted(files)))
    survives({**files, name: data.draw(damage(files[name]))})


@MANY
@given(st.data())
def test_damage_that_the_manifest_confirms(data: st.DataObject) -> None:
    """Sizes and hashes are right, so that the damage reaches the readers of each file."""
    files = sound_files()
    name = data.draw(st.sampled_from(sorted(set(files) - {"manifest.json"})))
    survives(with_file(files, name, data.draw(damage(files[name]))))


@SOME
@given(st.data())
def test_damage_on_a_disk(data: st.DataObject) -> None:
    files = sound_files()
    name = data.draw(st.sampled_from(sorted(files)))
    damaged = data.draw(damage(files[name]))
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for other, content in files.items():
            (folder / other).write_bytes(content)
        (folder / name).write_bytes(damaged)
        try:
            model = open_model_folder(folder)
            for array in ConstantFiles(folder, model.tensors).values():
                np.asarray(array)
        except InpageError:
            assert damaged != files[name], "a sound model opens"
        if damaged != files[name] and name != "manifest.json":
            with pytest.raises(ModelError):
                verify_files(folder)


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([2**31, 2**53, 2**64, 10**400, -1, 0, 16])
    | st.floats(allow_nan=False)
    | st.text(max_size=5)
    | st.sampled_from(["F32", "I64", "../x", "__pad_0", "table#1", "\ud800"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=5,
)


def places_in(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of all values in a document, inner ones too."""
    found = [path] if path else []
    if isinstance(value, list):
        value = dict(enumerate(value))
    for key, item in value.items() if isinstance(value, dict) else ():
        found += places_in(item, (*path, key))
    return found


def replaced(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    copy = json.loads(json.dumps(document))
    place = copy
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return copy


@MANY
@given(st.data())
def test_another_value_in_the_manifest(data: st.DataObject) -> None:
    files = sound_files()
    document = json.loads(files["manifest.json"])
    path = data.draw(st.sampled_from(places_in(document)))
    changed = json.dumps(replaced(document, path, data.draw(JSON_VALUES))).encode()
    survives({**files, "manifest.json": changed})


@MANY
@given(st.data())
def test_another_value_in_the_graph(data: st.DataObject) -> None:
    files = sound_files()
    document = json.loads(files["graph.json"])
    path = data.draw(st.sampled_from(places_in(document)))
    changed = json.dumps(replaced(document, path, data.draw(JSON_VALUES))).encode()
    survives(with_file(files, "graph.json", changed))


@MANY
@given(st.data())
def test_another_value_in_a_header(data: st.DataObject) -> None:
    files = sound_files()
    name = data.draw(st.sampled_from(sorted(n for n in files if n.endswith(".safetensors"))))
    whole = files[name]
    end = 8 + int.from_bytes(whole[:8], "little")
    header = json.loads(whole[8:end])
    path = data.draw(st.sampled_from(places_in(header)))
    text = json.dumps(replaced(header, path, data.draw(JSON_VALUES))).encode()
    text += b" " * (-(8 + len(text)) % 16)
    changed = len(text).to_bytes(8, "little") + text + whole[end:]
    survives(with_file(files, name, changed))
    try:
        parse_safetensors_header(name, changed, len(changed))
    except ModelError:
        return
    deserialize(changed)  # what we take, the library takes as well


def test_the_folder_is_not_changed_by_reading(tmp_path: Path) -> None:
    write_small(tmp_path / "small")
    before = bytes_of_folder(tmp_path / "small")
    verify_files(tmp_path / "small")
    open_model_folder(tmp_path / "small")
    assert bytes_of_folder(tmp_path / "small") == before
