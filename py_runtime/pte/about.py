"""A .pte file in words, as Markdown: the page shows it, a terminal prints it."""

from collections.abc import Mapping
from typing import Any

from py_runtime.base.errors import InpageError
from py_runtime.base.markdown import cannot_be_loaded, code, table
from py_runtime.base.sizes import counted, in_words
from py_runtime.pte.errors import UnsupportedPteError

Json = Mapping[str, Any]


def about_pte(described: Json, outcome: str) -> str:
    """Describe a file as Markdown, from what PteProgram.describe() or inspect_pte returned."""
    methods: Json = described["methods"]
    parts = [f"# {code(described['name'])}", f"{in_words(described['size'])}. {outcome}"]
    for name, method in methods.items():
        parts += [f"## Method {code(name)}", _ends(method), _constants(method), _ops(method)]
    if described["constants"]:
        rows = [[code(name), code(value)] for name, value in described["constants"].items()]
        parts += ["## Values it states", table(["name", "value"], rows)]
    return "\n\n".join(filter(None, parts))


def pte_cannot_be_loaded(error: InpageError) -> str:
    """Markdown; where ops are missing, all of them by name."""
    if isinstance(error, UnsupportedPteError):
        listed = "\n".join(f"- {code(name)}" for name in error.names)
        return f"**It cannot be loaded**: it needs what this engine does not have.\n\n{listed}"
    return cannot_be_loaded(error)


def _ends(method: Json) -> str:
    changed = dict.fromkeys(method["mutated_inputs"], ", which it changes")
    rows = [
        [f"input {index}{changed.get(index, '')}", *_value(value)]
        for index, value in enumerate(method["inputs"])
    ]
    rows += [[f"output {index}", *_value(value)] for index, value in enumerate(method["outputs"])]
    return table(["value", "type", "dims"], rows)


def _value(value: Json) -> tuple[str, str]:
    if "dtype" not in value:
        return "fixed", code(value["value"])
    dims = " × ".join(map(str, value["dims"])) or "a single number"
    return str(value["dtype"]), f"up to {dims}" if value["dynamic"] else dims


def _constants(method: Json) -> str:
    count, nbytes = method["constants"]["count"], method["constants"]["bytes"]
    if not count:
        return "No constants."
    return f"{counted(count, 'constant')}, {in_words(nbytes)}."


def _ops(method: Json) -> str:
    most_first = sorted(method["ops"].items(), key=lambda op: (-op[1], op[0]))
    return table(["op", "calls:"], [[code(name), str(count)] for name, count in most_first])
