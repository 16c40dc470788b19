"""Docstrings that start in the middle of a sentence are found, wherever they stand."""

from pathlib import Path

import pytest

from tools.docstring_starts import PLACES, check, faults_in, python_files
from tools.errors import UserError
from tools.files import ROOT

SOURCE = '''"""{module}"""

class Kernel:
    """{class_}"""

    @property
    def bytes(self) -> int:
        """{property}"""

    async def run(self) -> None:
        """{function}

        What follows may start as it likes.
        """

        def inner() -> None:
            """{inner}"""
'''
SENTENCES = {
    "module": "Kernels and their memory.",
    "class_": "A kernel, as the device has it.",
    "property": "The bytes this kernel keeps in workgroup memory.",
    "function": "Run the kernel once.",
    "inner": "Wake the waiters later.",
}


def source(**changes: str) -> str:
    return SOURCE.format(**SENTENCES | changes)


def test_sentences_pass() -> None:
    assert list(faults_in(source())) == []
    assert list(faults_in("def f() -> int: ...")) == []
    for text in ("Fortify the buffers.", "In-place writes.", "Format the table."):
        assert list(faults_in(source(function=text))) == []


@pytest.mark.parametrize("place", SENTENCES)
def test_every_docstring_is_looked_at(place: str) -> None:
    text = "Of its memory."
    ((line, found),) = faults_in(source(**{place: text}))
    assert found == text
    assert text in source(**{place: text}).splitlines()[line - 1]


@pytest.mark.parametrize(
    "start",
    [
        "That it binds.",
        "As the file has it.",
        "What it is does not matter.",
        "Who asks first finds it.",
        "Than others.",
        "From now on.",
        "For messages.",
        "With its scales.",
        "Where it lies.",
        "Which of them.",
        "Those who wait go on later.",
        "Whether it fits.",
        "`of` the file.",
    ],
)
def test_words_that_join_a_clause_to_another(start: str) -> None:
    assert [text for _, text in faults_in(source(property=start))] == [start]


def test_all_are_named_with_their_places(tmp_path: Path) -> None:
    (tmp_path / "room").mkdir()
    (tmp_path / "room" / "kernels.py").write_text(source(module="Of kernels.", inner="By name."))
    (tmp_path / "room" / "build").mkdir()
    (tmp_path / "room" / "build" / "other.py").write_text(source(module="Of others."))
    (tmp_path / "alone.py").write_text(source())
    with pytest.raises(UserError) as caught:
        check(tmp_path, ("room", "alone.py"))
    head, *lines = str(caught.value).splitlines()
    assert head.startswith("2 docstrings start in the middle of a sentence")
    assert lines == ["room/kernels.py:1: Of kernels.", "room/kernels.py:17: By name."]


def test_this_project_passes_and_every_place_is_looked_at() -> None:
    check(ROOT)
    seen = {file.relative_to(ROOT).parts[0] for file in python_files(ROOT)}
    assert seen == set(PLACES)
