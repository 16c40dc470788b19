"""The files of families together: nothing in one hides what is in another."""

from collections.abc import Sequence
from pathlib import Path

from py_runtime.chat.call_syntax import READERS
from py_runtime.chat.conventions import CONVENTIONS, THOUGHTS
from py_runtime.decoder import families
from py_runtime.decoder.families import BY_ARCHITECTURE, BY_MODEL_TYPE, FAMILIES, GROUPS
from tests.export.family_configs import ROWS

# Compared together with their towers, by tests/vision/test_families.py: architectures by types.
SEEING = {"qwen2_5_vl_text": "qwen2vl"}


def twice(items: Sequence[object]) -> list[object]:
    return [item for item in items if items.count(item) > 1]


def test_each_file_is_found() -> None:
    files = [path.stem for path in Path(*families.__path__).glob("*.py")]
    assert len(GROUPS) == len(files) - 1  # but for __init__


def test_a_model_type_and_an_architecture_are_one_family_s() -> None:
    assert twice([family.model_type for family in FAMILIES]) == []
    named = [family.gguf.architecture for family in FAMILIES if family.gguf.architecture]
    assert twice(named) == []
    assert set(named) == set(BY_ARCHITECTURE)


def test_each_has_a_row_that_compares_it_with_transformers() -> None:
    compared = {row["model_type"] for row in ROWS.values()}
    own_code = {family.model_type for family in FAMILIES if family.checkpoint.read_as}
    assert compared | SEEING.keys() == set(BY_MODEL_TYPE) - own_code
    architectures = {row["gguf"] for row in ROWS.values() if "gguf" in row}
    assert architectures | set(SEEING.values()) == set(BY_ARCHITECTURE)


def test_conventions_have_an_order_and_a_reader() -> None:
    assert twice([row.rank for row in CONVENTIONS]) == []
    assert twice([row.rank for row in THOUGHTS]) == []
    assert {call.syntax for row in CONVENTIONS for call in row.calls} == set(READERS)
