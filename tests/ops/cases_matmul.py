"""mm, bmm and addmm with every dimension live."""

from collections.abc import Iterator

import numpy as np
import torch

from py_runtime.base.dtypes import F32
from py_runtime.base.shapes import Dims
from py_runtime.program.writer import ProgramWriter
from tests.golden import MATMUL, Case


def normal(rng: np.random.Generator, *dims: int) -> torch.Tensor:
    return torch.from_numpy(rng.standard_normal(dims).astype(np.float32))


def mm_case(rng: np.random.Generator) -> Case:
    writer = ProgramWriter()
    a = writer.input("a", (33, 65), F32, dynamic=(0, 1))
    b = writer.input("b", (65, 37), F32, dynamic=(0, 1))
    out = writer.tensor((33, 37), F32)
    writer.op("aten.mm.default", a, b, out)
    writer.output(out)
    case = Case("mm", writer, MATMUL)
    for m, k, n in ((33, 65, 37), (1, 1, 1), (3, 5, 2), (1, 64, 37), (33, 1, 1), (33, 65, 37)):
        left, right = normal(rng, m, k), normal(rng, k, n)
        case.call([left, right], [torch.mm(left.double(), right.double())])
    return case


def bmm_case(rng: np.random.Generator) -> Case:
    writer = ProgramWriter()
    a = writer.input("a", (3, 9, 33), F32, dynamic=(0, 1, 2))
    b = writer.input("b", (3, 33, 10), F32, dynamic=(0, 1, 2))
    out = writer.tensor((3, 9, 10), F32)
    writer.op("aten.bmm.default", a, b, out)
    writer.output(out)
    case = Case("bmm", writer, MATMUL)
    for batch, m, k, n in (
        (3, 9, 33, 10),
        (1, 1, 1, 1),
        (2, 5, 32, 7),
        (3, 8, 4, 4),
        (3, 9, 33, 10),
    ):
        left, right = normal(rng, batch, m, k), normal(rng, batch, k, n)
        case.call([left, right], [torch.bmm(left.double(), right.double())])
    return case


def addmm_case(bias_dims: Dims, beta: float, alpha: float, rng: np.random.Generator) -> Case:
    """Make a case with a constant bias; one that spans the lines needs them at their largest."""
    writer = ProgramWriter()
    bias = normal(rng, *bias_dims)
    if beta == 0:
        bias.fill_(torch.nan)
    spans_lines = len(bias_dims) == 2 and bias_dims[0] > 1
    a = writer.input("a", (9, 20), F32, dynamic=() if spans_lines else (0,))
    b = writer.input("b", (20, 7), F32)
    out = writer.tensor((9, 7), F32)
    bias_ref = writer.constant("bias", bias.numpy())
    writer.op("aten.addmm.default", bias_ref, a, b, beta, alpha, out)
    writer.output(out)
    case = Case(f"addmm bias {list(bias_dims)} beta {beta} alpha {alpha}", writer, MATMUL)
    for m in (9,) if spans_lines else (9, 1, 4, 9):
        left, right = normal(rng, m, 20), normal(rng, 20, 7)
        expected = torch.addmm(bias.double(), left.double(), right.double(), beta=beta, alpha=alpha)
        case.call([left, right], [expected])
    return case


def cases() -> Iterator[Case]:
    rng = np.random.default_rng(11)
    yield mm_case(rng)
    yield bmm_case(rng)
    yield addmm_case((7,), 1, 1, rng)
    yield addmm_case((1, 7), 0.5, 2.0, rng)
    yield addmm_case((9, 7), 1.0, -1, rng)
    yield addmm_case((9, 1), -2, 1, rng)
    yield addmm_case((), 3, 1, rng)
    yield addmm_case((7,), 0, 1, rng)
