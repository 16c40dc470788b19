"""A sound file written by hand, and the lies that can be told in one."""

import struct
from collections.abc import Callable
from typing import Any

from tests.pte.written import (
    Scalar,
    Table,
    Vector,
    call_delegate,
    call_kernel,
    delegate,
    f32,
    flatbuffer,
    integer,
    method,
    move,
    ptd,
    pte,
    tensor,
    u8,
    u32,
    union,
    vk_bytes,
    vk_call,
    vk_graph,
    vk_int,
    vk_list,
    vk_named,
    vk_tensor,
)

ADD = "aten.add.Tensor"


def graph(**changed: Any) -> bytes:
    """Write a delegate's graph of x + weights, f32 [4]."""
    parts: dict[str, Any] = {
        "values": [
            vk_tensor("f32", 4),
            vk_tensor("f32", 4, constant=0),
            vk_int(1),
            vk_tensor("f32", 4),
        ],
        "chain": [vk_call(ADD, 0, 1, 2, 3)],
        "inputs": [0],
        "outputs": [3],
        "constants": [vk_named("key", 16)],
    }
    return vk_graph(**{**parts, **changed})


def plan(**changed: Any) -> Table:
    parts: dict[str, Any] = {
        "name": "forward",
        "values": [tensor("f32", 4), tensor("f32", 4)],
        "inputs": [0],
        "outputs": [1],
        "calls": [call_delegate(0, 0, 1)],
        "delegates": [delegate(0)],
    }
    return method(**{**parts, **changed})


def file(blob: bytes | None = None, **changed: Any) -> bytes:
    parts: dict[str, Any] = {
        "methods": [plan()],
        "segments": [graph() if blob is None else blob, f32(1, 2, 3, 4)],
        "named": {"key": 1},
    }
    return pte(**{**parts, **changed})


def patch_bytes(data: bytes, at: int, form: str, value: Any) -> bytes:
    changed = bytearray(data)
    struct.pack_into(form, changed, at, value)
    return bytes(changed)


def with_graph(root: Table) -> bytes:
    """Write a sound file around a delegate's graph that need not be."""
    data = flatbuffer(root, b"VK00")
    header = struct.pack("<4x4sHIIIQ", b"VH00", 30, 32, len(data), 32 + len(data), 0)
    return file(header.ljust(32, b"\0") + data)


def values_of(*values: Table) -> bytes:
    return with_graph(Table({2: list(values)}))


SOUND = file()
PROGRAM_SIZE_AT, SEGMENT_BASE_AT = 16, 24
BLOB_AT = struct.unpack_from("<Q", SOUND, SEGMENT_BASE_AT)[0]

SOUND_PTD = ptd([f32(1, 2, 3, 4)], {"key": 0})

