"""The contracts about imports in pyproject.toml: an arrow that points back up breaks them."""

from copy import deepcopy

import pytest
from grimp import ImportGraph, build_graph
from importlinter.api import read_configuration
from importlinter.contracts.forbidden import ForbiddenContract
from importlinter.contracts.layers import LayersContract

from tools.files import ROOT

CONTRACTS = {"layers": LayersContract, "forbidden": ForbiddenContract}


@pytest.fixture(scope="module")
def graph() -> ImportGraph:
    session = read_configuration(str(ROOT / "pyproject.toml"))["session_options"]
    return build_graph(*session["root_packages"], include_external_packages=True, cache_dir=None)


def broken(graph: ImportGraph) -> list[str]:
    """Return the names of the broken contracts."""
    read = read_configuration(str(ROOT / "pyproject.toml"))
    names = []
    for options in read["contracts_options"]:
        if options["type"] not in CONTRACTS:
            continue
        contract = CONTRACTS[options["type"]](options["name"], read["session_options"], options)
        if not contract.check(deepcopy(graph), verbose=False).kept:
            names.append(options["name"])
    return names


FLOORS = "Floors: a package stands on those below it"
ROOMS = "Rooms of py_runtime stand on those below them"
WHEEL = "The wheel holds all that it needs"
FILES = "The engine knows nothing of files"


@pytest.mark.parametrize(
    ("importer", "imported", "breaks"),
    [
        ("py_runtime.base.errors", "py_runtime.base.sizes", []),
        ("tools.errors", "export.errors", [FLOORS]),
        ("tools.errors", "tests.runners", [FLOORS]),
        ("inpage.command", "tools.errors", [WHEEL]),
        ("inpage.command", "serve", ["serve.py stands on inpage and tools, and is below bench"]),
        ("py_runtime.ops.experts", "py_runtime.graph.graph", [ROOMS]),
        ("py_runtime.ops.experts", "py_runtime.folder.layout", [FILES]),
        ("inpage.command", "torch", ["torch lives on the export side only"]),
    ],
)
def test_an_arrow_back_up_breaks_a_contract(
    graph: ImportGraph, importer: str, imported: str, breaks: list[str]
) -> None:
    changed = deepcopy(graph)
    changed.add_import(importer=importer, imported=imported)
    assert broken(changed) == breaks
