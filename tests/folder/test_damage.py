"""Damage to a model on a disk: it is refused with an error of ours, or read, and never changed."""

from pathlib import Path
from random import Random

import numpy as np
import pytest

from py_runtime.base.errors import InpageError
from py_runtime.base.model_errors import ModelError
from py_runtime.folder.on_disk import ConstantFiles, open_model_folder, verify_files
from tests.folder.small_model import bytes_of_folder, write_small
from tests.fuzz.damage import damage_bytes


@pytest.mark.parametrize("number", range(100))
def test_damage_on_a_disk(tmp_path: Path, number: int) -> None:
    folder, rng = tmp_path / "small", Random(number)
    write_small(folder)
    file = folder / rng.choice(sorted(bytes_of_folder(folder)))
    sound = file.read_bytes()
    file.write_bytes(damage_bytes(rng, sound))
    is_sound = file.read_bytes() == sound
    try:
        model = open_model_folder(folder)
        for array in ConstantFiles(folder, model.tensors).values():
            np.asarray(array)
    except InpageError:
        assert not is_sound, "a sound model opens"
    if not is_sound and file.name != "manifest.json":
        with pytest.raises(ModelError):
            verify_files(folder)


def test_the_folder_is_not_changed_by_reading(tmp_path: Path) -> None:
    write_small(tmp_path / "small")
    before = bytes_of_folder(tmp_path / "small")
    verify_files(tmp_path / "small")
    open_model_folder(tmp_path / "small")
    assert bytes_of_folder(tmp_path / "small") == before
