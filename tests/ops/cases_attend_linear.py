"""Attention over filled caches with the linear behind it."""

from collections.abc import Iterator

import numpy as np
import torch

from py_runtime.base.dtypes import F32
from py_runtime.program.writer import ProgramWriter
from tests.golden import Case
from tests.ops.cases_fused import CLOSE, Parts
from tests.ops.cases_windows import FAR, LONG, SHORT, Past, seen


def attend_linear_case(
    kind: str,
    rows: int,
    heads: int,
    kv_heads: int,
    width: int,
    calls: list[tuple[int, int]],  # tokens, position
    window: int | None = None,
    has_sinks: bool = False,
    adds: bool = True,  # a bias and a residual
    filled: int = 0,  # so many positions are in the caches from the first call on
) -> Case:
    rng = np.random.default_rng(rows)
    context, most = max(sum(call) for call in calls), max(tokens for tokens, _ in calls)
    parts = Parts.make(kind, [rows], heads * width, adds, rng)
    sinks = rng.standard_normal(heads).astype(np.float32)
    writer = ProgramWriter()
    q_dims, kv_dims = (1, most, heads, width), (1, most, kv_heads, width)
    q, k, v = (
        writer.input(name, dims, F32, dynamic=(1,))
        for name, dims in (("q", q_dims), ("k", kv_dims), ("v", kv_dims))
    )
    residual = writer.input("residual", (1, most, rows), F32, dynamic=(1,))
    # Two starts, though the same: calls that see caches alike have rings, which forget.
    starts = [writer.symint_input(name) for name in ("start_pos", "start_again")]
    caches = [writer.state(name, (1, context, kv_heads, width), F32) for name in ("kc", "vc")]
    generator = torch.Generator().manual_seed(rows)
    past = Past(writer, caches, (1, context, kv_heads, width), filled, generator)
    how = (None, window, None, writer.constant("sinks", sinks) if has_sinks else None)
    attended, out = writer.tensor(q_dims, F32), writer.tensor((1, most, rows), F32)
    writer.op("inpage.windowed_attention.default", q, k, v, *caches, starts[0], *how, attended)
    args = (*parts.args(writer), residual if adds else None)
    writer.op("inpage.attend_linear.default", q, *caches, starts[1], *how, None, *args, out)
    writer.output(attended, out)
    name = f"linear of attention {kind} [{rows}, {heads} of {width}], window {window}"
    case = Case(name + ", sinks" * has_sinks, writer, CLOSE)
    held = [torch.zeros(context, kv_heads, width).double() for _ in range(2)]
    past.fill(held)
    for at, (tokens, position) in enumerate(calls):
        given = [
            torch.from_numpy(rng.standard_normal((1, tokens, *dims)).astype(np.float32))
            for dims in ((heads, width), (kv_heads, width), (kv_heads, width), (rows,))
        ]
        end = position + tokens
        for cache, new in zip(held, given[1:3], strict=True):
            cache[position:end] = new[0]
        keys, values = (cache[:end].repeat_interleave(heads // kv_heads, 1) for cache in held)
        scores = torch.einsum("shd,chd->hsc", given[0][0].double(), keys) * width**-0.5
        scores = scores.masked_fill(~seen(tokens, position, window), -torch.inf)
        if has_sinks:
            extra = torch.from_numpy(sinks).double()[:, None, None].expand(-1, tokens, 1)
            scores = torch.cat((scores, extra), -1)
        wanted = torch.einsum("hsc,chd->shd", scores.softmax(-1)[..., :end], values)[None]
        summed = parts.sums(wanted.flatten(2))[0] + (given[3].double() if adds else 0)
        case.call([*given, position, position, *past.inputs(at == 0)], [wanted, summed])
    return case


def cases() -> Iterator[Case]:
    yield attend_linear_case("q8_0", 40, 4, 2, 16, SHORT)
    yield attend_linear_case("f32", 36, 3, 1, 12, SHORT, window=9, adds=False)
    # Heads of a group fill two tiles.
    yield attend_linear_case("q4gsw", 48, 12, 2, 16, LONG, filled=FAR)
    yield attend_linear_case(
        "q8_0", 24, 4, 1, 8, LONG, window=300, has_sinks=True, adds=False, filled=FAR
    )
