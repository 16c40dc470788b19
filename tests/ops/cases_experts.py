"""Mixtures of experts against torch in float64."""

from collections.abc import Iterator, Sequence
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
    scoring: str = "softmax",
    has_bias: bool = False,
    activation: str = "silu",
    is_sum: bool = False,
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
    sizes = (experts * hidden, experts * hidden, experts * width)
    biases = [normal(rng, size) if has_bias else None for size in sizes]
    choice = normal(rng, experts) if scoring == "sigmoid" else None
    scale = 1.0 if choice is None else 1.5
    args: list[Any] = [None if choice is None else writer.constant("choice", choice.numpy())]
    args += [used, renormalised, scoring, scale, f"{first} {first} {last}"]
    for (name, weights), bias in zip(held.items(), biases, strict=True):
        scales = weights.constants.get("scales")
        args.append(writer.constant(name, weights.constants["weight"]))
        args.append(None if scales is None else writer.constant(f"{name} scales", scales))
        args.append(None if bias is None else writer.constant(f"{name} bias", bias.numpy()))
    given: list[Any] = [x, logits, *args, 32, activation]
    if is_sum:
        given.append(writer.input("residual", (1, most, width), F32, dynamic=(1,)))
    name = "experts_residual" if is_sum else "experts"
    writer.op(f"inpage.{name}.default", *given, out)
    writer.output(out)
    case = Case(f"{name} {first} and {last}, {used} of {experts}, {scoring}", writer, CLOSE)
    for lines in LIVE_LINES:
        data, chances = normal(rng, 1, lines, width), 2 * normal(rng, 1, lines, experts)
        shares = scale * shares_of(chances, used, renormalised, choice)
        wanted = mixed(data, shares, (gate, up, down), biases, activation)
        residuals = [normal(rng, 1, lines, width)] if is_sum else []
        case.call([data, chances, *residuals], [sum(residuals, wanted)])
    return case


def shares_of(
    logits: torch.Tensor, used: int, renormalised: bool, choice: torch.Tensor | None
) -> torch.Tensor:
    """[S, experts], of which most are 0."""
    scores = logits[0].double()
    scores = scores.softmax(-1) if choice is None else scores.sigmoid()
    ranks = scores if choice is None else scores + choice.double()
    shares = scores * (ranks >= ranks.topk(used).values[:, -1:])
    least = 0 if choice is None else 1e-6
    return shares / (shares.sum(-1, keepdim=True) + least) if renormalised else shares


def mixed(
    x: torch.Tensor,
    shares: torch.Tensor,
    weights: Sequence[Weights],  # gate, up, down
    biases: Sequence[torch.Tensor | None] = (None, None, None),
    activation: str = "silu",
) -> torch.Tensor:
    """Mix the results of all experts."""
    experts, lines = shares.shape[-1], x[0].double()
    of_each: list[torch.Tensor] = []
    held = [each.values.double().chunk(experts) for each in weights]
    added = [
        [torch.zeros(())] * experts if bias is None else bias.double().chunk(experts)
        for bias in biases
    ]
    for at in range(experts):
        (g, u, d), (g_bias, u_bias, d_bias) = [own[at] for own in held], [own[at] for own in added]
        hidden = gated(activation, lines @ g.T + g_bias, lines @ u.T + u_bias)
        of_each.append(shares[:, at, None] * (hidden @ d.T + d_bias))
    return sum(of_each, torch.zeros(()))[None]


def gated(activation: str, gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    if activation == "silu":
        return silu(gate) * up
    low = gate.clamp(max=7)
    return (up.clamp(-7, 7) + 1) * low * torch.sigmoid(1.702 * low)


def cases() -> Iterator[Case]:
    yield experts_case(("f32", "f32"), 7, 3, width=72, hidden=44)
    yield experts_case(("f32", "f32"), 130, 8, width=32, hidden=12, renormalised=False)
    yield experts_case(("q4gsw", "q4gsw"), 5, 1, width=96, hidden=64)
    yield experts_case(("q4_1", "q8_0"), 4, 4, width=96, hidden=32)
    yield experts_case(("f32", "f32"), 9, 4, width=40, hidden=36, scoring="sigmoid")
    clamped: dict[str, Any] = {"has_bias": True, "activation": "clamped"}
    for is_sum in (False, True):
        yield experts_case(("q8_0", "q8_0"), 6, 3, width=96, hidden=64, **clamped, is_sum=is_sum)
