"""Folders of tests mirror the code: whoever changes a room finds its tests under its name."""

from tools.files import ROOT

PARTS = {"bench", "export", "inpage", "tools", "web"}  # of the project, beside py_runtime
ACROSS_ROOMS = {
    "default_model": "the model that comes along, from its weights to its words",
    "dynamic_shape": "one graph at many lengths, whatever ops it is made of",
    "firefox": "what holds in another browser, in one session of it",
    "fuzz": "damaged inputs for the parsers of all rooms",
    "llama_cpp": "llama.cpp beside the engine: a set-up and a target of their own",
    "pte_exports": "files that ExecuTorch exports on the spot: a set-up and a target of their own",
    "pte_ops": "ExecuTorch's ops, from a .pte to their kernels",
    "reach": "the engine in other people's pages and notebooks",
}


def rooms() -> set[str]:
    return {path.parent.name for path in (ROOT / "py_runtime").glob("*/__init__.py")}


def folders_with_tests() -> set[str]:
    return {path.parent.name for path in (ROOT / "tests").glob("*/test_*.py")}


def test_every_room_has_a_folder_of_tests() -> None:
    assert "graph" in rooms()
    assert rooms() - folders_with_tests() == set()


def test_every_other_folder_is_of_a_part_or_across_rooms() -> None:
    assert folders_with_tests() - rooms() == PARTS | ACROSS_ROOMS.keys()
