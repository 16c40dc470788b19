"""The `ET12` program: methods, their values and instructions, and where data lies in the file."""

import struct
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from py_runtime.program import MAX_RANK
from py_runtime.pte.errors import PteError
from py_runtime.pte.flatbuffer import Budget, FlatBuffer, Table
from py_runtime.pte.schema import (
    IN_SEGMENT,
    ITEM,
    UNION,
    CallSlot,
    ChainSlot,
    ConstantSegmentSlot,
    ContainerTypeSlot,
    DelegateDataSlot,
    DelegateSlot,
    InlineDataSlot,
    InstructionKind,
    MethodTensorSlot,
    MethodValueKind,
    MoveSlot,
    NamedDataSlot,
    OperatorSlot,
    PlanSlot,
    ProgramSlot,
    SegmentSlot,
)

HEADER_BYTES = 40  # root offset, identifier, extended header
MAX_PROGRAM_BYTES = 64 << 20
MAX_METHODS = 64
EXTENDED_HEADER = struct.Struct("<4sIQQ")  # magic, its length, program size, segments' beginning
HOST_DTYPES = {
    0: np.uint8,
    1: np.int8,
    2: np.int16,
    3: np.int32,
    4: np.int64,
    5: np.float16,
    6: np.float32,
    7: np.float64,
    11: np.bool_,
}


@dataclass(frozen=True)
class Segment:
    """A range of bytes of the file."""

    offset: int
    size: int


@dataclass(frozen=True)
class HostTensor:
    """A tensor as callers of the method see it."""

    dtype: np.dtype
    dims: tuple[int, ...]  # upper bounds where it is dynamic
    dynamic: bool
    buffer: int  # number of the data it starts with; 0: none


@dataclass(frozen=True)
class TensorIds:
    """A list of tensors, by value ids; -1 stands for none."""

    ids: tuple[int, ...]


Scalar = bool | int | float | str
EValue = None | Scalar | tuple[int, ...] | tuple[float, ...] | HostTensor | TensorIds


@dataclass(frozen=True)
class KernelCall:
    """A call of an op outside every delegate; arguments by value id."""

    name: str
    args: tuple[int, ...]


@dataclass(frozen=True)
class DelegateCall:
    """A call of a delegate; arguments by value id: its inputs, then its outputs."""

    delegate: int
    args: tuple[int, ...]


@dataclass(frozen=True)
class MoveCall:
    """A move of one value to another, by their ids."""

    source: int
    destination: int


Instruction = KernelCall | DelegateCall | MoveCall


@dataclass(frozen=True)
class Delegate:
    """The place of a backend's blob in the file."""

    backend: str
    data: Segment


@dataclass(frozen=True)
class ExecutionPlan:
    """A method of the model, as the file has it."""

    name: str
    values: tuple[EValue, ...]
    inputs: tuple[int, ...]  # value ids
    outputs: tuple[int, ...]
    output_spec: str  # how outputs were nested in the model's own result
    instructions: tuple[Instruction, ...]
    delegates: tuple[Delegate, ...]


@dataclass(frozen=True)
class Container:
    """The contents of a .pte file, before any delegate is opened."""

    plans: tuple[ExecutionPlan, ...]
    named: dict[str, Segment]
    buffers: tuple[Segment, ...]  # where the data of method-level constants begins
    unsupported: frozenset[str]  # what tensors of the methods are, and cannot be here


@dataclass(frozen=True)
class PteHeader:
    """The header: which bytes of the file are the program, and where segments begin."""

    program_size: int
    segment_base: int


def read_header(file: str, head: bytes, file_size: int) -> PteHeader:
    """`head`: the first HEADER_BYTES of the file, fewer where it is shorter."""
    if head[4:8] != b"ET12":
        raise PteError(f"{file} is not a .pte file: bytes 4 to 7 are {head[4:8]!r}, not b'ET12'")
    header = PteHeader(file_size, 0)
    if head[8:12] == b"eh00" and len(head) >= 8 + EXTENDED_HEADER.size:
        _, length, program_size, segment_base = EXTENDED_HEADER.unpack_from(head, 8)
        if length < EXTENDED_HEADER.size:
            raise PteError(f"{file} is damaged: its extended header has {length} bytes")
        header = PteHeader(program_size, segment_base)
    if not HEADER_BYTES <= header.program_size <= file_size:
        raise PteError(
            f"{file} is cut short: it has {file_size} bytes, its program alone "
            f"{header.program_size}"
        )
    if header.program_size > MAX_PROGRAM_BYTES:
        raise PteError(
            f"{file}: the program has {header.program_size} bytes, at most {MAX_PROGRAM_BYTES} "
            "are read",
            "export it with delegates and constants in segments, which is ExecuTorch's default",
        )
    return header


def read_container(
    file: str, data: bytes, header: PteHeader, file_size: int, budget: Budget
) -> Container:
    """Read the program from `data`, the first program_size bytes of the file."""
    return _Reader(file, data, header, file_size, budget).container()


