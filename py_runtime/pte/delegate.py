"""The delegate's blob: a `VH00` header, a `VK00` graph, and constants that are not named."""

import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from py_runtime.base.dtypes import BOOL, F16, F32, I8, I32, U8, DType
from py_runtime.program import (
    MAX_RANK,
    BoolListValue,
    BoolValue,
    DoubleListValue,
    DoubleValue,
    IntListValue,
    IntValue,
    NullValue,
    OpCall,
    StringValue,
    SymIntValue,
    Value,
    ValueListValue,
)
from py_runtime.pte.container import Segment
from py_runtime.pte.errors import PteError
from py_runtime.pte.flatbuffer import Budget, FlatBuffer, Table
from py_runtime.pte.schema import (
    ITEM,
    UNION,
    ConstantSlot,
    GraphSlot,
    GraphTensorSlot,
    GraphValueKind,
    OpCallSlot,
)

HEADER = struct.Struct("<4x4sHIIIQ")
MAX_GRAPH_BYTES = 16 << 20
NAMED = 2**64 - 1  # the offset of a constant that lies elsewhere, under its key
# Exporters store 64-bit numbers as 32-bit ones; where they do not, there is no such tensor here.
DTYPES: dict[int, DType] = {0: BOOL, 1: U8, 2: I8, 3: I32, 4: F16, 5: F32}


@dataclass(frozen=True)
class GraphTensor:
    """A tensor of the delegate's graph."""

    dtype: DType
    dims: tuple[int, ...]  # upper bounds
    constant: int  # number of its data; negative: none


GraphValue = Value | GraphTensor


@dataclass(frozen=True)
class GraphConstant:
    """Bytes that lie in the blob itself, or elsewhere under a key."""

    key: str  # "" when they lie in the blob
    inside: Segment  # of the file
    nbytes: int


@dataclass(frozen=True)
class DelegateGraph:
    """The graph as the file has it; values refer to each other by id."""

    values: tuple[GraphValue, ...]
    chain: tuple[OpCall, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    constants: tuple[GraphConstant, ...]
    unsupported: frozenset[str]  # what tensors are, and cannot be here

    @cached_property
    def cost(self) -> int:
        """The number of ids that one walk along the chain meets, counting lists each time."""
        lengths = {
            value_id: len(value.ids)
            for value_id, value in enumerate(self.values)
            if isinstance(value, ValueListValue)
        }
        return len(self.values) + sum(
            lengths.get(value_id, 1) for call in self.chain for value_id in call.args
        )


@dataclass(frozen=True)
class DelegateHeader:
    """The header of a delegate's blob, as places in the file."""

    graph: Segment
    constants: Segment


def read_delegate_header(file: str, head: bytes, blob: Segment) -> DelegateHeader:
    """`head`: the first HEADER.size bytes of the blob, fewer where it is shorter."""
    if head[4:8] != b"VH00" or len(head) < HEADER.size:
        raise PteError(f"{file} is damaged: its delegate begins with {head[4:8]!r}, not b'VH00'")
    _, _, graph_at, graph_size, bytes_at, bytes_size = HEADER.unpack(head)
    if graph_at + graph_size > blob.size or bytes_at + bytes_size > blob.size:
        raise PteError(f"{file} is damaged: its delegate's graph or data lies outside the delegate")
    if graph_size > MAX_GRAPH_BYTES:
        raise PteError(
            f"{file}: a delegate's graph has {graph_size} bytes, at most {MAX_GRAPH_BYTES} are "
            "read",
            "export the model in parts",
        )
    return DelegateHeader(
        Segment(blob.offset + graph_at, graph_size), Segment(blob.offset + bytes_at, bytes_size)
    )


def read_graph(file: str, data: bytes, header: DelegateHeader, budget: Budget) -> DelegateGraph:
    """Read the graph from `data`, the bytes that header.graph names."""
    buffer = FlatBuffer(data, b"VK00", f"the delegate's graph in {file}", budget)
    root, unsupported = buffer.root(), set[str]()
    return DelegateGraph(
        values=tuple(_value(buffer, table, unsupported) for table in root.tables(GraphSlot.VALUES)),
        chain=tuple(
            OpCall(table.text(OpCallSlot.NAME), table.i32s(OpCallSlot.ARGS))
            for table in root.tables(GraphSlot.CHAIN)
        ),
        inputs=root.u32s(GraphSlot.INPUTS),
        outputs=root.u32s(GraphSlot.OUTPUTS),
        constants=tuple(
            _constant(buffer, table, header.constants) for table in root.tables(GraphSlot.CONSTANTS)
        ),
        unsupported=frozenset(unsupported),
    )


def _constant(buffer: FlatBuffer, table: Table, inside: Segment) -> GraphConstant:
    offset, nbytes = table.u64(ConstantSlot.OFFSET), table.u64(ConstantSlot.SIZE)
    key = table.text(ConstantSlot.KEY)
    if offset == NAMED:
        if not key:
            raise buffer.fault("a constant has neither a place nor a key")
        return GraphConstant(key, Segment(0, 0), nbytes)
    if offset + nbytes > inside.size:
        raise buffer.fault(f"a constant's {nbytes} bytes at {offset} lie outside {inside.size}")
    return GraphConstant("", Segment(inside.offset + offset, nbytes), nbytes)


def _value(buffer: FlatBuffer, entry: Table, unsupported: set[str]) -> GraphValue:
    kind, table = entry.union(UNION)
    if kind == GraphValueKind.TENSOR:
        return _tensor(buffer, table, unsupported)
    if kind not in _PLAIN_VALUES:
        raise buffer.fault(f"it has a value of the unknown kind {kind}")
    return _PLAIN_VALUES[kind](table)


_NULL = NullValue()
_PLAIN_VALUES: dict[int, Callable[[Table], Value]] = {
    GraphValueKind.NULL: lambda table: _NULL,
    GraphValueKind.INT: lambda table: IntValue(table.i64(ITEM)),
    GraphValueKind.DOUBLE: lambda table: DoubleValue(table.f64(ITEM)),
    GraphValueKind.BOOL: lambda table: BoolValue(table.boolean(ITEM)),
    GraphValueKind.INT_LIST: lambda table: IntListValue(table.i64s(ITEM)),
    GraphValueKind.DOUBLE_LIST: lambda table: DoubleListValue(table.f64s(ITEM)),
    GraphValueKind.BOOL_LIST: lambda table: BoolListValue(table.booleans(ITEM)),
    GraphValueKind.VALUE_LIST: lambda table: ValueListValue(table.i32s(ITEM)),
    GraphValueKind.STRING: lambda table: StringValue(table.text(ITEM)),
    GraphValueKind.SYMINT: lambda table: SymIntValue(table.i32(ITEM)),
}


def _tensor(buffer: FlatBuffer, table: Table, unsupported: set[str]) -> GraphTensor:
    """Storage type, layout and memory object are the exporter's plan: the engine makes its own."""
    code, dims = table.i8(GraphTensorSlot.DTYPE), table.u32s(GraphTensorSlot.DIMS)
    if len(dims) > MAX_RANK:
        raise buffer.fault(f"a tensor has {len(dims)} dims; at most {MAX_RANK}")
    if code not in DTYPES:
        unsupported.add(f"tensors of the data type {code}")
    return GraphTensor(DTYPES.get(code, F32), dims, table.i32(GraphTensorSlot.CONSTANT))
