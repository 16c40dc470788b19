"""A writer of .pte and .ptd files by hand, byte for byte: sound ones, and ones that lie."""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

ALIGNED = 128  # segments


# Flatbuffers -------------------------------------------------------------------------------------


@dataclass
class Scalar:
    form: str  # as in struct
    value: Any


@dataclass
class Vector:
    """A vector of scalars; `claimed` is a length that it does not have."""

    form: str
    items: Sequence[Any]
    claimed: int | None = None


@dataclass
class Table:
    """A table's fields by slot: a Scalar, or an object that lies elsewhere (a table, text, ...).

    The others are lies: other sizes than it has, fields at other places than theirs.
    """

    fields: Mapping[int, Any] = field(default_factory=dict)
    vtable_size: int | None = None
    table_size: int | None = None
    moved: Mapping[int, int] = field(default_factory=dict)  # slot → offset
    vtable_at: int | None = None


def flatbuffer(root: Table, identifier: bytes, reserved: int = 0) -> bytes:
    """Write a flatbuffer, with room for a header after the identifier.

    Objects come in the order they are met; one that stands in two places is written once.
    """
    out = bytearray(8 + reserved)
    out[4:8] = identifier
    places: dict[int, int] = {}
    pending: list[tuple[int, Any]] = [(0, root)]  # (place of the offset, object)
    while pending:
        at, item = pending.pop(0)
        if id(item) not in places:
            places[id(item)] = _append(out, item, pending)
        struct.pack_into("<I", out, at, places[id(item)] - at)
    return bytes(out)


def _append(out: bytearray, item: Any, pending: list[tuple[int, Any]]) -> int:
    if isinstance(item, Table):
        return _append_table(out, item, pending)
    position = len(out)
    if isinstance(item, str | bytes):
        data = item.encode() if isinstance(item, str) else item
        out += struct.pack("<I", len(data)) + data + b"\0"
    elif isinstance(item, Vector):
        count = len(item.items) if item.claimed is None else item.claimed
        out += struct.pack("<I", count)
        out += struct.pack(f"<{len(item.items)}{item.form}", *item.items)
    else:
        out += struct.pack("<I", len(item)) + bytes(4 * len(item))
        pending += [(position + 4 + 4 * at, entry) for at, entry in enumerate(item)]
    return position


def _append_table(out: bytearray, table: Table, pending: list[tuple[int, Any]]) -> int:
    body, offsets = bytearray(4), {}
    for slot, value in table.fields.items():
        offsets[slot] = len(body)
        body += (
            struct.pack("<" + value.form, value.value) if isinstance(value, Scalar) else bytes(4)
        )
    slots = max(offsets, default=-1) + 1
    vtable_at = len(out)
    out += struct.pack(
        f"<{2 + slots}H",
        4 + 2 * slots if table.vtable_size is None else table.vtable_size,
        len(body) if table.table_size is None else table.table_size,
        *({**offsets, **table.moved}.get(slot, 0) for slot in range(slots)),
    )
    position = len(out)
    back_to = vtable_at if table.vtable_at is None else table.vtable_at
    out += struct.pack("<i", position - back_to) + body[4:]
    for slot, value in table.fields.items():
        if not isinstance(value, Scalar):
            pending.append((position + offsets[slot], value))
    return position


def u8(value: int) -> Scalar:
    return Scalar("B", value)


def i8(value: int) -> Scalar:
    return Scalar("b", value)


def i32(value: int) -> Scalar:
    return Scalar("i", value)


def u32(value: int) -> Scalar:
    return Scalar("I", value)


def i64(value: int) -> Scalar:
    return Scalar("q", value)


def u64(value: int) -> Scalar:
    return Scalar("Q", value)


def union(kind: int, fields: Mapping[int, Any]) -> Table:
    return Table({0: u8(kind), 1: Table(fields)})


# The program: values, calls, methods -------------------------------------------------------------

