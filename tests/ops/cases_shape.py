"""Views, copies and tensors made from numbers: live sizes from lists, SymInts and dims."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from py_runtime.base.dtypes import BOOL, F32, I32, I64
from py_runtime.program.writer import ProgramWriter, Ref
from tests.golden import EXACT, Case
from tests.ops.op_cases import Row, case_of

END = 2**63 - 1  # what exporters write for "to the end"


def cases() -> Iterator[Case]:
    yield from views()
    yield from rearrangements()
    yield from selections()
    yield from slices()
    yield from splits()
    yield from joins()
    yield from paddings()
    yield from creations()


def numbers(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.arange(torch.Size(shape).numel()).reshape(shape).to(dtype)


def calls_of(*shapes: tuple[int, ...]) -> list[Any]:
    return [(numbers(*shape),) for shape in shapes]


def views() -> Iterator[Case]:
    # U4: max [4, 8, 16] at dim 1 = 4 is [4, 4, 16], because the size list says so.
    for name in ("aten.view_copy.default", "aten.view.default"):
        rows = [
            Row(name, lambda x, s: [x, [4, s, 16]], lambda x, s: x.view(4, s, 16)),
            Row(name, lambda x, s: [x, [4, -1, 16]], lambda x, s: x.view(4, -1, 16)),
            Row(name, lambda x, s: [x, [s, 64]], lambda x, s: x.view(s, 64)),
            Row(name, lambda x, s: [x, [-1]], lambda x, s: x.view(-1)),
        ]
        calls = [(numbers(4 * s * 16), s) for s in (8, 4, 1, 8)]
        yield case_of(f"{name} by its size list", rows, calls, EXACT)
    shapes = [(1, 33, 1, 5), (1, 1, 1, 5), (1, 7, 1, 5), (1, 33, 1, 5)]
    rows = [
        Row("aten.squeeze_copy.dims", lambda x: [x, [0, 2]], lambda x: x.view(-1, 5)),
        # A dim that is 1 at this call only stays.
        Row("aten.squeeze.dims", lambda x: [x, [0, 1, -2]], lambda x: x.view(-1, 5)),
        Row("aten.squeeze.dim", lambda x: [x, -2], lambda x: x.squeeze(2)),
        Row("aten.unsqueeze_copy.default", lambda x: [x, 1], lambda x: x.unsqueeze(1)),
        Row("aten.unsqueeze.default", lambda x: [x, -1], lambda x: x.unsqueeze(-1)),
        Row("aten.clone.default", lambda x: [x, None], lambda x: x),
        Row("aten.alias_copy.default", lambda x: [x], lambda x: x),
        Row("et_vk.prepack.default", lambda x: [x], lambda x: x),
        Row("dim_order_ops._clone_dim_order.default", lambda x: [x, False, None], lambda x: x),
        Row("aten._unsafe_view.default", lambda x: [x, [-1, 5]], lambda x: x.view(-1, 5)),
        Row("aten.reshape.default", lambda x: [x, [5, -1]], lambda x: x.reshape(5, -1)),
    ]
    yield case_of("squeeze, unsqueeze and clone", rows, calls_of(*shapes), EXACT)
    yield view_with_loose_bounds()
    yield view_of_a_view()


def view_with_loose_bounds() -> Case:
    """Declare an output larger than its source, which cannot share the bytes: it is copied."""
    writer = ProgramWriter()
    x = writer.input("x", (6, 4), F32, dynamic=(0,))
    out = writer.tensor((30, 2), F32)
    writer.op("aten.view_copy.default", x, [-1, 2], out)
    writer.output(out)
    case = Case("view that cannot share", writer, EXACT)
    for rows in (6, 1, 5, 6):
        data = numbers(rows, 4)
        case.call([data], [data.view(-1, 2)])
    return case


def view_of_a_view() -> Case:
    """View an intermediate, and read it after its last other use."""
    writer = ProgramWriter()
    x = writer.input("x", (8, 6), F32, dynamic=(0,))
    doubled, halves = writer.tensor((8, 6), F32), writer.tensor((8, 2, 3), F32)
    flat, out = writer.tensor((48,), F32), writer.tensor((48,), F32)
    other = writer.tensor((8, 6), F32)
    writer.op("aten.mul.Tensor", x, 2.0, doubled)
    writer.op("aten.view_copy.default", doubled, [-1, 2, 3], halves)
    writer.op("aten.view_copy.default", halves, [-1], flat)
    writer.op("aten.mul.Tensor", x, 5.0, other)
    writer.op("aten.add.Tensor", flat, 1, 1, out)
    writer.output(out, other, halves)
    case = Case("view of a view", writer, EXACT)
    for rows in (8, 3, 8):
        data = numbers(rows, 6)
        case.call([data], [(data * 2 + 1).view(-1), data * 5, (data * 2).view(-1, 2, 3)])
    return case


def rearrangements() -> Iterator[Case]:
    rows = [
        Row("aten.permute.default", lambda x: [x, [2, 0, 1]], lambda x: x.permute(2, 0, 1)),
        Row("aten.permute_copy.default", lambda x: [x, [0, -1, 1]], lambda x: x.permute(0, 2, 1)),
        Row("aten.permute_copy.default", lambda x: [x, [0, 1, 2]], lambda x: x),
        Row("aten.transpose.int", lambda x: [x, 0, -1], lambda x: x.transpose(0, -1)),
        Row("aten.transpose_copy.int", lambda x: [x, 1, 0], lambda x: x.transpose(0, 1)),
        Row("aten.flip.default", lambda x: [x, [0, -1]], lambda x: x.flip(0, -1)),
        Row("aten.flip.default", lambda x: [x, [1]], lambda x: x.flip(1)),
        Row("aten.repeat.default", lambda x: [x, [2, 1, 3]], lambda x: x.repeat(2, 1, 3)),
        Row("aten.repeat.default", lambda x: [x, [2, 1, 2, 2]], lambda x: x.repeat(2, 1, 2, 2)),
    ]
    shapes = [(3, 33, 5), (3, 7, 5), (3, 1, 5), (3, 33, 5)]
    yield case_of("permute, flip and repeat", rows, calls_of(*shapes), EXACT)
    for dtype in (torch.int64, torch.int32, torch.bool):
        calls = [(numbers(3, n, 2).remainder(5).to(dtype),) for n in (5, 1, 5)]
        yield case_of(f"permute {dtype}".replace("torch.", ""), rows, calls, EXACT)
    eight = (2, 1, 3, 2, 1, 2, 3, 2)
    order = [7, 0, 6, 2, 5, 1, 3, 4]
    rows = [Row("aten.permute.default", lambda x: [x, order], lambda x: x.permute(order))]
    yield case_of("permute eight dims", rows, calls_of(eight), EXACT)
    rows = [
        Row(
            "aten.expand_copy.default",
            lambda x, s: [x, [4, -1, s, 5], False],
            lambda x, s: x.expand(4, -1, s, 5),
        ),
        Row("aten.repeat.default", lambda x, s: [x, [s, 1, 2]], lambda x, s: x.repeat(s, 1, 2)),
    ]
    by_symint = [(numbers(n, 1, 5), s) for n, s in ((3, 6), (1, 6), (3, 1), (2, 4), (3, 6))]
    yield case_of("expand and repeat by SymInts", rows, by_symint, EXACT)


def selections() -> Iterator[Case]:
    rows = [
        Row("aten.select_copy.int", lambda x, s: [x, 1, -1], lambda x, s: x.select(1, -1)),
        Row("aten.select_copy.int", lambda x, s: [x, 0, 2], lambda x, s: x.select(0, 2)),
        Row("aten.select_copy.int", lambda x, s: [x, -1, 0.0], lambda x, s: x.select(-1, 0)),
        Row("aten.select.int", lambda x, s: [x, 1, s], lambda x, s: x.select(1, s)),
    ]
    pairs = ((33, 32), (33, 0), (33, -1), (7, 6), (7, -7), (1, 0), (33, 32))
    yield case_of("select", rows, [(numbers(3, n, 5), s) for n, s in pairs], EXACT)
    rows = [Row("aten.select_copy.int", lambda x: [x, 0, 1], lambda x: x[1])]
    yield case_of("select from a vector", rows, calls_of((4,), (2,)), EXACT)


def slices() -> Iterator[Case]:
    def fixed(start: Any, end: Any, step: int) -> Row:
        stop = None if end is None else int(end)
        return Row(
            "aten.slice_copy.Tensor",
            lambda x: [x, -2, start, end, step],
            lambda x: x[:, slice(None if start is None else int(start), stop, step)],
        )

    rows = [
        fixed(None, None, 1),
        fixed(0, END, 1),
        fixed(-3, END, 1),
        fixed(0.0, 2.0, 1),
        fixed(1, -1, 1),
        fixed(1, 100, 2),
        fixed(-100, 5, 3),
    ]
    shapes = [(3, 33, 5), (3, 7, 5), (3, 3, 5), (3, 33, 5)]
    yield case_of("slice", rows, calls_of(*shapes), EXACT)
    rows = [
        Row("aten.slice_copy.Tensor", lambda x, s, e: [x, 0, s, e, 1], lambda x, s, e: x[s:e]),
        Row("aten.slice.Tensor", lambda x, s, e: [x, 0, s, END, 2], lambda x, s, e: x[s::2]),
        Row("aten.slice.Tensor", lambda x, s, e: [x, 0, None, e, 1], lambda x, s, e: x[:e]),
    ]
    table = numbers(64, 6)
    spans = ((0, 64), (0, 16), (16, 32), (48, 64), (63, 64), (-8, -2), (60, 99), (0, 64))
    yield case_of("slice by SymInts", rows, [(table, s, e) for s, e in spans], EXACT)
    yield rotary_rows()


def rotary_rows() -> Case:
    """Rows [position, position + S) of a table, S and position live: prefill, then decode."""
    writer = ProgramWriter()
    x = writer.input("x", (1, 48, 4), F32, dynamic=(1,))
    position = writer.symint_input("position")
    table = numbers(64, 2)
    stored = writer.constant("table", table.numpy())
    length, end = writer.symint("length"), writer.symint("end")
    out = writer.tensor((48, 2), F32)
    writer.op("sym_size.int", x, 1, length)
    writer.op("add", position, length, end)
    writer.op("aten.slice_copy.Tensor", stored, 0, position, end, 1, out)
    writer.output(out)
    case = Case("slice of a table at live positions", writer, EXACT)
    for start, count in ((0, 48), (48, 1), (49, 1), (63, 1), (16, 32), (0, 48)):
        case.call([np.zeros((1, count, 4), np.float32), start], [table[start : start + count]])
    return case


def splits() -> Iterator[Case]:
    rows = [
        Row(
            "aten.split_with_sizes_copy.default",
            lambda x, s: [x, [2, 1, 4], -1],
            lambda x, s: x.split([2, 1, 4], -1),
        ),
        Row(
            "aten.split_with_sizes.default",
            lambda x, s: [x, [1, s], 1],
            lambda x, s: x.split([1, s], 1),
        ),
    ]
    calls = [(numbers(3, s + 1, 7), s) for s in (32, 5, 1, 32)]
    yield case_of("split", rows, calls, EXACT)


def joins() -> Iterator[Case]:
    rows = [
        Row("aten.cat.default", lambda a, b, c: [[a, b], 1], lambda a, b, c: torch.cat([a, b], 1)),
        Row("aten.cat.default", lambda a, b, c: [[c, a], -1], lambda a, b, c: torch.cat([c, a], 2)),
        Row("aten.cat.default", lambda a, b, c: [[a, c], 0], lambda a, b, c: torch.cat([a, c])),
        Row("aten.cat.default", lambda a, b, c: [[b], 0], lambda a, b, c: b),
        Row(
            "aten.cat.default",
            lambda a, b, c: [[a, b, a, c], 1],
            lambda a, b, c: torch.cat([a, b, a, c], 1),
        ),
    ]
    calls = [
        (numbers(2, n, 5), numbers(2, m, 5) + 0.5, -numbers(2, n, 5))
        for n, m in ((33, 3), (1, 1), (5, 2), (33, 3))
    ]
    yield case_of("cat", rows, calls, EXACT)
    calls = [(a.long(), b.long(), c.long()) for a, b, c in calls]
    yield case_of("cat of integers", rows, calls, EXACT)


def paddings() -> Iterator[Case]:
    rows = [
        Row(
            "aten.constant_pad_nd.default",
            lambda x, pad=pad, value=value: [x, pad, value],
            lambda x, pad=pad, value=value: torch.constant_pad_nd(x, pad, value),
        )
        for pad, value in (
            ([1, 2], 0),
            ([0, 0, 3, 0], 1.5),
            ([-1, 2, 1, -1], -2),
            ([1, 1, 0, 0, 2, 1], 7),
        )
    ]
    shapes = [(3, 33, 5), (3, 2, 5), (3, 33, 5)]
    yield case_of("pad", rows, calls_of(*shapes), EXACT)
    calls = [(numbers(2, n, 5).long(),) for n in (4, 2, 4)]
    integer_rows = [rows[0], rows[2], rows[3]]
    yield case_of("pad integers", integer_rows, calls, EXACT)


def creations() -> Iterator[Case]:
    writer = ProgramWriter()
    x = writer.input("x", (2, 16, 3), F32, dynamic=(1,))
    length = writer.symint("length")
    writer.op("sym_size.int", x, 1, length)
    goldens: list[Any] = []

    def made(op: str, *args: Any, dims: tuple[int, ...], dtype: Any, golden: Any) -> Ref:
        out = writer.tensor(dims, dtype)
        writer.op(op, *args, out)
        writer.output(out)
        goldens.append(golden)
        return out

    options = [None] * 4
    live, most = [2, length, 3], (2, 16, 3)
    minus_infinity = float("-inf")
    made(
        "aten.full.default",
        live,
        2.5,
        *options,
        dims=most,
        dtype=F32,
        golden=lambda x: torch.full_like(x, 2.5),
    )
    made(
        "aten.full.default",
        [4, length],
        minus_infinity,
        *options,
        dims=(4, 16),
        dtype=F32,
        golden=lambda x: torch.full((4, x.shape[1]), minus_infinity),
    )
    made(
        "aten.full.default",
        [3],
        True,
        *options,
        dims=(3,),
        dtype=BOOL,
        golden=lambda x: torch.full((3,), True),
    )
    made(
        "aten.full.default",
        [3],
        -7,
        *options,
        dims=(3,),
        dtype=I64,
        golden=lambda x: torch.full((3,), -7),
    )
    made(
        "aten.full.default",
        [length],
        length,
        *options,
        dims=(16,),
        dtype=I64,
        golden=lambda x: torch.full((x.shape[1],), x.shape[1]),
    )
    made(
        "aten.zeros.default",
        live,
        *options,
        dims=most,
        dtype=I32,
        golden=lambda x: torch.zeros_like(x).int(),
    )
    made("aten.ones.default", live, *options, dims=most, dtype=F32, golden=torch.ones_like)
    made(
        "aten.full_like.default",
        x,
        -3,
        *options,
        None,
        dims=most,
        dtype=F32,
        golden=lambda x: torch.full_like(x, -3),
    )
    made(
        "aten.zeros_like.default", x, *options, None, dims=most, dtype=F32, golden=torch.zeros_like
    )
    made(
        "aten.ones_like.default",
        x,
        *options,
        None,
        dims=most,
        dtype=I64,
        golden=lambda x: torch.ones_like(x).long(),
    )
    made(
        "aten.scalar_tensor.default",
        1.25,
        *options,
        dims=(),
        dtype=F32,
        golden=lambda x: torch.tensor(1.25),
    )
    made(
        "aten.arange.start_step",
        0,
        length,
        1,
        *options,
        dims=(16,),
        dtype=I64,
        golden=lambda x: torch.arange(x.shape[1]),
    )
    made(
        "aten.arange.start_step",
        10,
        0,
        -3,
        *options,
        dims=(4,),
        dtype=I32,
        golden=lambda x: torch.arange(10, 0, -3, dtype=torch.int32),
    )
    made(
        "aten.arange.start_step",
        0.5,
        3.0,
        0.25,
        *options,
        dims=(10,),
        dtype=F32,
        golden=lambda x: torch.arange(0.5, 3.0, 0.25),
    )
    case = Case("full, zeros, ones and arange", writer, EXACT)
    for size in (16, 5, 1, 16):
        data = numbers(2, size, 3)
        case.call([data], [golden(data) for golden in goldens])
    yield case
