"""A GGUF file in words, as Markdown: a terminal prints it, the page shows it."""

from collections import defaultdict

from py_runtime.base.markdown import code, table
from py_runtime.base.sizes import in_words
from py_runtime.gguf.metadata import Value
from py_runtime.gguf.reader import GgufFile

MAX_VALUE = 60  # characters of a value


def about_gguf(file: GgufFile, outcome: str) -> str:
    """Describe a file as Markdown, even one that cannot be loaded; `outcome` is Markdown."""
    metadata = file.metadata.values
    rows = [[code(key), _format_value(value)] for key, value in metadata.items()]
    return "\n\n".join(
        (
            f"# {code(file.name)}",
            f"{in_words(file.size)}, {len(file.tensors)} tensors. {outcome}",
            "## Tensors",
            _types(file),
            "## Metadata",
            table(["key", "value"], rows),
        )
    )


def _types(file: GgufFile) -> str:
    counts: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for tensor in file.tensors.values():
        count, nbytes = counts[tensor.info.kind.name]
        counts[tensor.info.kind.name] = count + 1, nbytes + tensor.info.nbytes
    ordered = sorted(counts.items(), key=lambda item: -item[1][1])
    rows = [[name, str(count), in_words(nbytes)] for name, (count, nbytes) in ordered]
    return table(["type", "tensors:", "size:"], rows)


def _format_value(value: Value) -> str:
    if value.is_array:
        assert not isinstance(value.item, int | float | bool | str)
        return f"{len(value.item)} × {value.kind.name.lower()}"
    text = str(value.item)
    return code(text if len(text) <= MAX_VALUE else f"{text[:MAX_VALUE]}…")
