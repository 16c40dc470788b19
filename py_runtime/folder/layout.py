"""The layout of a model folder: which bytes of which file are which constant of the graph.

Nothing here opens a file: the page fetches ranges, py_runtime.folder.on_disk reads a disk. Both
give the bytes of the manifest, of the graph and of each safetensors header.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from py_runtime.base.dtypes import DTYPES, DType
from py_runtime.base.errors import GraphError
from py_runtime.base.model_errors import ModelFileError, ModelTensorsError
from py_runtime.base.shapes import Dims, numel
from py_runtime.base.short_texts import short
from py_runtime.folder.manifest import Manifest
from py_runtime.folder.safetensors_header import ALIGNMENT, TensorEntry
from py_runtime.program import Program
from py_runtime.program.json_format import load_program

PIECE_MARK = "#"  # 'name#0', 'name#1', …: a tensor that is larger than a shard
PIECE_NAME = re.compile(r"(.+)#(0|[1-9][0-9]{0,5})", re.DOTALL)
RESERVED_PREFIX = "__"  # __metadata__ and __pad_<n>


@dataclass(frozen=True)
class FileRange:
    """A byte range of a file."""

    file: str
    offset: int
    nbytes: int


@dataclass(frozen=True)
class TensorPlace:
    """The place of a tensor's row-major data: its pieces, one after the other."""

    dtype: DType  # as stored: what the GPU holds, so I32 for an i64 or bool constant
    dims: Dims
    pieces: tuple[FileRange, ...]


@dataclass(frozen=True)
class ModelFolder:
    """A model as far as it is known before any weight is read."""

    manifest: Manifest
    program: Program
    tensors: dict[str, TensorPlace]  # every constant of the graph
    goldens: dict[str, TensorPlace]  # empty where there are none, or their header was not given
    head: Program | None = field(default=None, kw_only=True)  # that foresees tokens
    # Why the model goes without the head it has.
    head_fault: str | None = field(default=None, kw_only=True)


@dataclass(frozen=True)
class Constant:
    """A constant as the graph describes it."""

    dtype: DType
    dims: Dims

    @property
    def stored(self) -> DType:
        """The element type in files, which is that on the GPU: I32 for i64 and bool."""
        return STORED[self.dtype]

    @property
    def nbytes(self) -> int:
        return numel(self.dims) * self.dtype.gpu_bytes

    def __str__(self) -> str:
        return f"{self.dtype.name} {list(self.dims)}"


STORED = {
    dtype: next(other for other in DTYPES.values() if other.host == dtype.gpu)
    for dtype in DTYPES.values()
}


def constants_of(program: Program) -> dict[str, Constant]:
    """Return the graph's constants in the order of its values."""
    constants: dict[str, Constant] = {}
    for value_id, value, name in program.constants():
        constant = Constant(value.dtype, value.dims)
        if not name or name.startswith(RESERVED_PREFIX) or PIECE_MARK in name:
            raise GraphError(
                f"{program.label(value_id)} has the constant {short(name)}; names must not be "
                f"empty, begin with '{RESERVED_PREFIX}' or contain '{PIECE_MARK}'"
            )
        if constants.setdefault(name, constant) != constant:
            raise GraphError(
                f"{program.label(value_id)} takes the constant {short(name)} as {constant}, but "
                f"an earlier value as {constants[name]}"
            )
    return constants


def combine_model(
    manifest: Manifest, graph: bytes, headers: Mapping[str, Sequence[TensorEntry]]
) -> ModelFolder:
    """Check that the files' tensors are the graph's constants, all of them and nothing else.

    `graph` is the whole file; `headers` has the weights' headers by file name, and the goldens'
    where the caller wants them.
    """
    manifest.check_file(manifest.graph, graph)
    program = load_program(graph)
    stored = _collect(manifest, headers)
    constants = constants_of(program)
    for name in stored:
        if name not in constants:
            file, entry = next(iter(stored[name].values()))
            raise ModelTensorsError(
                f"{file} holds the tensor {short(entry.name)}, which the graph does not know"
            )
    tensors = {}
    for name, constant in constants.items():
        if name not in stored:
            raise ModelTensorsError(
                f"the graph's constant {short(name)} is not in any of the weight files"
            )
        tensors[name] = _place(name, constant, stored[name])
    goldens = {}
    if manifest.goldens is not None:
        for entry in headers.get(manifest.goldens, ()):
            piece = _piece(manifest.goldens, entry)
            goldens[entry.name] = TensorPlace(entry.dtype, entry.dims, (piece,))
    return ModelFolder(manifest, program, tensors, goldens)


# The entries of one tensor, by piece number; a tensor in one piece has the number WHOLE.
Stored = dict[int, tuple[str, TensorEntry]]
WHOLE = -1


def _collect(manifest: Manifest, headers: Mapping[str, Sequence[TensorEntry]]) -> dict[str, Stored]:
    stored: dict[str, Stored] = {}
    for file in manifest.weights:
        if file not in headers:
            raise ModelFileError(f"the header of {file} was not read")
        for entry in headers[file]:
            match = PIECE_NAME.fullmatch(entry.name)
            name, number = (match[1], int(match[2])) if match else (entry.name, WHOLE)
            pieces = stored.setdefault(name, {})
            if number in pieces:
                raise ModelTensorsError(
                    f"the tensor {short(entry.name)} is both in {pieces[number][0]} and in {file}"
                )
            pieces[number] = file, entry
    return stored


def _place(name: str, constant: Constant, stored: Stored) -> TensorPlace:
    if WHOLE in stored and len(stored) > 1:
        raise ModelTensorsError(f"the tensor {short(name)} is stored both whole and in pieces")
    if WHOLE not in stored and sorted(stored) != list(range(len(stored))):
        missing = next(number for number in range(len(stored)) if number not in stored)
        raise ModelTensorsError(f"the tensor {short(name)} lacks its piece '{PIECE_MARK}{missing}'")
    ordered = [stored[number] for number in sorted(stored)]
    for file, entry in ordered:
        _check_entry(file, entry, constant, whole=WHOLE in stored)
    for file, entry in ordered[:-1]:
        if entry.nbytes % ALIGNMENT:
            raise ModelTensorsError(
                f"{file}: {short(entry.name)} has {entry.nbytes} bytes; only the last piece may "
                f"have a length that is not a multiple of {ALIGNMENT}"
            )
    total = sum(entry.nbytes for _, entry in ordered)
    if total != constant.nbytes:
        raise ModelTensorsError(
            f"the pieces of {short(name)} have {total} bytes together, but the graph's "
            f"{constant} takes {constant.nbytes}"
        )
    pieces = tuple(_piece(file, entry) for file, entry in ordered)
    return TensorPlace(constant.stored, constant.dims, pieces)


def _check_entry(file: str, entry: TensorEntry, constant: Constant, whole: bool) -> None:
    """Check a piece: some of the tensor's rows, or a flat run if one row exceeds a shard."""
    same_rows = bool(entry.dims) and entry.dims[1:] == constant.dims[1:]
    fits = entry.dims == constant.dims if whole else len(entry.dims) == 1 or same_rows
    if entry.dtype is not constant.stored or not fits:
        raise ModelTensorsError(
            f"{file}: tensor {short(entry.name)} is {entry.dtype.name} {list(entry.dims)}, but "
            f"the graph's constant is {constant}, stored as {constant.stored.name}"
        )


def _piece(file: str, entry: TensorEntry) -> FileRange:
    return FileRange(file, entry.offset, entry.nbytes)
