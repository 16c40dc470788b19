"""A delegate's graph as the engine's Program, with the places of its constants."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from py_runtime.base.dtypes import BOOL, F32, I8, I32, U8, DType
from py_runtime.base.shapes import MAX_ELEMENTS, numel
from py_runtime.ops.registry import REGISTRY
from py_runtime.program import (
    NullValue,
    OpCall,
    Program,
    ProgramInput,
    SymIntValue,
    TensorValue,
    Value,
    ValueListValue,
)
from py_runtime.pte.container import EValue, HostTensor
from py_runtime.pte.delegate import DelegateGraph, GraphConstant, GraphTensor, GraphValue
from py_runtime.pte.errors import PteError, UnsupportedPteError
from py_runtime.weights.byte_source import ByteSource
from py_runtime.weights.ranges import StoredRange

MAX_SIZES = 4  # of caches in a graph that are compared with zeros
PREPACK = "et_vk.prepack.default"
# The callers' dtype for each type on the GPU: 64-bit numbers are stored as 32-bit ones.
HOST_DTYPES: dict[DType, tuple[type[np.generic], ...]] = {
    F32: (np.float32, np.float64),
    I32: (np.int32, np.int64),
    BOOL: (np.bool_,),
    U8: (np.uint8,),
    I8: (np.int8,),
}


@dataclass(frozen=True)
class StoredData:
    """The data that constants can be taken from."""

    file: ByteSource  # the .pte file itself
    named: dict[str, StoredRange]  # its named data, and that of .ptd files


@dataclass(frozen=True)
class Translated:
    """A translated graph, as Graph.load takes it."""

    program: Program
    ranges: dict[str, StoredRange]  # of each constant, by the name the program has for it


def translate(
    name: str,
    graph: DelegateGraph,
    arguments: Sequence[EValue],
    data: StoredData,
) -> Translated:
    """`arguments`: what the method passes, for the graph's inputs and then for its outputs.

    That is the delegate's own order; the method's inputs may come in another.
    """
    count = len(graph.inputs)
    if len(arguments) != count + len(graph.outputs):
        raise PteError(
            f"{name}: its delegate has {count} inputs and {len(graph.outputs)} outputs, but is "
            f"called with {len(arguments)} values",
            "where the model changes a buffer by an ordinary op, ExecuTorch's exporter writes "
            "such a file: make that buffer an input",
        )
    _check_elements(name, graph)
    _check_ends(name, graph, arguments)
    values, ops = _without_prepacks(graph)
    _refuse_buffer_results(name, values, ops)
    constants = _Constants(name, graph.constants, data)
    used, written = _used_ids(values, ops, graph), _written_ids(ops)
    program = Program(
        values=tuple(
            _program_value(constants, value_id, value, used, written)
            for value_id, value in enumerate(values)
        ),
        ops=tuple(ops),
        inputs=tuple(
            ProgramInput(value_id, _dynamic_dims(argument))
            for value_id, argument in zip(graph.inputs, arguments, strict=False)
        ),
        outputs=graph.outputs,
        name=name,
    )
    constants.check_complete()
    return Translated(program, constants.ranges)


def _dynamic_dims(argument: EValue) -> frozenset[int]:
    """Return the dims that may vary: the file does not say which, so all but those of size 1."""
    if not isinstance(argument, HostTensor) or not argument.dynamic:
        return frozenset()
    return frozenset(axis for axis, size in enumerate(argument.dims) if size > 1)


def _check_elements(name: str, graph: DelegateGraph) -> None:
    """Refuse too many elements; without a bound the exporter takes 16,384 and more for a dim."""
    counts = [numel(value.dims) for value in graph.values if isinstance(value, GraphTensor)]
    if 0 in counts:
        raise UnsupportedPteError(name, ["tensors without elements"], "export it without them")
    if (most := max(counts, default=0)) > MAX_ELEMENTS:
        raise PteError(
            f"{name}: a tensor has up to {most} elements; at most {MAX_ELEMENTS} can be indexed",
            "export it with a smaller `max` for each dynamic dim",
        )


def _check_ends(name: str, graph: DelegateGraph, arguments: Sequence[EValue]) -> None:
    """Check that the method and its delegate agree on each input and output."""
    for value_id, argument in zip((*graph.inputs, *graph.outputs), arguments, strict=True):
        if value_id >= len(graph.values):
            raise PteError(f"{name} is damaged: its delegate has no value {value_id}")
        value = graph.values[value_id]
        # The exporter writes null for an integer that callers pass.
        if isinstance(value, SymIntValue) and (argument is None or type(argument) is int):
            continue
        if not isinstance(value, GraphTensor) or not isinstance(argument, HostTensor):
            raise PteError(
                f"{name}: value {value_id} of the delegate and what the method passes for it are "
                "not of one kind"
            )
        if value.dims != argument.dims:
            raise PteError(
                f"{name}: value {value_id} has the dims {list(value.dims)} in the delegate and "
                f"{list(argument.dims)} in the method"
            )
        if argument.dtype not in HOST_DTYPES.get(value.dtype, ()):
            raise PteError(
                f"{name}: value {value_id} is {value.dtype.name} in the delegate and "
                f"{argument.dtype} in the method",
                "export the model in float32",
            )


def _without_prepacks(graph: DelegateGraph) -> tuple[list[GraphValue], list[OpCall]]:
    """Turn the copies that `prepack` makes of constants into constants themselves.

    An op may write the copy in place, which nothing but a constant of its own allows.
    """
    values, ops = list(graph.values), []
    for call in graph.chain:
        if call.name == PREPACK and len(call.args) == 2 and _are_ids(call.args, values):
            source, destination = (values[value_id] for value_id in call.args)
            if (
                isinstance(source, GraphTensor)
                and isinstance(destination, GraphTensor)
                and source.constant >= 0 > destination.constant
                and (source.dtype, source.dims) == (destination.dtype, destination.dims)
            ):
                values[call.args[1]] = source
                continue
        ops.append(call)
    return values, ops


def _refuse_buffer_results(name: str, values: Sequence[GraphValue], ops: list[OpCall]) -> None:
    """Refuse ops that write a stored buffer, as the exporter's alias_buffer_mutations does."""
    names = set()
    for call in ops:
        result = values[call.args[-1]] if call.args and _are_ids(call.args[-1:], values) else None
        if isinstance(result, GraphTensor) and result.constant >= 0:
            names.add(f"{call.name} into a stored buffer")
    if names:
        raise UnsupportedPteError(name, names, "make inputs of the buffers that the model changes")


