"""Look-ups by index tensors: places, ranks, negative indices, several at once."""

from collections.abc import Iterator
from typing import Any

import torch

from py_runtime.base.dtypes import F32, I64
from py_runtime.program.writer import ProgramWriter
from tests.golden import EXACT, Case
from tests.ops.op_cases import Row, case_of


def cases() -> Iterator[Case]:
    yield from selected()
    yield from gathered()
    yield from indexed()
    yield clamped()


def numbers(*shape: int) -> torch.Tensor:
    return torch.arange(torch.Size(shape).numel()).reshape(shape).float()


def places(*shape: int, below: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed + sum(shape))
    return torch.randint(0, below, shape, generator=generator)


def selected() -> Iterator[Case]:
    rows = [
        Row(
            "aten.index_select.default",
            lambda x, i, dim=dim: [x, dim, i],
            lambda x, i, dim=dim: x.index_select(dim, i),
        )
        for dim in (0, 1, -1)
    ]
    sizes = ((9, 33), (4, 5), (3, 1), (9, 33))
    calls: list[Any] = [(numbers(3, n, 5), places(k, below=3)) for n, k in sizes]
    yield case_of("index_select", rows, calls, EXACT)
    calls = [(x.long(), i.int()) for x, i in calls]
    yield case_of("index_select of integers", rows, calls, EXACT)


def gathered() -> Iterator[Case]:
    for dim in (0, 1, -1):
        rows = [
            Row(
                "aten.gather.default",
                lambda x, i, dim=dim: [x, dim, i, False],
                lambda x, i, dim=dim: x.gather(dim, i),
            )
        ]
        calls = []
        for n, k in ((33, 7), (4, 4), (2, 1), (33, 7)):
            shape = [3, n, 5]
            below = shape[dim]
            shape[dim] = k
            calls.append((numbers(3, n, 5), places(*shape, below=below)))
        yield case_of(f"gather dim {dim}", rows, calls, EXACT)
    rows = [Row("aten.gather.default", lambda x, i: [x, 1, i, False], lambda x, i: x.gather(1, i))]
    calls = [(numbers(6, 8), places(n, k, below=8)) for n, k in ((6, 8), (2, 3), (1, 1), (6, 8))]
    yield case_of("gather a corner", rows, calls, EXACT)


def indexed() -> Iterator[Case]:
    one = [
        Row("aten.index.Tensor", lambda x, i: [x, [i]], lambda x, i: x[i]),
        Row("aten.index.Tensor", lambda x, i: [x, [None, i]], lambda x, i: x[:, i]),
        Row("aten.index.Tensor", lambda x, i: [x, [None, None, i]], lambda x, i: x[:, :, i]),
    ]
    vectors = [(numbers(4, n, 6), places(k, below=4) - 2) for n, k in ((33, 5), (4, 1), (33, 5))]
    yield case_of("index by a vector", one, vectors, EXACT)
    tables = [(numbers(4, n, 6), places(2, k, below=4)) for n, k in ((33, 5), (4, 1), (33, 5))]
    yield case_of("index by a table", one, tables, EXACT)
    scalar = [(numbers(4, n, 6), places(below=4)) for n in (33, 4, 33)]
    yield case_of("index by one number", one, scalar, EXACT)
    several = [
        Row("aten.index.Tensor", lambda x, i, j: [x, [i, j]], lambda x, i, j: x[i, j]),
        Row("aten.index.Tensor", lambda x, i, j: [x, [None, i, j]], lambda x, i, j: x[:, i, j]),
        # Apart: the looked-up dims come first.
        Row("aten.index.Tensor", lambda x, i, j: [x, [i, None, j]], lambda x, i, j: x[i, :, j]),
        Row("aten.index.Tensor", lambda x, i, j: [x, [i, j, i]], lambda x, i, j: x[i, j, i]),
    ]
    calls = [
        (numbers(4, n, 6), places(k, 1, below=4) - 2, places(3, below=4, seed=1))
        for n, k in ((33, 5), (4, 1), (33, 5))
    ]
    yield case_of("index by several tensors", several, calls, EXACT)
    apart = [
        Row(
            "aten.index.Tensor",
            lambda x, i, j: [x, [None, i, None, j]],
            lambda x, i, j: x[:, i, :, j],
        )
    ]
    calls = [
        (numbers(2, 4, n, 3), places(k, 1, below=4) - 2, places(3, below=3, seed=1))
        for n, k in ((33, 5), (4, 1), (33, 5))
    ]
    yield case_of("index by several tensors apart", apart, calls, EXACT)


def clamped() -> Case:
    """Keep indices outside inside the tensor; torch would refuse them."""
    writer = ProgramWriter()
    x = writer.input("x", (4, 2), F32)
    index = writer.input("index", (6,), I64)
    out = writer.tensor((6, 2), F32)
    writer.op("aten.index_select.default", x, 0, index, out)
    writer.output(out)
    case = Case("index outside", writer, EXACT)
    data = numbers(4, 2)
    far = 2**31 - 1
    case.call([data, torch.tensor([0, 4, 99, far, -5, -far])], [data[[0, 3, 3, 3, 0, 0]]])
    return case
