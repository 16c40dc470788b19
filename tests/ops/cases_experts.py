"""Mixtures of experts against torch in float64."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch.nn.functional import silu

from py_runtime.base.dtypes import F32
from py_runtime.program.writer import ProgramWriter
from tests.golden import Case
from tests.ops.cases_fused import CLOSE, LIVE_LINES, normal, weights_of
from tests.ops.cases_linear import Weights


def experts_case(
    kinds: tuple[str, str],  # of gate and up, and of down
    experts: int,
    used: int,
    width: int,
    hidden: int,
    renormalised: bool = True,
) -> Case:
    rng = np.random.default_rng(experts * width)
    first, last = kinds
    gate, up = (weights_of(first, experts * hidden, width, rng) for _ in range(2))
    down = weights_of(last, experts * width, hidden, rng)
    writer = ProgramWriter()
    most = max(LIVE_LINES)
    x = writer.input("x", (1, most, width), F32, dynamic=(1,))
    logits = writer.input("logits", (1, most, experts), F32, dynamic=(1,))
    out = writer.tensor((1, most, width), F32)
    held = {"gate": gate, "up": up, "down": down}
    args: list[Any] = [used, renormalised, f"{first} {first} {last}"]
    for name, weights in held.items():
        scales = weights.constants.get("scales")
        args.append(writer.constant(name, weights.constants["weight"]))
        args.append(None if scales is None else writer.constant(f"{name} scales", scales))
    writer.op("inpage.experts.default", x, logits, *args, 32, out)
    writer.output(out)
    case = Case(f"experts {first} and {last}, {used} of {experts}", writer, CLOSE)
    for lines in LIVE_LINES:
        data, chances = normal(rng, 1, lines, width), 2 * normal(rng, 1, lines, experts)
        case.call([data, chances], [mixed(data, chances, gate, up, down, used, renormalised)])
    return case


def mixed(
    x: torch.Tensor,
    logits: torch.Tensor,
    gate: Weights,
    up: Weights,
    down: Weights,
    used: int,
    renormalised: bool,
) -> torch.Tensor:
    """By all experts, of which the shares of most are 0."""
    experts = logits.shape[-1]
    shares = logits[0].double().softmax(-1)
    least = shares.topk(used).values[:, -1:]
    shares = shares * (shares >= least)
    if renormalised:
        shares = shares / shares.sum(-1, keepdim=True)
    lines = x[0].double()
    gates, ups, downs = (each.values.double().chunk(experts) for each in (gate, up, down))
    of_each = [
        (silu(lines @ g.T) * (lines @ u.T)) @ d.T for g, u, d in zip(gates, ups, downs, strict=True)
    ]
    return sum((shares[:, at, None] * own for at, own in enumerate(of_each)), torch.zeros(()))[None]


def cases() -> Iterator[Case]:
    yield experts_case(("f32", "f32"), 7, 3, width=72, hidden=44)
    yield experts_case(("f32", "f32"), 130, 8, width=32, hidden=12, renormalised=False)
    yield experts_case(("q4gsw", "q4gsw"), 5, 1, width=96, hidden=64)
    yield experts_case(("q4_1", "q8_0"), 4, 4, width=96, hidden=32)