def _are_ids(ids: Iterable[int], values: Sequence[GraphValue]) -> bool:
    return all(0 <= value_id < len(values) for value_id in ids)


def _used_ids(
    values: Sequence[GraphValue], ops: Iterable[OpCall], graph: DelegateGraph
) -> set[int]:
    used = {*graph.inputs, *graph.outputs}
    for call in ops:
        used.update(call.args)
    for value_id, value in enumerate(values):
        if value_id in used and isinstance(value, ValueListValue):
            used.update(value.ids)
    return used


def _written_ids(ops: Iterable[OpCall]) -> set[int]:
    """Return the ids that ops write in place: KV caches."""
    written = set()
    for call in ops:
        row = REGISTRY[call.name]
        written |= {at for arg, at in zip(row.args, call.args, strict=False) if arg in row.mutates}
    return written


def _program_value(
    constants: "_Constants", value_id: int, value: GraphValue, used: set[int], written: set[int]
) -> Value:
    if not isinstance(value, GraphTensor):
        return value
    if value.constant < 0:
        return TensorValue(value.dtype, value.dims)
    if value_id not in used:  # it was only there to be prepacked, and takes no memory
        return NullValue()
    return constants.value(value_id, value, is_written=value_id in written)


class _Constants:
    """The names and places of a graph's constants."""

    def __init__(self, name: str, constants: tuple[GraphConstant, ...], data: StoredData) -> None:
        self.ranges: dict[str, StoredRange] = {}
        self._name = name
        self._constants = constants
        self._data = data
        self._missing: set[str] = set()
        self._keys_of_zeros: dict[int, str] = {}  # by size

    def value(self, value_id: int, value: GraphTensor, is_written: bool) -> TensorValue:
        if value.constant >= len(self._constants):
            raise PteError(
                f"{self._name} is damaged: value {value_id} is constant {value.constant}, and the "
                f"delegate has {len(self._constants)}"
            )
        constant = self._constants[value.constant]
        self._check_size(value_id, value, constant)
        place = self._place(value.dtype, constant)
        if is_written and self._are_zeros(constant):
            return TensorValue(value.dtype, value.dims, state=True)
        return TensorValue(value.dtype, value.dims, constant=place)

    def check_complete(self) -> None:
        if self._missing:
            raise PteError(
                f"{self._name} lacks the data of {len(self._missing)} constants, one of which is "
                f"{min(self._missing)}",
                "load it together with the .ptd file that was written beside it",
            )

    def _are_zeros(self, constant: GraphConstant) -> bool:
        """Return whether the constant is all zeros; its key is a sha256, so it need not be read."""
        nbytes = constant.nbytes
        if constant.key not in self._data.named:
            return False
        if nbytes not in self._keys_of_zeros and len(self._keys_of_zeros) < MAX_SIZES:
            self._keys_of_zeros[nbytes] = _key_of_zeros(nbytes)
        return self._keys_of_zeros.get(nbytes) == constant.key

    def _check_size(self, value_id: int, value: GraphTensor, constant: GraphConstant) -> None:
        stored = value.dtype.host if value.dtype is BOOL else value.dtype.gpu
        wanted = numel(value.dims) * stored.itemsize
        if constant.nbytes != wanted:
            raise PteError(
                f"{self._name} is damaged: value {value_id} is {value.dtype.name} "
                f"{list(value.dims)}, {wanted} bytes, and its constant has {constant.nbytes}"
            )

    def _place(self, dtype: DType, constant: GraphConstant) -> str:
        """Name a constant and record its place.

        Constants of equal bytes have one key, whatever they are. Bools are stored as bytes and
        wider on the GPU, so they get a name of their own.
        """
        inside, key = constant.inside, constant.key
        name = key or f"bytes {inside.offset} to {inside.offset + inside.size}"
        if dtype is BOOL:
            name += ":bool"
        if key in self._data.named:
            found = self._data.named[key]
            if found.nbytes < constant.nbytes:
                raise PteError(
                    f"{self._name} is damaged: constant {key} has {found.nbytes} bytes, not "
                    f"{constant.nbytes}"
                )
            self.ranges[name] = StoredRange(found.source, found.offset, constant.nbytes)
        elif key:
            self._missing.add(key)
        else:
            self.ranges[name] = StoredRange(self._data.file, inside.offset, inside.size)
        return name


def _key_of_zeros(nbytes: int) -> str:
    digest, zeros = hashlib.sha256(), bytes(1 << 20)
    for begin in range(0, nbytes, len(zeros)):
        digest.update(zeros[: nbytes - begin])
    return digest.hexdigest()