HOST_TYPES = {"u8": 0, "i8": 1, "i32": 3, "i64": 4, "f32": 6, "f64": 7, "bool": 11}


def tensor(dtype: str, *dims: int, dynamic: bool = False, buffer: int = 0) -> Table:
    return union(
        5,
        {
            0: i8(HOST_TYPES[dtype]),
            2: Vector("i", dims),
            5: u32(buffer),
            8: i8(int(dynamic)),
        },
    )


def integer(value: int) -> Table:
    return union(2, {0: i64(value)})


def call_kernel(operator: int, *args: int) -> Table:
    return union(1, {0: i32(operator), 1: Vector("i", args)})


def call_delegate(delegate: int, *args: int) -> Table:
    return union(2, {0: i32(delegate), 1: Vector("i", args)})


def move(source: int, target: int) -> Table:
    return union(3, {0: i32(source), 1: i32(target)})


def delegate(segment: int, backend: str = "VulkanBackend", inline: bool = False) -> Table:
    reference = Table({0: i8(0 if inline else 1), 1: u32(segment)})
    return Table({0: backend, 1: reference})


def method(
    name: str,
    values: Sequence[Table],
    inputs: Sequence[int],
    outputs: Sequence[int],
    calls: Sequence[Table] = (),
    delegates: Sequence[Table] = (),
    operators: Sequence[str] = (),
    output_spec: str = "",
) -> Table:
    return Table(
        {
            0: name,
            1: Table({1: output_spec}),
            2: list(values),
            3: Vector("i", inputs),
            4: Vector("i", outputs),
            5: [Table({2: list(calls)})],
            6: [Table({0: operator}) for operator in operators],
            7: list(delegates),
        }
    )