class _Reader:
    def __init__(
        self, file: str, data: bytes, header: PteHeader, file_size: int, budget: Budget
    ) -> None:
        self._buffer = FlatBuffer(data, b"ET12", file, budget)
        self._file = file
        self._program = self._buffer.root()
        self._segments = read_segments(
            self._buffer, self._program.tables(ProgramSlot.SEGMENTS), header.segment_base, file_size
        )
        self._unsupported: set[str] = set()
        self._inline = self._inline_data(ProgramSlot.INLINE_DELEGATES)

    def container(self) -> Container:
        methods = self._program.tables(ProgramSlot.PLANS)
        if len(methods) > MAX_METHODS:
            raise PteError(
                f"{self._file} has {len(methods)} methods; at most {MAX_METHODS} are read",
                "export the model with those that are needed",
            )
        plans = tuple(map(self._plan, methods))
        if len({plan.name for plan in plans}) < len(plans):
            raise self._buffer.fault("two of its methods have the same name")
        tables = self._program.tables(ProgramSlot.NAMED_DATA)
        named = read_named(self._buffer, tables, self._segments)
        return Container(plans, named, self._constant_buffers(), frozenset(self._unsupported))

    def _inline_data(self, slot: int) -> tuple[Segment, ...]:
        tables = self._program.tables(slot)
        return tuple(Segment(*table.span(InlineDataSlot.BYTES)) for table in tables)

    def _constant_buffers(self) -> tuple[Segment, ...]:
        """Return each HostTensor.buffer's data, from its beginning to the end of its segment."""
        table = self._program.table(ProgramSlot.CONSTANT_SEGMENT)
        if table is None:
            return self._inline_data(ProgramSlot.CONSTANT_BUFFERS)
        offsets = table.u64s(ConstantSegmentSlot.OFFSETS)
        if not offsets:
            return ()
        segment = segment_at(self._buffer, self._segments, table.u32(ConstantSegmentSlot.SEGMENT))
        buffers = []
        for offset in offsets:
            if offset > segment.size:
                raise self._buffer.fault(f"a constant lies at {offset} of {segment.size} bytes")
            buffers.append(Segment(segment.offset + offset, segment.size - offset))
        return tuple(buffers)

    # Methods -----------------------------------------------------------------------------------

    def _plan(self, table: Table) -> ExecutionPlan:
        name = table.text(PlanSlot.NAME)
        values = tuple(self._value(entry) for entry in table.tables(PlanSlot.VALUES))
        container_type = table.table(PlanSlot.CONTAINER_TYPE)
        chains = table.tables(PlanSlot.CHAINS)
        if len(chains) > 1:
            raise PteError(f"{self._file}: method '{name}' has {len(chains)} chains, not one")
        operators = [_operator(entry) for entry in table.tables(PlanSlot.OPERATORS)]
        calls = [call for chain in chains for call in chain.tables(ChainSlot.INSTRUCTIONS)]
        plan = ExecutionPlan(
            name=name,
            values=values,
            inputs=table.i32s(PlanSlot.INPUTS),
            outputs=table.i32s(PlanSlot.OUTPUTS),
            output_spec=container_type.text(ContainerTypeSlot.OUTPUTS) if container_type else "",
            instructions=tuple(
                call for entry in calls for call in self._instruction(entry, operators)
            ),
            delegates=tuple(self._delegate(entry) for entry in table.tables(PlanSlot.DELEGATES)),
        )
        self._check_ids(plan)
        return plan

    def _value(self, entry: Table) -> EValue:
        kind, table = entry.union(UNION)
        if kind == MethodValueKind.TENSOR:
            return self._tensor(table)
        if kind in (MethodValueKind.TENSOR_LIST, MethodValueKind.OPTIONAL_TENSOR_LIST):
            return TensorIds(table.i32s(ITEM))
        if kind not in _PLAIN_VALUES:
            raise self._buffer.fault(f"it has a value of the unknown kind {kind}")
        return _PLAIN_VALUES[kind](table)

    def _tensor(self, table: Table) -> HostTensor:
        scalar_type = table.i8(MethodTensorSlot.SCALAR_TYPE)
        dims, order = table.i32s(MethodTensorSlot.SIZES), table.u8s(MethodTensorSlot.DIM_ORDER)
        begin = table.i32(MethodTensorSlot.STORAGE_OFFSET)
        if len(dims) > MAX_RANK or any(size < 0 for size in dims) or begin:
            raise self._buffer.fault("a tensor has impossible dims, or begins elsewhere")
        if scalar_type not in HOST_DTYPES:
            self._unsupported.add(f"tensors of the scalar type {scalar_type}")
        if order and order != tuple(range(len(dims))):
            self._unsupported.add("tensors that are not contiguous (channels last)")
        dtype = np.dtype(HOST_DTYPES.get(scalar_type, np.void))
        dynamic = table.i8(MethodTensorSlot.DYNAMISM) != 0
        return HostTensor(dtype, dims, dynamic, table.u32(MethodTensorSlot.BUFFER))

    def _instruction(self, entry: Table, operators: list[str]) -> list[Instruction]:
        kind, table = entry.union(UNION)
        if kind == InstructionKind.KERNEL_CALL:
            at = table.i32(CallSlot.INDEX)
            if not 0 <= at < len(operators):
                raise self._buffer.fault(f"operator {at} is called; it has {len(operators)}")
            return [KernelCall(operators[at], table.i32s(CallSlot.ARGS))]
        if kind == InstructionKind.DELEGATE_CALL:
            return [DelegateCall(table.i32(CallSlot.INDEX), table.i32s(CallSlot.ARGS))]
        if kind == InstructionKind.MOVE_CALL:
            return [MoveCall(table.i32(MoveSlot.SOURCE), table.i32(MoveSlot.DESTINATION))]
        if kind == InstructionKind.JUMP_IF_FALSE:
            return [KernelCall("a conditional jump", ())]
        if kind == InstructionKind.FREE:
            return []  # frees memory, which is not ours to free
        raise self._buffer.fault(f"it has an instruction of the unknown kind {kind}")

    def _delegate(self, entry: Table) -> Delegate:
        reference = entry.table(DelegateSlot.DATA)
        if reference is None:
            raise self._buffer.fault("a delegate has no data")
        is_segment = reference.i8(DelegateDataSlot.LOCATION) == IN_SEGMENT
        segments = self._segments if is_segment else self._inline
        data = segment_at(self._buffer, segments, reference.u32(DelegateDataSlot.INDEX))
        return Delegate(entry.text(DelegateSlot.BACKEND), data)

    def _check_ids(self, plan: ExecutionPlan) -> None:
        ids = [*plan.inputs, *plan.outputs]
        for call in plan.instructions:
            ids += (call.source, call.destination) if isinstance(call, MoveCall) else call.args
            if isinstance(call, DelegateCall) and not 0 <= call.delegate < len(plan.delegates):
                raise self._buffer.fault(f"delegate {call.delegate} is called, which it lacks")
        if any(not 0 <= value_id < len(plan.values) for value_id in ids):
            raise self._buffer.fault(f"method '{plan.name}' refers to a value that it lacks")


