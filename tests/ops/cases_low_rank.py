"""inpage.low_rank, and linears with a bias for each token, against torch in float64."""

from collections.abc import Iterator

import numpy as np
import torch

from py_runtime.base.dtypes import F32
from py_runtime.program.writer import ProgramWriter
from tests.golden import QUANTISED, Case, Tolerance
from tests.ops.cases_fused import CLOSE, EPS, LIVE_LINES, Parts, normal, rms_norm

OWN = Tolerance(QUANTISED.absolute, 5e-5)
STRENGTHS = (1.0, 0.5, -2.0, 0.0)


def low_rank_case(rows: int, columns: int, ranks: int, biased: bool) -> Case:
    rng = np.random.default_rng(rows + ranks)
    down, up = (
        rng.standard_normal(dims).astype(np.float32) for dims in ((ranks, columns), (rows, ranks))
    )
    strengths = np.resize(np.array(STRENGTHS, np.float32), ranks)
    halves = (rows // 2, rows - rows // 2)
    biases = [rng.standard_normal(count).astype(np.float32) for count in halves if biased]
    writer = ProgramWriter()
    most = max(LIVE_LINES)
    x = writer.input("x", (1, most, columns), F32, dynamic=(1,))
    out = writer.tensor((1, most, rows), F32)
    given = [
        writer.constant(name, data)
        for name, data in (("down", down), ("strengths", strengths), ("up", up))
    ]
    bias = [writer.constant(f"bias {at}", data) for at, data in enumerate(biases)]
    writer.op("inpage.low_rank.default", x, *given, bias or None, out)
    writer.output(out)
    case = Case(f"low_rank [{rows}, {ranks}, {columns}]{' bias' * biased}", writer, CLOSE)
    factors, both = torch.from_numpy(down).double(), torch.from_numpy(up).double()
    for lines in LIVE_LINES:
        data = normal(rng, 1, lines, columns)
        inner = data.double() @ factors.T * torch.from_numpy(strengths).double()
        added = torch.from_numpy(np.concatenate(biases)).double() if biased else 0
        case.call([data], [inner @ both.T + added])
    return case


def own_bias_case(op: str, kind: str, rows: int, columns: int) -> Case:
    """Check a linear with a bias for each token: alone, with a residual, or gate and up."""
    rng = np.random.default_rng(rows + columns)
    is_gated = op == "inpage.swiglu.default"
    parts = Parts.make(kind, [rows, rows] if is_gated else [rows], columns, False, rng)
    writer = ProgramWriter()
    most, width = max(LIVE_LINES), rows * len(parts.weights)
    x = writer.input("x", (1, most, columns), F32, dynamic=(1,))
    bias = writer.input("bias", (1, most, width), F32, dynamic=(1,))
    out = writer.tensor((1, most, rows), F32)
    args = [*parts.args(writer)[:-1], [bias]]
    norm = rng.uniform(0.5, 1.5, columns).astype(np.float32)
    if is_gated:
        writer.op(op, x, writer.constant("norm", norm), EPS, *args, out)
    elif op == "inpage.linear_residual.default":
        writer.op(op, x, *args, x, out)
    else:
        extra = [32] if kind == "q4gsw" else []
        weight = [each for each in (args[1], args[2]) if each is not None]
        writer.op(op, x, *(each[0] for each in weight), *extra, bias, out)
    writer.output(out)
    case = Case(f"{op} {kind} [{rows}, {columns}] with a bias for each token", writer, OWN)
    for lines in LIVE_LINES:
        data, added = normal(rng, 1, lines, columns), normal(rng, 1, lines, width)
        sums = parts.sums(rms_norm(data, norm, EPS) if is_gated else data)
        total = torch.cat(sums, -1) + added.double()
        if is_gated:
            gate, up = total.split(rows, -1)
            total = torch.nn.functional.silu(gate) * up
        elif op == "inpage.linear_residual.default":
            total = total + data.double()
        case.call([data, added], [total])
    return case


def cases() -> Iterator[Case]:
    yield low_rank_case(40, 64, 8, biased=False)
    yield low_rank_case(71, 96, 20, biased=True)
    yield low_rank_case(300, 32, 132, biased=False)
    yield own_bias_case("aten.linear.default", "f32", 40, 64)
    yield own_bias_case("aten.linear.default", "f32", 37, 30)
    yield own_bias_case("inpage.linear_q8_0.default", "q8_0", 40, 64)
    yield own_bias_case("et_vk.linear_q4gsw.default", "q4gsw", 40, 64)
    yield own_bias_case("inpage.linear_residual.default", "q4_0", 64, 64)
    yield own_bias_case("inpage.swiglu.default", "q8_0", 40, 64)
    yield own_bias_case("inpage.swiglu.default", "q4_k + q6_k", 40, 256)
