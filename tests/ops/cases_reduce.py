"""Sums, means, extremes and softmax over any dims, on short rows and on rows that are cut."""

from collections.abc import Iterator
from typing import Any

import torch

from py_runtime.base.dtypes import F32, I64
from py_runtime.program.writer import ProgramWriter
from tests.golden import EXACT, Case
from tests.ops.op_cases import FLOATS, RELATIVE, Row, case_of

VOCABULARY = 49_152


def cases() -> Iterator[Case]:
    yield from sums()
    yield from integers()
    yield from places()
    yield from softmaxes()
    yield from large_grid()


def randn(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed + sum(shape)))


def reduce_rows(dims: Any, keepdim: bool) -> list[Row]:
    """`dims` null or empty means all."""
    kept = {"dim": dims or None, "keepdim": keepdim}
    return [
        Row("aten.sum.dim_IntList", lambda x: [x, dims, keepdim, None], lambda x: x.sum(**kept)),
        Row("aten.mean.dim", lambda x: [x, dims, keepdim, None], lambda x: x.mean(**kept)),
        *extreme_rows(dims, keepdim),
    ]


def extreme_rows(dims: Any, keepdim: bool) -> list[Row]:
    dims = dims or []
    return [
        Row(
            f"aten.{name}.default", lambda x: [x, dims, keepdim], lambda x, f=f: f(x, dims, keepdim)
        )
        for name, f in (("amax", torch.amax), ("amin", torch.amin))
    ]


def sums() -> Iterator[Case]:
    shapes = [(3, 33, 5), (3, 7, 5), (3, 1, 5), (3, 33, 5)]
    for dims, keepdim in (
        ([-1], True),
        ([0], False),
        ([1], True),
        ([1, 2], False),
        ([0, -1], True),  # apart: two passes
        ([], False),
        (None, True),
    ):
        calls = [(randn(*shape),) for shape in shapes]
        name = f"reduce dims {dims}{', kept' if keepdim else ''}"
        yield case_of(name, reduce_rows(dims, keepdim), calls, FLOATS)
    yield case_of("reduce no dims at all", reduce_rows(None, False), [(randn(),)], FLOATS)
    long = [(randn(*shape),) for shape in ((2, 3000, 3), (2, 100, 3), (2, 1, 3), (2, 3000, 3))]
    yield case_of("reduce long columns", reduce_rows([1], False), long, FLOATS)
    yield case_of("reduce long rows", reduce_rows([1, 2], True), long, FLOATS)
    yield case_of("reduce long rows, dims apart", reduce_rows([0, 2], True), long, FLOATS)
    apart = [(randn(300, n, 300).abs(),) for n in (2, 1, 2)]
    yield case_of("reduce long dims apart", reduce_rows([0, 2], False), apart, RELATIVE)


def integers() -> Iterator[Case]:
    generator = torch.Generator().manual_seed(0)
    calls = [(torch.randint(-99, 99, (n, 400), generator=generator),) for n in (5, 1, 5)]
    rows = [
        Row("aten.sum.dim_IntList", lambda x: [x, [1], False, None], lambda x: x.sum(1)),
        *extreme_rows([0], True),
        *extreme_rows([1], False),
    ]
    yield case_of("reduce integers", rows, calls, EXACT)
    rows = [Row("aten.sum.dim_IntList", lambda x: [x, [0], True, None], lambda x: x.sum(0, True))]
    yield case_of("sum of bools", rows, [(x > 0,) for (x,) in calls], EXACT)


def place_rows(dim: int | None, keepdim: bool) -> list[Row]:
    return [
        Row(
            f"aten.{name}.default",
            lambda x: [x, dim, keepdim],
            lambda x, name=name: getattr(torch, name)(x, dim, keepdim),
        )
        for name in ("argmax", "argmin")
    ]


