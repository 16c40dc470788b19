"""What is in a model folder, in words."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from py_runtime.base.sizes import in_words
from py_runtime.decoder.token_rows import with_token_rows_given
from py_runtime.folder.on_disk import open_model_folder
from py_runtime.graph.buffers import measure
from py_runtime.program import Program, SymIntValue, TensorValue


def describe(folder: Path) -> Iterator[str]:
    """Line by line; ModelError where the folder is not sound."""
    model = open_model_folder(folder)
    facts = model.manifest
    yield f"{facts.name}: {facts.parameters / 1e6:.1f} M parameters, {facts.quantisation}"
    yield f"licence of the weights: {facts.source.licence}"
    yield ""
    yield "files"
    for name, file in facts.files.items():
        yield f"  {file.size:>12,}  {name}"
    report = measure(with_token_rows_given(model.program)).report
    yield ""
    yield f"GPU memory: {in_words(report.peak)} at the full context of {facts.context}"
    for purpose in ("constants", "state", "intermediates", "inputs", "uniforms"):
        yield f"  {getattr(report, purpose):>12,}  {purpose}"
    yield ""
    yield from _ends(model.program)
    yield ""
    yield f"{len(model.program.ops)} ops"
    for name, count in Counter(call.name for call in model.program.ops).most_common():
        yield f"  {count:>6}  {name}"


def _ends(program: Program) -> Iterator[str]:
    dynamic = {entry.value: entry.dynamic_dims for entry in program.inputs}
    for title, ids in (("inputs", list(dynamic)), ("outputs", list(program.outputs))):
        yield title
        for value_id in ids:
            value = program.values[value_id]
            if isinstance(value, SymIntValue):
                yield f"  {value.name or value_id}: SymInt"
            elif isinstance(value, TensorValue):
                dims = [
                    f"1..{size}" if axis in dynamic.get(value_id, ()) else str(size)
                    for axis, size in enumerate(value.dims)
                ]
                yield f"  {value.name or value_id}: {value.dtype.name} [{', '.join(dims)}]"
