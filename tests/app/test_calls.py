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


def listed(file: str) -> list[str]:
    """Return the names in a file's table `CALLS`."""
    text = (APP / file).read_text()
    return re.findall(r'"(\w+)"', text.partition("\nCALLS = (")[2].partition("\n\n")[0])


def test_the_engine_has_every_call_that_is_declared() -> None:
    assert declared().keys() == {*listed("engine.py"), *listed("notebook_calls.py"), "python"}


def test_the_engine_takes_the_fields_that_are_declared_and_by_name_alone() -> None:
    taken = {**functions("engine.py"), **functions("notebook_calls.py")}
    taken["python"] = functions("in_page.py")["_python"]
    for name, fields in declared().items():
        by_place = {argument.arg for argument in taken[name].args}
        assert by_place <= {"self"}, name
        by_name = {argument.arg for argument in taken[name].kwonlyargs}
        assert by_name - GIVEN_BY_PYTHON == fields, name
