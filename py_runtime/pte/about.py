"""A .pte file in words, as Markdown: the page shows it, a terminal prints it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from py_runtime.base.errors import InpageError
from py_runtime.base.sizes import in_words
from py_runtime.pte.errors import UnsupportedPteError

MAX_ROWS = 300  # of a table: a file may claim anything
MAX_CHARACTERS = 80  # of a name

Json = Mapping[str, Any]


def about_pte(described: Json, outcome: str) -> str:
    """`described` is what PteProgram.describe() and inspect_pte give; `outcome` is Markdown."""
    methods: Json = described["methods"]
    parts = [f"# {code(described['name'])}", f"{in_words(described['size'])}. {outcome}"]
    for name, method in methods.items():
        parts += [f"## Method {code(name)}", _ends(method), _constants(method), _ops(method)]
    if described["constants"]:
        rows = [[code(name), code(value)] for name, value in described["constants"].items()]
        parts += ["## Values it states", table(["name", "value"], rows)]
    return "\n\n".join(filter(None, parts))


def cannot_be_loaded(error: InpageError) -> str:
    """Markdown; where ops are missing, all of them by name."""
    if isinstance(error, UnsupportedPteError):
        listed = "\n".join(f"- {code(name)}" for name in error.names)
        return f"**It cannot be loaded**: it needs what this engine does not have.\n\n{listed}"
    return f"**It cannot be loaded**: {plain(str(error), max_characters=2000)}."


def _ends(method: Json) -> str:
    changed = dict.fromkeys(method["mutated_inputs"], ", which it changes")
    rows = [
        [f"input {place}{changed.get(place, '')}", *_value(value)]
        for place, value in enumerate(method["inputs"])
    ]
    rows += [[f"output {place}", *_value(value)] for place, value in enumerate(method["outputs"])]
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
    return f"{count} constant{'s' if count > 1 else ''}, {in_words(nbytes)}."


def _ops(method: Json) -> str:
    counted = sorted(method["ops"].items(), key=lambda op: (-op[1], op[0]))
    return table(["op", "calls:"], [[code(name), str(count)] for name, count in counted])


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A heading that ends in a colon is of a column of numbers."""
    if not rows:
        return ""
    rules = ["--:" if name.endswith(":") else "---" for name in head]
    lines = [[name.removesuffix(":") for name in head], rules, *rows[:MAX_ROWS]]
    text = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    left_out = len(rows) - MAX_ROWS
    return f"{text}\n\nand {left_out} more." if left_out > 0 else text


def code(value: object) -> str:
    """In a table too: what would end a span or a cell is replaced."""
    return f"`{_printable(str(value), MAX_CHARACTERS, '`|')}`"


def plain(text: str, max_characters: int = MAX_CHARACTERS) -> str:
    """A stranger's text with nothing in it that acts as Markdown."""
    return "".join(
        f"\\{character}" if character in "\\`*_[]<>#|~!" else character
        for character in _printable(text, max_characters, "")
    )


def _printable(text: str, max_characters: int, forbidden: Iterable[str]) -> str:
    shown = "".join(
        character if character.isprintable() and character not in forbidden else "·"
        for character in text[:max_characters]
    )
    return f"{shown}…" if len(text) > max_characters else shown or "·"
