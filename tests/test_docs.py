"""The documents name files that exist, and no room of the code is missing from the map."""

import re
from pathlib import Path

import pytest

from tools.files import ROOT

DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
# A path of the repository in backticks or in a link: `py_runtime/graph/graph.py`, [x](docs/pte.md).
FOLDERS = "py_runtime|shaders|export|web|tools|tests|bench|docs|examples"
PATH = re.compile(rf"`((?:{FOLDERS})/[\w./-]+)`")
LINK = re.compile(r"\]\((?!https?://|#)([^)#\s]+)")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_path_that_a_document_names_exists(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    named = [ROOT / path for path in PATH.findall(text) if "NAME" not in path]
    linked = [document.parent / path for path in LINK.findall(text)]
    assert [str(path) for path in (*named, *linked) if not path.exists()] == []


def test_the_map_has_every_room() -> None:
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    rooms = {path.parent.name for path in (ROOT / "py_runtime").glob("*/__init__.py")}
    assert {room for room in rooms if f"`{room}/`" not in text} == set()
