"""Ops that carry a state from call to call: chunks of any length give what one call gives."""

from collections.abc import Iterator

import torch

from py_runtime.base.dtypes import F32
from py_runtime.program.writer import ProgramWriter
from tests.golden import Case
from tests.ops.op_cases import FLOATS

# (tokens, position): a text in chunks; others that begin anew, up to the longest chunk again.
CALLS = [(40, 0), (1, 40), (1, 41), (2, 42), (7, 44), (1, 0), (2, 1), (1, 3), (40, 4), (40, 0)]


def conv_case(op: str, width: int, taps: int) -> Case:
    gated = op == "short_conv"
    generator = torch.Generator().manual_seed(width)
    weight = torch.randn(width, taps, generator=generator)
    columns = 3 * width if gated else width
    most = max(tokens for tokens, _ in CALLS)
    writer = ProgramWriter()
    x = writer.input("x", (1, most, columns), F32, dynamic=(1,))
    start = writer.symint_input("start_pos")
    state = writer.state("state", (1, taps - 1, width), F32)
    out = writer.tensor((1, most, width), F32)
    stored = writer.constant("weight", weight.numpy())
    writer.op(f"inpage.{op}.default", x, stored, state, start, out)
    writer.output(out)
    case = Case(f"{op} of {width} channels, {taps} taps", writer, FLOATS)
    text = torch.zeros(0, columns)
    for tokens, position in CALLS:
        chunk = torch.randn(1, tokens, columns, generator=generator)
        text = torch.cat((text[:position], chunk[0]))
        whole = text.double()  # computed at once, from the first token
        b, c, u = whole.chunk(3, -1) if gated else (1, 1, whole)
        padded = torch.nn.functional.pad((b * u).T, (taps - 1, 0))  # [width, taps - 1 + tokens]
        convolved = torch.nn.functional.conv1d(padded, weight.double()[:, None], groups=width).T
        result = c * convolved if gated else torch.nn.functional.silu(convolved)
        case.call([chunk, position], [result[None, position:]])
    return case


def cases() -> Iterator[Case]:
    yield conv_case("short_conv", 24, 3)
    yield conv_case("short_conv", 5, 2)
    yield conv_case("conv_silu", 70, 4)
