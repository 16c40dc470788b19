"""Calls by name: web/calls.d.ts declares them and their fields, and Engine takes the same."""

import ast
import re

from tools.files import ROOT

DECLARED = re.compile(r"^  (\w+): \{(.*)\};$", re.MULTILINE)
FIELD = re.compile(r"(\w+)\??:")
GIVEN_BY_PYTHON = {"emit", "cancel"}
APP = ROOT / "py_runtime" / "app"  # read, not imported: parts of it exist in a page alone


def declared() -> dict[str, set[str]]:
    """Return call → names of its fields, from the interface `Calls`."""
    text = (ROOT / "web" / "calls.d.ts").read_text()
    body = text.partition("export interface Calls {\n")[2].partition("\n}")[0]
    return {name: set(FIELD.findall(fields)) for name, fields in DECLARED.findall(body)}


def functions(file: str) -> dict[str, ast.arguments]:
    tree = ast.parse((APP / file).read_text())
    return {at.name: at.args for at in ast.walk(tree) if isinstance(at, ast.AsyncFunctionDef)}


def test_the_engine_has_every_call_that_is_declared() -> None:
    text = (APP / "engine.py").read_text()
    listed = text.partition("\nCALLS = (\n")[2].partition("\n)\n")[0]
    assert declared().keys() == {*re.findall(r'"(\w+)"', listed), "python"}


def test_the_engine_takes_the_fields_that_are_declared_and_by_name_alone() -> None:
    taken = {**functions("engine.py"), "python": functions("in_page.py")["_python"]}
    for name, fields in declared().items():
        by_place = {argument.arg for argument in taken[name].args}
        assert by_place <= {"self"}, name
        by_name = {argument.arg for argument in taken[name].kwonlyargs}
        assert by_name - GIVEN_BY_PYTHON == fields, name
