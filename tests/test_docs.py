"""The documents name files and commands that exist, and the map has every room of the code."""

import re
from pathlib import Path

import pytest

from inpage.command import COMMANDS
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
COMMAND = re.compile(r"(?:`|bin/|^ +)inpage ([a-z]+)", re.MULTILINE)
# Programs that people would take for other command-line tools than `inpage`.
OTHER_TOOL = re.compile(r"python3? -m (?:py_runtime|export|inpage)\b|\bserve\.py (?:build|--)")
# Where people read texts of ours: documents, help, errors. The changelog tells what was.
SHOWN_TO_PEOPLE = [
    *(path for path in DOCUMENTS if path.name != "CHANGELOG.md"),
    *(
        path
        for folder in ("examples", "export", "inpage", "py_runtime", "web")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in (".html", ".ipynb", ".js", ".py") and "node_modules" not in path.parts
    ),
    ROOT / "serve.py",
]
VERSION = re.compile(r"\d+\.\d+\.\d+(?:-alpha\.\d+)? – (\d{4}-\d\d-\d\d)")
SCREEN_LINES = 60
BROWSERS = re.compile(r"(Chrome|Edge|Safari|Firefox)\b(?: from)? \(?(\d+) (?:on|or newer)")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_path_that_a_document_names_exists(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    named = [ROOT / path for path in PATH.findall(text) if "NAME" not in path]
    in_rooms = [ROOT / "py_runtime" / path for path in IN_ROOM.findall(text)]
    linked = [document.parent / path for path in LINK.findall(text)]
    assert [str(path) for path in (*named, *in_rooms, *linked) if not path.exists()] == []


def test_the_documents_name_commands_that_exist() -> None:
    named = {name for path in DOCUMENTS for name in COMMAND.findall(path.read_text())}
    assert {"chat", "api", "serve", "export", "inspect"} <= named
    assert named <= COMMANDS.keys()


def test_people_are_told_of_one_command_line_tool() -> None:
    found = {
        str(path.relative_to(ROOT)): OTHER_TOOL.findall(path.read_text(encoding="utf-8"))
        for path in SHOWN_TO_PEOPLE
    }
    assert {path: texts for path, texts in found.items() if texts} == {
        "inpage/__main__.py": ["python -m inpage"]  # the same tool
    }


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


def test_the_changelog_has_dated_versions_of_a_screen_each() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    _, unreleased, *versions = re.split(r"^## ", text, flags=re.MULTILINE)
    assert unreleased.startswith("Unreleased\n")
    headings = [version.partition("\n")[0] for version in versions]
    dates = [found[1] for heading in headings if (found := VERSION.fullmatch(heading))]
    assert len(dates) == len(headings)
    assert max(section.count("\n") for section in (unreleased, *versions)) <= SCREEN_LINES
    assert dates == sorted(dates, reverse=True)