def pte(
    methods: Sequence[Table],
    segments: Sequence[bytes] = (),
    named: Mapping[str, int] | None = None,  # key → segment
    inline: Sequence[bytes | Scalar] = (),  # delegates; an offset may stand for one
    constants: tuple[int, Sequence[int]] | None = None,  # segment, offsets of tensors in it
    moved: Mapping[int, tuple[int, int]] | None = None,  # segment → a place and size that are lies
) -> bytes:
    places, data = _lay_out(segments)
    program = flatbuffer(
        Table(
            {
                1: list(methods),
                3: [Table({0: blob}) for blob in inline],
                4: _segment_tables({**dict(enumerate(places)), **(moved or {})}),
                7: [Table({0: key, 1: u32(at)}) for key, at in (named or {}).items()],
                **({} if constants is None else {5: _subsegments(*constants)}),
            }
        ),
        b"ET12",
        reserved=32,
    )
    base = -(-len(program) // ALIGNED) * ALIGNED
    header = struct.pack("<4sIQQQ", b"eh00", 32, len(program), base, len(data))
    return (program[:8] + header + program[40:]).ljust(base, b"\0") + data


def ptd(segments: Sequence[bytes], named: Mapping[str, int]) -> bytes:
    places, data = _lay_out(segments)
    table = flatbuffer(
        Table(
            {
                1: _segment_tables(dict(enumerate(places))),
                2: [Table({0: key, 1: u32(at)}) for key, at in named.items()],
            }
        ),
        b"FT01",
        reserved=48,
    )
    base = -(-len(table) // ALIGNED) * ALIGNED
    header = struct.pack("<4sIQQQQ", b"FH01", 40, 48, len(table) - 48, base, len(data))
    return (table[:8] + header.ljust(48, b"\0") + table[56:]).ljust(base, b"\0") + data


def _segment_tables(places: Mapping[int, tuple[int, int]]) -> list[Table]:
    return [Table({0: u64(places[at][0]), 1: u64(places[at][1])}) for at in sorted(places)]


def _subsegments(segment: int, offsets: Sequence[int]) -> Table:
    return Table({0: u32(segment), 1: Vector("Q", offsets)})


def _lay_out(segments: Sequence[bytes]) -> tuple[list[tuple[int, int]], bytes]:
    places, data = [], b""
    for segment in segments:
        data = data.ljust(-(-len(data) // ALIGNED) * ALIGNED, b"\0")
        places.append((len(data), len(segment)))
        data += segment
    return places, data


# The delegate ------------------------------------------------------------------------------------

GPU_TYPES = {"bool": 0, "u8": 1, "i8": 2, "i32": 3, "f16": 4, "f32": 5, "f64": 6, "i64": 7}
NAMED = 2**64 - 1


def vk_tensor(dtype: str, *dims: int, constant: int | None = -1) -> Table:
    """Write a tensor; a constant of None is left out of the file, which means constant 0."""
    fields = {0: i8(GPU_TYPES[dtype]), 1: Vector("I", dims), 3: i32(0)}
    return union(5, fields if constant is None else {**fields, 2: i32(constant)})


def vk_null() -> Table:
    return union(1, {})


def vk_int(value: int) -> Table:
    return union(2, {0: i64(value)})


def vk_double(value: float) -> Table:
    return union(3, {0: Scalar("d", value)})


def vk_bool(value: bool) -> Table:
    return union(4, {0: u8(value)})


def vk_ints(*values: int) -> Table:
    return union(6, {0: Vector("q", values)})


def vk_list(*ids: int) -> Table:
    return union(9, {0: Vector("i", ids)})


def vk_symint() -> Table:
    return union(11, {0: i32(0)})


def vk_call(name: str, *args: int) -> Table:
    return Table({0: u32(0), 1: name, 2: Vector("i", args)})


def vk_named(key: str, nbytes: int) -> Table:
    return Table({0: u64(NAMED), 1: u64(nbytes), 2: key})


def vk_bytes(offset: int, nbytes: int) -> Table:
    return Table({0: u64(offset), 1: u64(nbytes)})


def vk_graph(
    values: Sequence[Table],
    chain: Sequence[Table],
    inputs: Sequence[int],
    outputs: Sequence[int],
    constants: Sequence[Table] = (),
    data: bytes = b"",
) -> bytes:
    """Write a delegate's blob; `data` are its constants that are not named."""
    graph = flatbuffer(
        Table(
            {
                0: "0",
                1: list(chain),
                2: list(values),
                3: Vector("I", inputs),
                4: Vector("I", outputs),
                5: list(constants),
            }
        ),
        b"VK00",
    )
    bytes_at = 32 + -(-len(graph) // 16) * 16
    header = struct.pack("<4x4sHIIIQ", b"VH00", 30, 32, len(graph), bytes_at, len(data))
    return header.ljust(32, b"\0") + graph.ljust(bytes_at - 32, b"\0") + data


def f32(*values: float) -> bytes:
    return np.array(values, np.float32).tobytes()


# Whole files -------------------------------------------------------------------------------------


def doubled() -> bytes:
    """Write a delegate of x + x, f32 [4]."""
    values = [vk_tensor("f32", 4), vk_int(1), vk_tensor("f32", 4)]
    return vk_graph(values, [vk_call("aten.add.Tensor", 0, 0, 1, 2)], [0], [2])


def cut_at_a_symint() -> bytes:
    """Write a delegate of x[start:], x f32 [4], start a SymInt."""
    values = [
        vk_tensor("f32", 4),
        vk_symint(),
        vk_int(0),
        vk_int(4),
        vk_int(1),
        vk_tensor("f32", 4),
    ]
    return vk_graph(values, [vk_call("aten.slice_copy.Tensor", 0, 2, 1, 3, 4, 5)], [0, 1], [5])


def one_vector(graph: bytes, segments: Sequence[bytes] = (), **more: Any) -> bytes:
    """forward(x), f32 [4], by one delegate."""
    call = call_delegate(0, 0, 1)
    plan = method("forward", [tensor("f32", 4)] * 2, [0], [1], [call], [delegate(0)])
    return pte([plan], [graph, *segments], **more)
