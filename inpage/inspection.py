"""Descriptions of models on a terminal: what a model folder, a .gguf or a .pte contains."""

from collections import Counter
from collections.abc import Iterator

from py_runtime.base.errors import InpageError
from py_runtime.base.markdown import cannot_be_loaded
from py_runtime.base.printing import print_plainly
from py_runtime.base.sizes import in_words
from py_runtime.decoder.token_rows import with_token_rows_given
from py_runtime.folder.file_names import MODEL_PTE
from py_runtime.folder.layout import ModelFolder
from py_runtime.gguf.about import about_gguf
from py_runtime.gguf.reader import open_gguf
from py_runtime.graph.buffers import measure
from py_runtime.hub.address import leads_to_hub
from py_runtime.model.hub_store import hub_store
from py_runtime.model.pte_store import PteStore
from py_runtime.model.stores import file_name, gguf_store, open_store, source_of
from py_runtime.program import Program, SymIntValue, TensorValue
from py_runtime.pte import UnsupportedPteError, inspect_pte, open_pte
from py_runtime.pte.about import about_pte, pte_cannot_be_loaded

CAN_BE_LOADED = "**It can be loaded.**"


async def inspect(where: str, data: list[str]) -> int:
    """Print what a model contains; return 0 if it can be loaded, else 1."""
    file = file_name(where).lower()
    if leads_to_hub(where) or file.endswith(".gguf"):
        return await inspect_gguf(where)
    if file.endswith(".pte"):
        return await inspect_pte_file(where, data)
    return await inspect_folder(where, data)


async def inspect_gguf(where: str) -> int:
    """Print what a GGUF file contains; of one on the Hub only the header is downloaded."""
    store = await hub_store(where) if leads_to_hub(where) else gguf_store(where)
    file = await open_gguf(await store.opened_sources())
    try:
        await store.model()
    except InpageError as error:
        print_plainly(about_gguf(file, cannot_be_loaded(error)))
        return 1
    print_plainly(about_gguf(file, CAN_BE_LOADED))
    return 0


async def inspect_pte_file(where: str, data: list[str]) -> int:
    """Print what an ExecuTorch file and its data files contain."""
    source, data_sources = source_of(where), [source_of(file) for file in data]
    described = await inspect_pte(source, data_sources)
    try:
        await open_pte(source, data_sources)
    except UnsupportedPteError as error:
        print_plainly(about_pte(described, pte_cannot_be_loaded(error)))
        return 1
    print_plainly(about_pte(described, CAN_BE_LOADED))
    return 0


async def inspect_folder(where: str, data: list[str]) -> int:
    """Print what a model folder contains, or the .pte file in it."""
    store = await open_store(where)
    if isinstance(store, PteStore):
        return await inspect_pte_file(f"{where.rstrip('/')}/{MODEL_PTE}", data)
    for line in describe_folder(await store.open()):
        print_plainly(line)
    return 0


def describe_folder(model: ModelFolder) -> Iterator[str]:
    """Yield the lines that describe a model folder: files, memory, inputs, outputs and ops."""
    facts = model.manifest
    yield f"{facts.name}: {facts.parameters / 1e6:.1f} M parameters, {facts.quantisation}"
    yield f"licence of the weights: {facts.source.licence}"
    yield ""
    yield "files"
    for name, file in facts.files.items():
        yield f"  {file.size:>12,}  {name}"
    report = measure(with_token_rows_given(model.program)).report
    yield ""
    yield f"memory: {in_words(report.peak)} at the full context of {facts.context}"
    for purpose in ("constants", "state", "intermediates", "inputs", "uniforms"):
        yield f"  {getattr(report, purpose):>12,}  {purpose}"
    yield ""
    yield from describe_signature(model.program)
    yield ""
    yield f"{len(model.program.ops)} ops"
    for name, count in Counter(call.name for call in model.program.ops).most_common():
        yield f"  {count:>6}  {name}"


def describe_signature(program: Program) -> Iterator[str]:
    """Yield a line for each input and output of a program."""
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
