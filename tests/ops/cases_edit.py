"""The op of edits: rows of a span of positions change, others stay as they are."""

from collections.abc import Iterator

import torch

from py_runtime.base.dtypes import F32
from py_runtime.program.writer import ProgramWriter
from tests.golden import Case
from tests.ops.op_cases import FLOATS

# (tokens, position): before the span, within it, across its begin and its end, behind it.
CALLS = [(30, 0), (1, 2), (1, 5), (7, 3), (9, 8), (1, 40), (30, 0)]
SPAN = (5, 12)


def edit_case(rows: int, dims: tuple[int, ...]) -> Case:
    generator = torch.Generator().manual_seed(rows)
    width = int(torch.tensor(dims).prod())
    gain, bias = (torch.randn(rows, width, generator=generator) for _ in range(2))
    writer = ProgramWriter()
    x = writer.input("x", (1, 30, *dims), F32, dynamic=(1,))
    start = writer.symint_input("start_pos")
    out = writer.tensor((1, 30, *dims), F32)
    span = writer.constant("span", torch.tensor(SPAN, dtype=torch.int32).numpy())
    stored = [
        writer.constant(name, each.numpy()) for name, each in (("gain", gain), ("bias", bias))
    ]
    writer.op("inpage.edit.default", x, *stored, span, start, out)
    writer.output(out)
    case = Case(f"edit of {list(dims)} by {rows} rows", writer, FLOATS)
    for tokens, position in CALLS:
        given = torch.randn(1, tokens, *dims, generator=generator)
        wanted = given.double().clone()
        for token in range(tokens):
            at = position + token
            if SPAN[0] <= at < SPAN[1]:
                row = min(at - SPAN[0], rows - 1)
                old = wanted[0, token].flatten()
                wanted[0, token] = (old * (1 + gain[row]) + bias[row]).view(dims)
        case.call([given, position], [wanted])
    return case


def cases() -> Iterator[Case]:
    yield edit_case(1, (36,))
    yield edit_case(7, (3, 8))
