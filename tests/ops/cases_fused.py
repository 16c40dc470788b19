"""Fused ops against torch in float64: what the passes of py_runtime/passes make."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.nn.functional import gelu, scaled_dot_product_attention, silu

from py_runtime.base.dtypes import F32
from py_runtime.program.writer import ProgramWriter, Ref
from tests.gguf.blocks import random_weight
from tests.golden import QUANTISED, Case, Tolerance
from tests.ops.cases_linear import Weights, blocks, f32, q4gsw
from tests.ops.cases_rotary import turned_halves, turned_neighbours

LIVE_LINES = (21, 1, 2, 1, 8, 21)
CLOSE = Tolerance(QUANTISED.absolute, 1e-5)
EPS = 1e-5


def weights_of(kind: str, rows: int, columns: int, rng: np.random.Generator) -> Weights:
    match kind:
        case "f32":
            return f32(rows, columns, rng)
        case "q4gsw":
            return q4gsw(rows, columns, 32, rng)
        case "q4gsw in groups of 24":
            return q4gsw(rows, columns, 24, rng)
    if kind not in ("q4_0", "q4_1", "q8_0"):
        weight = random_weight(kind.upper(), rows, columns, rng)
        return Weights(weight.kind.linear, torch.from_numpy(weight.values).double(), weight.parts())
    return blocks(kind, rows, columns, rng)


KINDS = ("f32", "q4gsw", "q4gsw in groups of 24", "q4_0", "q4_1", "q8_0")


@dataclass
class Parts:
    """The weights that an op takes together, with their biases.

    They are of one kind, or of several, which are given as "q4_k + q4_k + q6_k".
    """

    kind: str
    weights: list[Weights]
    biases: list[np.ndarray]

    @classmethod
    def make(
        cls, kind: str, rows: Sequence[int], columns: int, biased: bool, rng: np.random.Generator
    ) -> "Parts":
        kinds = kind.split(" + ") if " + " in kind else [kind] * len(rows)
        weights = [weights_of(*each, columns, rng) for each in zip(kinds, rows, strict=True)]
        biases = [rng.standard_normal(each).astype(np.float32) for each in rows if biased]
        names = " ".join(each.split()[0] for each in kinds) if " + " in kind else kind.split()[0]
        return cls(names, weights, biases)

    def args(self, writer: ProgramWriter) -> list[Any]:
        def constants(name: str) -> list[Ref] | None:
            found = [each.constants.get(name) for each in self.weights]
            return [
                writer.constant(f"{name} {place}", data)
                for place, data in enumerate(found)
                if data is not None
            ] or None

        biases = [writer.constant(f"bias {at}", bias) for at, bias in enumerate(self.biases)]
        group_size = (self.weights[0].extra or [32])[0]
        return [self.kind, constants("weight"), constants("scales"), group_size, biases or None]

    def sums(self, x: torch.Tensor) -> list[torch.Tensor]:
        biases = [torch.from_numpy(bias).double() for bias in self.biases]
        zeros = [torch.zeros(()).double()] * len(self.weights)
        pairs = zip(self.weights, biases or zeros, strict=True)
        return [x.double() @ each.values.T + bias for each, bias in pairs]


def rms_norm(x: torch.Tensor, weight: np.ndarray, eps: float) -> torch.Tensor:
    scale = (x.double().square().mean(-1, keepdim=True) + eps).rsqrt()
    return x.double() * scale * torch.from_numpy(weight).double()


def normal(rng: np.random.Generator, *dims: int) -> torch.Tensor:
    return torch.from_numpy(rng.standard_normal(dims).astype(np.float32))


def residual_case(kind: str, rows: int, columns: int, biased: bool) -> Case:
    rng = np.random.default_rng(rows)
    parts = Parts.make(kind, [rows], columns, biased, rng)
    writer = ProgramWriter()
    most = max(LIVE_LINES)
    x = writer.input("x", (1, most, columns), F32, dynamic=(1,))
    residual = writer.input("residual", (1, most, rows), F32, dynamic=(1,))
    out = writer.tensor((1, most, rows), F32)
    args = parts.args(writer)
    writer.op("inpage.linear_residual.default", x, *args, residual, out)
    writer.output(out)
    case = Case(f"linear_residual {kind} [{rows}, {columns}]{' bias' * biased}", writer, CLOSE)
    for lines in LIVE_LINES:
        data, added = normal(rng, 1, lines, columns), normal(rng, 1, lines, rows)
        case.call([data, added], [parts.sums(data)[0] + added.double()])
    return case


def norm_residual_case(width: int, factor: float | None = None) -> Case:
    rng = np.random.default_rng(width)
    weight = rng.uniform(0.5, 1.5, width).astype(np.float32)
    writer = ProgramWriter()
    most = max(LIVE_LINES)
    x, residual = (
        writer.input(name, (1, most, width), F32, dynamic=(1,)) for name in ("x", "residual")
    )
    out = writer.tensor((1, most, width), F32)
    by = None if factor is None else writer.constant("factor", np.array([factor], np.float32))
    args = (writer.constant("weight", weight), EPS, residual, by, out)
    writer.op("inpage.norm_residual.default", x, *args)
    writer.output(out)
    case = Case(f"rms_norm and a residual, {width}, times {factor}", writer, CLOSE)
    for lines in LIVE_LINES:
        data, added = normal(rng, 1, lines, width), normal(rng, 1, lines, width)
        total = rms_norm(data, weight, EPS) + added.double()
        case.call([data, added], [total * (1 if factor is None else factor)])
    return case


def swiglu_case(
    kind: str, rows: int, columns: int, biased: bool, normed: bool, by_gelu: bool = False
) -> Case:
    rng = np.random.default_rng(rows)
    parts = Parts.make(kind, [rows, rows], columns, biased, rng)
    norm = rng.uniform(0.5, 1.5, columns).astype(np.float32)
    writer = ProgramWriter()
    most = max(LIVE_LINES)
    x = writer.input("x", (1, most, columns), F32, dynamic=(1,))
    out = writer.tensor((1, most, rows), F32)
    norm_args = [writer.constant("norm", norm), EPS] if normed else [None, None]
    name = "inpage.geglu.default" if by_gelu else "inpage.swiglu.default"
    writer.op(name, x, *norm_args, *parts.args(writer), out)
    writer.output(out)
    extras = " bias" * biased + " norm" * normed + " by gelu" * by_gelu
    case = Case(f"swiglu {kind} [{rows}, {columns}]{extras}", writer, CLOSE)
    for lines in LIVE_LINES:
        data = 3 * normal(rng, 1, lines, columns)
        gate, up = parts.sums(rms_norm(data, norm, EPS) if normed else data)
        activated = gelu(gate, approximate="tanh") if by_gelu else silu(gate)
        case.call([data], [activated * up])
    return case


def summed_case(kind: str, rows: int, columns: int, normed: bool, factor: float | None) -> Case:
    """(residual + norm(x)) * factor, then geglu or a gate before one part, of that and with it."""
    rng = np.random.default_rng(rows)
    parts = Parts.make(kind, [rows, rows] if normed else [rows], columns, False, rng)
    sum_norm, norm = (rng.uniform(0.5, 1.5, columns).astype(np.float32) for _ in range(2))
    writer = ProgramWriter()
    most, count, number = max(LIVE_LINES), 3, 2
    names = ("x", "residual")
    x, residual = (writer.input(name, (1, most, columns), F32, dynamic=(1,)) for name in names)
    own = writer.input("parts", (1, most, count, rows), F32, dynamic=(1,))
    out, total = (writer.tensor((1, most, width), F32) for width in (rows, columns))
    by = None if factor is None else writer.constant("factor", np.array([factor], np.float32))
    given = (x, writer.constant("sum_norm", sum_norm), EPS, residual, by)
    if normed:
        how = (writer.constant("norm", norm), 1e-3, *parts.args(writer))
        writer.op("inpage.geglu.of_sum", *given, *how, [out, total])
    else:
        writer.op(
            "inpage.gated_linear.of_sum", *given, *parts.args(writer), own, number, [out, total]
        )
    writer.output(out, total)
    case = Case(f"swiglu {kind} [{rows}, {columns}] of a sum times {factor}", writer, CLOSE)
    for lines in LIVE_LINES:
        data, added = normal(rng, 1, lines, columns), normal(rng, 1, lines, columns)
        part = normal(rng, 1, lines, count, rows)
        summed = rms_norm(data, sum_norm, EPS) + added.double()
        summed = summed * (1 if factor is None else factor)
        sums = parts.sums(rms_norm(summed, norm, 1e-3) if normed else summed)
        times = sums[1] if normed else part.double()[..., number, :]
        wanted = gelu(sums[0], approximate="tanh") * times
        case.call([data, added, part], [wanted, summed])
    return case


def gated_linear_case(kind: str, rows: int, columns: int) -> Case:
    rng = np.random.default_rng(rows)
    parts = Parts.make(kind, [rows], columns, False, rng)
    writer = ProgramWriter()
    most = max(LIVE_LINES)
    x = writer.input("x", (most, columns), F32, dynamic=(0,))
    own = writer.input("parts", (most, 2, rows), F32, dynamic=(0,))
    out = writer.tensor((most, rows), F32)
    writer.op("inpage.gated_linear.default", x, *parts.args(writer), own, 1, out)
    writer.output(out)
    case = Case(f"gated_linear {kind} [{rows}, {columns}]", writer, CLOSE)
    for lines in LIVE_LINES:
        data, part = normal(rng, lines, columns), normal(rng, lines, 2, rows)
        wanted = gelu(parts.sums(data)[0], approximate="tanh") * part.double()[:, 1]
        case.call([data, part], [wanted])
    return case


def decoder_case(
    kind: str,
    heads: int,
    kv_heads: int,
    width: int,
    rotated: int | None,  # None: pairs are neighbours; 0: nothing turns
    biased: bool = False,
    normed: bool = True,
    heads_normed: bool = False,
    rows_normed: bool = False,  # all heads of a token together
    values_normed: bool = False,
    lead: tuple[int, ...] = (1,),
    columns: int = 96,
) -> Case:
    """qkv_rotary_cache, then attend_kv_cache over what it left in the caches."""
    rng = np.random.default_rng(heads * width)
    context, most = 48, 24
    rows = [heads * width, kv_heads * width, kv_heads * width]
    parts = Parts.make(kind, rows, columns, biased, rng)
    norm_sizes = (columns, *(rows[:2] if rows_normed else (width, width)))
    norm, q_norm, k_norm = (rng.uniform(0.5, 1.5, size).astype(np.float32) for size in norm_sizes)
    table = [normal(rng, context, width // 2 if rotated is None else rotated) for _ in range(2)]
    writer = ProgramWriter()
    x = writer.input("x", (*lead, most, columns), F32, dynamic=(len(lead),))
    start = writer.symint_input("start_pos")
    cos, sin = (
        None if rotated == 0 else writer.constant(name, made.numpy())
        for name, made in zip("cs", table, strict=True)
    )
    k_cache, v_cache = (
        writer.state(name, (*lead, context, kv_heads, width), F32) for name in ("k", "v")
    )
    q_out = writer.tensor((*lead, most, heads, width), F32)
    attended = writer.tensor((*lead, most, heads, width), F32)
    norm_args = [writer.constant("norm", norm), EPS] if normed else [None, None]
    head_args: list[Any] = [None] * 4
    if heads_normed or rows_normed:
        head_args = [writer.constant("qn", q_norm), 1e-6, writer.constant("kn", k_norm), 1e-3]
    writer.op(
        "inpage.qkv_rotary_cache.default",
        *(x, *norm_args, *parts.args(writer), *head_args),
        *(cos, sin, 0 if rotated is None else start, rotated is None),
        *(k_cache, v_cache, start, None, 1e-2 if values_normed else None, q_out),
    )
    writer.op("inpage.attend_kv_cache.default", q_out, k_cache, v_cache, start, None, attended)
    writer.output(q_out, attended)
    turn = "neighbours" if rotated is None else f"{rotated} turn"
    extras = " bias" * biased + " norm" * normed + " heads normed" * heads_normed
    extras += " rows normed" * rows_normed + " values normed" * values_normed
    name = f"qkv_rotary_cache {kind} {heads}/{kv_heads} heads of {width}, {turn}{extras}"
    case = Case(name, writer, CLOSE)
    keys, values = (torch.zeros(context, kv_heads, width).double() for _ in range(2))
    for tokens, position in ((24, 0), (1, 24), (1, 25), (7, 26), (1, 47), (24, 3), (1, 27)):
        data = normal(rng, *lead, tokens, columns)
        sums = parts.sums((rms_norm(data, norm, EPS) if normed else data).reshape(tokens, -1))
        q, k, v = (
            each.view(tokens, count, width)
            for each, count in zip(sums, (heads, kv_heads, kv_heads), strict=True)
        )
        if heads_normed:
            q, k = rms_norm(q, q_norm, 1e-6), rms_norm(k, k_norm, 1e-3)
        if rows_normed:
            q = rms_norm(q.flatten(1), q_norm, 1e-6).view(q.shape)
            k = rms_norm(k.flatten(1), k_norm, 1e-3).view(k.shape)
        if values_normed:
            v = rms_norm(v, np.ones(width, np.float32), 1e-2)
        if rotated == 0:
            pass
        elif rotated is None:
            q, k = (turned_neighbours(each, *(t[:tokens] for t in table)) for each in (q, k))
        else:
            angles = [each[position : position + tokens] for each in table]
            q, k = (turned_halves(each, *angles) for each in (q, k))
        seen = position + tokens
        keys[position:seen], values[position:seen] = k, v
        result = scaled_dot_product_attention(
            q.transpose(0, 1),
            *(cache[:seen].transpose(0, 1) for cache in (keys, values)),
            attn_mask=torch.ones(tokens, seen, dtype=torch.bool).tril(position),
            enable_gqa=True,
        )
        expected = [q, result.transpose(0, 1)]
        case.call([data, position], [each.view(*lead, tokens, heads, width) for each in expected])
    return case


def queries_case(kind: str, heads: int, width: int, rotated: int, normed: bool) -> Case:
    """q_rotary, beside the linear, norm and rotary_of_one that it stands for."""
    rng = np.random.default_rng(heads * width)
    columns, context, most = 96, 48, 24
    parts = Parts.make(kind, [heads * width], columns, False, rng)
    q_norm = rng.uniform(0.5, 1.5, width).astype(np.float32)
    table = [normal(rng, context, rotated) for _ in range(2)]
    writer = ProgramWriter()
    x = writer.input("x", (1, most, columns), F32, dynamic=(1,))
    start = writer.symint_input("start_pos")
    tables = [writer.constant(name, made.numpy()) for name, made in zip("cs", table, strict=True)]
    dims = (1, most, heads, width)
    plain = writer.input("plain", dims, F32, dynamic=(1,))
    outs = [writer.tensor(dims, F32) for _ in range(2)]
    how = [writer.constant("qn", q_norm), 1e-3] if normed else [None, None]
    given = (x, None, None, *parts.args(writer), *how, *tables, start, False)
    writer.op("inpage.q_rotary.default", *given, outs[0])
    writer.op("inpage.rotary_of_one.default", plain, *tables, start, outs[1])
    writer.output(*outs)
    name = f"q_rotary {kind} {heads} heads of {width}, {rotated} turn{' normed' * normed}"
    case = Case(name, writer, CLOSE)
    for tokens, position in ((24, 0), (1, 24), (1, 25), (7, 26), (1, 47), (24, 3)):
        data, queries = normal(rng, 1, tokens, columns), normal(rng, 1, tokens, heads, width)
        q = parts.sums(data.reshape(tokens, -1))[0].view(tokens, heads, width)
        q = rms_norm(q, q_norm, 1e-3) if normed else q
        angles = [each[position : position + tokens] for each in table]
        wanted = [turned_halves(each, *angles)[None] for each in (q, queries[0].double())]
        case.call([data, position, queries], wanted)
    return case


def gated_part_case(lead: tuple[int, ...], count: int, width: int, number: int) -> Case:
    rng = np.random.default_rng(width)
    writer = ProgramWriter()
    most = max(LIVE_LINES)
    gate = writer.input("gate", (*lead, most, width), F32, dynamic=(len(lead),))
    parts = writer.input("parts", (*lead, most, count, width), F32, dynamic=(len(lead),))
    out = writer.tensor((*lead, most, width), F32)
    writer.op("inpage.gated_part.default", gate, parts, number, out)
    writer.output(out)
    case = Case(f"gated_part {number} of {count}, {width} columns", writer, CLOSE)
    for lines in LIVE_LINES:
        given = 3 * normal(rng, *lead, lines, width), normal(rng, *lead, lines, count, width)
        own = given[1].double()[..., number, :]
        case.call([*given], [gelu(given[0].double(), approximate="tanh") * own])
    return case


def cases() -> Iterator[Case]:
    for place, kind in enumerate(KINDS):
        yield residual_case(kind, 40 + 4 * place, 96, biased=place % 2 == 0)
        yield swiglu_case(kind, 40 + 4 * place, 96, biased=place % 2 == 1, normed=place % 3 > 0)
    yield residual_case("q4gsw", 37, 100, biased=False)
    yield residual_case("q8_0", 5, 2080, biased=True)  # more columns than a workgroup takes at once
    yield residual_case("q4gsw", 38, 2080, biased=False)
    yield swiglu_case("f32", 6, 100, biased=True, normed=True)
    yield swiglu_case("q4_0", 6, 2080, biased=False, normed=True)
    yield swiglu_case("q4_1", 35, 7200, biased=True, normed=True)  # more than is laid out at once
    yield decoder_case("f32", 4, 2, 16, 16, biased=True)
    yield decoder_case("q4gsw", 3, 1, 8, 4, normed=False)
    yield decoder_case("q4gsw in groups of 24", 4, 4, 8, None, biased=True)
    yield decoder_case("q4_0", 2, 2, 24, 24, heads_normed=True)
    yield decoder_case("q4_1", 6, 2, 16, 8, lead=())
    yield decoder_case("q8_0", 4, 1, 16, None, biased=True, heads_normed=True)
    yield decoder_case("q8_0", 4, 2, 16, 16, rows_normed=True, normed=False)
    yield decoder_case("f32", 3, 1, 8, 0, heads_normed=True)
    yield decoder_case("q4_0", 4, 2, 16, 0)
    yield swiglu_case("q8_0", 44, 96, biased=False, normed=True, by_gelu=True)
    yield swiglu_case("f32", 10, 100, biased=True, normed=False, by_gelu=True)
    yield norm_residual_case(96)
    yield norm_residual_case(37)
    yield norm_residual_case(36, factor=0.75)
    yield norm_residual_case(33, factor=-1.5)
    yield decoder_case("q8_0", 4, 2, 16, 16, heads_normed=True, values_normed=True)
    yield decoder_case("f32", 4, 1, 320, 8, values_normed=True, normed=False)  # wide heads
    yield queries_case("q8_0", 4, 16, 16, normed=True)
    yield queries_case("f32", 3, 8, 4, normed=False)
    yield gated_part_case((1,), 3, 12, 1)
    yield gated_part_case((), 5, 7, 4)
    yield gated_linear_case("q8_0", 13, 96)
    yield summed_case("f32", 10, 100, normed=True, factor=None)
    yield summed_case("q4_0", 12, 96, normed=True, factor=0.75)
    yield summed_case("q8_0", 7, 7200, normed=False, factor=-1.5)  # more than is laid out at once
    yield summed_case("f32", 5, 36, normed=False, factor=None)