_PLAIN_VALUES: dict[int, Callable[[Table], EValue]] = {
    MethodValueKind.NULL: lambda table: None,
    MethodValueKind.INT: lambda table: table.i64(ITEM),
    MethodValueKind.BOOL: lambda table: table.boolean(ITEM),
    MethodValueKind.DOUBLE: lambda table: table.f64(ITEM),
    MethodValueKind.STRING: lambda table: table.text(ITEM),
    MethodValueKind.INT_LIST: lambda table: table.i64s(ITEM),
    MethodValueKind.DOUBLE_LIST: lambda table: table.f64s(ITEM),
    MethodValueKind.BOOL_LIST: lambda table: table.booleans(ITEM),
}


def _operator(table: Table) -> str:
    name, overload = table.text(OperatorSlot.NAME), table.text(OperatorSlot.OVERLOAD)
    return f"{name}.{overload}" if overload else name


# Segments and named data, of .pte and .ptd files alike -------------------------------------------


def read_segments(
    buffer: FlatBuffer, tables: list[Table], base: int, file_size: int
) -> tuple[Segment, ...]:
    """Return the segments: inside the file, after the flatbuffer, and apart.

    Empty ones are nowhere.
    """
    segments = tuple(
        Segment(base + table.u64(SegmentSlot.OFFSET), size)
        if (size := table.u64(SegmentSlot.SIZE))
        else Segment(0, 0)
        for table in tables
    )
    end = buffer.size
    for segment in sorted((s for s in segments if s.size), key=lambda s: s.offset):
        if segment.offset < end:
            raise buffer.fault(f"the segment at {segment.offset} begins inside what is before it")
        end = segment.offset + segment.size
        if end > file_size:
            raise PteError(
                f"{buffer.what} is cut short: it has {file_size} bytes, and a segment ends at {end}"
            )
    return segments


def read_named(
    buffer: FlatBuffer, tables: list[Table], segments: tuple[Segment, ...]
) -> dict[str, Segment]:
    """Return the named data by key."""
    return {
        table.text(NamedDataSlot.KEY): segment_at(
            buffer, segments, table.u32(NamedDataSlot.SEGMENT)
        )
        for table in tables
    }


def segment_at(buffer: FlatBuffer, segments: tuple[Segment, ...], at: int) -> Segment:
    """PteError where the file has none of that number."""
    if at >= len(segments):
        raise buffer.fault(f"it refers to the piece of data {at}, and has {len(segments)}")
    return segments[at]
