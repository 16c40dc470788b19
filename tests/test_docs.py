"""The documents name files that exist, and no room of the code is missing from the map."""

import re
from pathlib import Path

import pytest

from tools.files import ROOT

DOCUMENTS = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "examples").glob("*.md")]
)
ROOMS = [path.parent.name for path in (ROOT / "py_runtime").glob("*/__init__.py")]
# A path of the repository, or a file of py_runtime by its room: docs/pte.md, graph/graph.py.
FOLDERS = "py_runtime|shaders|export|inpage|web|tools|tests|bench|docs|examples"
START = r"(?<![\w./:-])"
PATH = re.compile(rf"{START}((?:{FOLDERS})/[\w./-]*[\w/])(?![\w*])")
IN_ROOM = re.compile(rf"{START}((?:{'|'.join(ROOMS)})/[\w/]+\.py)\b")
LINK = re.compile(r"\]\((?!https?://|#)([^)#\s]+)")
ROOM = re.compile(r"`(\w+)/?`")
BROWSERS = re.compile(r"(Chrome|Edge|Safari|Firefox)\b(?: from)? \(?(\d+) (?:on|or newer)")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_path_that_a_document_names_exists(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    named = [ROOT / path for path in PATH.findall(text) if "NAME" not in path]
    in_rooms = [ROOT / "py_runtime" / path for path in IN_ROOM.findall(text)]
    linked = [document.parent / path for path in LINK.findall(text)]
    assert [str(path) for path in (*named, *in_rooms, *linked) if not path.exists()] == []


def test_the_map_has_every_room_and_the_readme_its_order() -> None:
    """The first column of the one's table is a row of the other's."""
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    mapped = [room for row in rows for room in ROOM.findall(row)]
    assert sorted(mapped) == sorted(ROOMS)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (house,) = (line for line in readme.splitlines() if line.startswith("| `py_runtime/` |"))
    assert ROOM.findall(house)[1:] == mapped


def test_every_family_of_shaders_is_named_where_they_are_explained() -> None:
    text = (ROOT / "docs/adding-an-op.md").read_text(encoding="utf-8")
    families = {path.name for path in (ROOT / "shaders").iterdir() if path.is_dir()} - {"shared"}
    assert {name for name in families if f"`{name}`" not in text} == set()


def test_the_page_asks_for_the_browsers_that_the_readme_names() -> None:
    readme, page = ((ROOT / path).read_text() for path in ("README.md", "web/index.html"))
    assert BROWSERS.findall(readme) == BROWSERS.findall(page)
    assert len(BROWSERS.findall(readme)) == 3