def places() -> Iterator[Case]:
    shapes = [(2, 33, 5), (2, 3, 5), (2, 1, 5), (2, 33, 5)]
    for dim, keepdim in ((-1, False), (0, True), (1, False), (None, False), (None, True)):
        calls: list[Any] = [(randn(*shape),) for shape in shapes]
        name = f"argmax dim {dim}{', kept' if keepdim else ''}"
        yield case_of(name, place_rows(dim, keepdim), calls, EXACT)
    vocabulary = [(randn(n, VOCABULARY),) for n in (3, 1, 3)]
    yield case_of("argmax of a vocabulary", place_rows(-1, True), vocabulary, EXACT)
    columns = [(randn(2, n, 3),) for n in (700, 300, 4, 700)]
    yield case_of("argmax of long columns", place_rows(1, False), columns, EXACT)
    generator = torch.Generator().manual_seed(0)
    ties = [(torch.randint(0, 3, (4, n), generator=generator).float(),) for n in (900, 40, 900)]
    yield case_of("argmax takes the first on ties", place_rows(1, False), ties, EXACT)
    yield case_of("argmax of integers", place_rows(1, False), [(x.long(),) for (x,) in ties], EXACT)
    below = [(torch.full((2, 600), -1e30),)]
    yield case_of("argmax of very small numbers", place_rows(1, False), below, EXACT)


def softmax_rows(dim: int) -> list[Row]:
    return [
        Row("aten._softmax.default", lambda x: [x, dim, False], lambda x: x.softmax(dim)),
        Row("aten._log_softmax.default", lambda x: [x, dim, False], lambda x: x.log_softmax(dim)),
    ]


def softmaxes() -> Iterator[Case]:
    shapes = [(2, 33, 5), (2, 3, 5), (2, 1, 5), (2, 33, 5)]
    for dim in (-1, 1, 0):
        calls = [(randn(*shape) * 4,) for shape in shapes]
        yield case_of(f"softmax dim {dim}", softmax_rows(dim), calls, FLOATS)
    columns = [(randn(2, n, 3) * 4,) for n in (700, 300, 4, 700)]
    yield case_of("softmax of long columns", softmax_rows(1), columns, FLOATS)
    vocabulary = [(randn(n, VOCABULARY) * 4,) for n in (2, 1, 2)]
    yield case_of("softmax of a vocabulary", softmax_rows(-1), vocabulary, FLOATS)
    for width in (50, 500):
        large = randn(3, width) * 10
        large[0] += 1e4
        large[1] -= 1e4
        large[2, ::3] = -1e30
        # At 1e4 an f32 logit itself is rounded: the golden takes the rounded ones.
        yield case_of(f"softmax of {width} large logits", softmax_rows(-1)[:1], [(large,)], FLOATS)


def large_grid() -> Iterator[Case]:
    """More than 65,535 workgroups of 64 rows; made on the GPU, and summed up there."""
    rows = 65_535 * 64 + 77
    writer = ProgramWriter()
    step = writer.input("step", (1, 2), F32)
    numbers, column = writer.tensor((rows,), F32), writer.tensor((rows, 1), F32)
    writer.op("aten.arange.start_step", 0, rows, 1, None, None, None, None, numbers)
    writer.op("aten.view_copy.default", numbers, [rows, 1], column)
    table = writer.tensor((rows, 2), F32)
    writer.op("aten.mul.Tensor", column, step, table)
    largest, shares = writer.tensor((rows,), F32), writer.tensor((rows, 2), F32)
    writer.op("aten.amax.default", table, [1], False, largest)
    writer.op("aten._softmax.default", table, 1, False, shares)
    total, place = writer.tensor((2,), F32), writer.tensor((), I64)
    writer.op("aten.mean.dim", shares, [0], False, None, total)
    writer.op("aten.argmax.default", largest, None, False, place)
    writer.output(total, place)
    case = Case("reduce past 65,535 workgroups", writer, FLOATS)
    for factors in ([0.0, 0.5], [-1.0, -2.0]):
        values = torch.arange(rows, dtype=torch.float64)[:, None] * torch.tensor(factors)
        case.call(
            [torch.tensor([factors])],
            [values.softmax(1).mean(0), values.amax(1).argmax()],
        )
    yield case