LIES: dict[str, tuple[Callable[[], bytes], str]] = {
    # The file
    "empty": (lambda: b"", "is not a .pte file"),
    "another format": (lambda: b"PK\x03\x04" + bytes(100), "is not a .pte file"),
    "an identifier of another version": (
        lambda: patch_bytes(SOUND, 4, "4s", b"ET13"),
        "is not a .pte file",
    ),
    "cut after the head": (lambda: SOUND[:20], "cut short|damaged"),
    "cut in the program": (lambda: SOUND[:200], "cut short"),
    "cut in a segment": (lambda: SOUND[:-1], "cut short"),
    "a program longer than the file": (
        lambda: patch_bytes(SOUND, PROGRAM_SIZE_AT, "<Q", 2**63),
        "cut short",
    ),
    "a program of nothing": (lambda: patch_bytes(SOUND, PROGRAM_SIZE_AT, "<Q", 0), "cut short"),
    "a header of nothing": (lambda: patch_bytes(SOUND, 12, "<I", 0), "extended header"),
    "segments inside the program": (
        lambda: patch_bytes(SOUND, SEGMENT_BASE_AT, "<Q", 0),
        "begins inside",
    ),
    "segments past the end": (
        lambda: patch_bytes(SOUND, SEGMENT_BASE_AT, "<Q", 2**64 - 1),
        "cut short",
    ),
    "segments that overlap": (lambda: file(moved={1: (16, 16)}), "begins inside"),
    "a segment of 2^64 bytes": (lambda: file(moved={1: (2**64 - 8, 2**64 - 8)}), "cut short"),
    "named data in no segment": (lambda: file(named={"key": 7}), "piece of data 7"),
    "a root outside": (lambda: patch_bytes(SOUND, 0, "<I", 2**32 - 1), "outside its"),
    # Tables and vectors
    "a vtable before the file": (
        lambda: values_of(Table({0: u8(1), 1: Table()}, vtable_at=-5)),
        "outside its",
    ),
    "a vtable after the file": (
        lambda: values_of(Table({0: u8(1), 1: Table()}, vtable_at=2**20)),
        "outside its",
    ),
    "a vtable longer than the file": (
        lambda: values_of(Table({0: u8(1), 1: Table()}, vtable_size=65534)),
        "outside its",
    ),
    "a vtable of odd length": (
        lambda: values_of(Table({0: u8(1), 1: Table()}, vtable_size=7)),
        "vtable",
    ),
    "a vtable of nothing": (
        lambda: values_of(Table({0: u8(1), 1: Table()}, vtable_size=0)),
        "vtable",
    ),
    "a table longer than the file": (
        lambda: values_of(Table({0: u8(1), 1: Table()}, table_size=65535)),
        "outside its",
    ),
    "a field outside its table": (
        lambda: values_of(Table({0: u8(1), 1: Table()}, moved={1: 200})),
        "field 1",
    ),
    "a field in the vtable's offset": (
        lambda: values_of(Table({0: u8(1), 1: Table()}, moved={1: 2})),
        "field 1",
    ),
    "an offset past the end": (
        lambda: values_of(Table({0: u8(1), 1: u32(2**32 - 1)})),
        "outside its",
    ),
    "a vector longer than the file": (
        lambda: values_of(union(6, {0: Vector("q", [1], claimed=2**32 - 1)})),
        "outside its",
    ),
    "a table as a string": (
        lambda: with_graph(Table({1: [Table({1: b"\xff\xfe\xfd"})]})),
        "is not UTF-8",
    ),
    "a union without a value": (lambda: values_of(Table({0: u8(2)})), "no value"),
    "a table that holds itself": (
        lambda: values_of(Table({0: u8(9), 1: Scalar("I", 2**32 - 20)})),
        "outside its",
    ),
    "an unknown kind of value": (lambda: values_of(union(12, {})), "unknown kind 12"),
    "an unknown kind of instruction": (
        lambda: file(methods=[plan(calls=[union(9, {})])]),
        "unknown kind 9",
    ),
    "an unknown kind of method's value": (
        lambda: file(methods=[plan(values=[union(99, {})] * 2)]),
        "unknown kind 99",
    ),
    "too many dims": (lambda: values_of(vk_tensor("f32", *[2] * 9)), "9 dims"),
    "too many dims of an input": (
        lambda: file(methods=[plan(values=[tensor("f32", *[2] * 9)] * 2)]),
        "impossible dims",
    ),
    "dims below 0": (
        lambda: file(methods=[plan(values=[tensor("f32", -4)] * 2)]),
        "impossible dims",
    ),
    "a tensor that begins elsewhere": (
        lambda: file(methods=[plan(values=[union(5, {1: Scalar("i", 4), 2: Vector("i", [4])})])]),
        "begins elsewhere",
    ),
    # The method
    "two methods of one name": (lambda: file(methods=[plan(), plan()]), "same name"),
    "an input that is not a value": (
        lambda: file(methods=[plan(inputs=[5])]),
        "a value that it lacks",
    ),
    "an output below 0": (lambda: file(methods=[plan(outputs=[-1])]), "a value that it lacks"),
    "a delegate that is not there": (
        lambda: file(methods=[plan(calls=[call_delegate(3, 0, 1)])]),
        "delegate 3",
    ),
    "a delegate without data": (
        lambda: file(methods=[plan(delegates=[Table({0: "VulkanBackend"})])]),
        "a delegate has no data",
    ),
    "two chains": (
        lambda: file(methods=[Table({**plan().fields, 5: [*plan().fields[5]] * 2})]),
        "method 'forward' has 2 chains, not one",
    ),
    "a delegate in no segment": (
        lambda: file(methods=[plan(delegates=[delegate(9)])]),
        "piece of data 9",
    ),
    "an operator that is not there": (
        lambda: file(methods=[plan(calls=[call_kernel(2, 0, 1)])]),
        "operator 2",
    ),
    "too few arguments": (
        lambda: file(methods=[plan(calls=[call_delegate(0, 0)])]),
        "called with 1 values",
    ),
    "a delegate called twice": (
        lambda: file(methods=[plan(calls=[call_delegate(0, 0, 1)] * 2)]),
        "twice",
    ),
    "an output that nothing computes": (lambda: file(methods=[plan(calls=[])]), "nothing computes"),
    "a move from nowhere": (
        lambda: file(methods=[plan(calls=[move(1, 0), call_delegate(0, 0, 1)])]),
        "nothing computes",
    ),
    "a copy_ of numbers": (
        lambda: file(
            methods=[
                plan(
                    values=[tensor("f32", 4), tensor("f32", 4), integer(1)],
                    calls=[call_delegate(0, 0, 1), call_kernel(0, 2, 2, 2, 2)],
                    operators=["aten::copy_"],
                )
            ]
        ),
        "unknown form",
    ),
    "a move of a number to a tensor": (
        lambda: file(
            methods=[
                plan(
                    values=[tensor("f32", 4), tensor("f32", 4), integer(1)],
                    calls=[call_delegate(0, 0, 1), move(2, 1)],
                )
            ]
        ),
        "where another kind is",
    ),
    "a move of a tensor to a wider one": (
        lambda: file(
            methods=[
                plan(
                    values=[tensor("f32", 4), tensor("f32", 4), tensor("f32", 1, 4)],
                    calls=[call_delegate(0, 0, 1), move(1, 2)],
                )
            ]
        ),
        "where another kind is",
    ),
    "a number for a tensor": (
        lambda: file(methods=[plan(values=[integer(1), tensor("f32", 4)])]),
        "not of one kind",
    ),
    "other dims than the delegate's": (
        lambda: file(methods=[plan(values=[tensor("f32", 5), tensor("f32", 4)])]),
        r"\[4\] in the delegate and \[5\]",
    ),
    "another dtype than the delegate's": (
        lambda: file(methods=[plan(values=[tensor("i32", 4), tensor("f32", 4)])]),
        "f32 in the delegate and int32",
    ),
    "a constant method with a stranger": (
        lambda: file(methods=[plan(), method("get", [tensor("f32", 4, buffer=3)], [], [0])]),
        "neither a number, a text nor a small tensor",
    ),
    "a constant method with the tensor after the last": (
        lambda: file(
            methods=[plan(), method("get", [tensor("f32", 4, buffer=2)], [], [0])],
            constants=(1, [0, 0]),
        ),
        "neither a number, a text nor a small tensor",
    ),
    "a constant method with a large tensor": (
        lambda: pte(
            [method("get", [tensor("f32", 300_000, buffer=1)], [], [0])],
            [bytes(1_200_000)],
            constants=(0, [0, 0]),
        ),
        "a tensor of 1.2 MB; at most 1.0 MB are read; export the model without",
    ),
    "a constant method with a tensor of an unknown type": (
        lambda: file(
            methods=[
                plan(),
                method(
                    "get",
                    [union(5, {0: Scalar("b", 15), 2: Vector("i", [4]), 5: u32(1)})],
                    [],
                    [0],
                ),
            ],
            constants=(1, [0, 0]),
        ),
        "neither a number, a text nor a small tensor",
    ),
    # The delegate
    "another blob": (lambda: file(b"nothing that we know of, at all"), "VH00"),
    "a blob of nothing": (lambda: file(b""), "VH00"),
    "a blob's graph outside": (
        lambda: patch_bytes(SOUND, BLOB_AT + 14, "<I", 2**31),
        "lies outside",
    ),
    "a blob's data outside": (
        lambda: patch_bytes(SOUND, BLOB_AT + 22, "<Q", 2**63),
        "lies outside",
    ),
    "another graph": (lambda: patch_bytes(SOUND, BLOB_AT + 36, "4s", b"VK99"), "VK99"),
    "an input outside the graph": (lambda: file(graph(inputs=[99])), "no value 99"),
    "an output outside the graph": (lambda: file(graph(outputs=[2**31])), "no value 2147483648"),
    "an input twice": (
        lambda: file(graph(inputs=[0, 0]), methods=[plan(calls=[call_delegate(0, 0, 0, 1)])]),
        "twice among the inputs",
    ),
    "a constant as an input": (lambda: file(graph(inputs=[1])), "a constant"),
    "an op without arguments": (lambda: file(graph(chain=[vk_call(ADD)])), "no arguments"),
    "an argument outside the graph": (
        lambda: file(graph(chain=[vk_call(ADD, 0, 1, 2, 77)])),
        "value 77",
    ),
    "a prepack of what is not there": (
        lambda: file(graph(chain=[vk_call("et_vk.prepack.default", 1, -9)])),
        "value -9",
    ),
    "ops in a circle": (
        lambda: file(
            graph(
                values=[*[vk_tensor("f32", 4)] * 3, vk_int(1)],
                chain=[vk_call(ADD, 0, 2, 3, 1), vk_call(ADD, 0, 1, 3, 2)],
                outputs=[2],
            )
        ),
        "before any op has produced it",
    ),
    "a list in a list": (
        lambda: file(
            graph(values=[vk_tensor("f32", 4), vk_list(2), vk_list(0), vk_tensor("f32", 4)])
        ),
        "lists do not nest",
    ),
    "a result that is written twice": (
        lambda: file(graph(chain=[vk_call(ADD, 0, 1, 2, 3)] * 2)),
        "not its own",
    ),
    # Constants
    "a constant after the end of its segment": (
        lambda: file(constants=(1, [0, 17])),
        "a constant lies at 17 of 16 bytes",
    ),
    "a constant that is not there": (
        lambda: file(graph(constants=[])),
        "constant 0, and the delegate has 0",
    ),
    "a constant of another length": (
        lambda: file(graph(constants=[vk_named("key", 12)])),
        "16 bytes, and its constant has 12",
    ),
    "a segment shorter than its constant": (
        lambda: file(segments=[graph(), f32(1)]),
        "has 4 bytes, not 16",
    ),
    "a constant outside the blob": (
        lambda: file(graph(constants=[vk_bytes(2**63, 16)])),
        "lie outside",
    ),
    "a constant with neither place nor key": (
        lambda: file(graph(constants=[vk_named("", 16)])),
        "neither a place nor a key",
    ),
    "a constant without its data": (
        lambda: file(named={}),
        r"1 constants, one of which is key; .*\.ptd",
    ),
}
