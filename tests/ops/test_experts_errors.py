"""Refusals of a mixture of experts, word for word."""

from typing import Any

import numpy as np
import pytest

import py_runtime.ops  # noqa: F401  (fills the registry)
from py_runtime.base.dtypes import F32
from py_runtime.base.errors import GraphError
from py_runtime.graph.buffers import measure
from py_runtime.program.writer import ProgramWriter

WIDTH, HIDDEN, EXPERTS = 8, 4, 6


def mixture(
    used: int = 2,
    kinds: str = "f32 f32 f32",
    experts: int = EXPERTS,
    rows: tuple[int, int, int] = (EXPERTS * HIDDEN, EXPERTS * HIDDEN, EXPERTS * WIDTH),
    scoring: str = "softmax",
    has_choice: bool = False,
    activation: str = "silu",
    bias_rows: int = 0,
    residual: tuple[int, ...] | None = None,
) -> ProgramWriter:
    writer = ProgramWriter()
    x = writer.input("x", (1, 5, WIDTH), F32, dynamic=(1,))
    logits = writer.input("logits", (1, 5, experts), F32, dynamic=(1,))
    args: list[Any] = []
    for name, count, columns in zip(
        ("gate", "up", "down"), rows, (WIDTH, WIDTH, HIDDEN), strict=True
    ):
        args += [writer.constant(name, np.zeros((count, columns), np.float32)), None]
        args.append(
            writer.constant(f"{name} bias", np.zeros(bias_rows, np.float32)) if bias_rows else None
        )
    out = writer.tensor((1, 5, WIDTH), F32)
    choice = writer.constant("choice", np.zeros(experts, np.float32)) if has_choice else None
    how = (choice, used, True, scoring, 1.0, kinds)
    given = [x, logits, *how, *args, 32, activation]
    name = "inpage.experts.default" if residual is None else "inpage.experts_residual.default"
    if residual is not None:
        given.append(writer.constant("residual", np.zeros(residual, np.float32)))
    writer.op(name, *given, out)
    writer.output(out)
    return writer


def test_an_honest_one_is_taken() -> None:
    assert measure(mixture().program()).report.constants == 3 * EXPERTS * WIDTH * HIDDEN * 4


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"used": 0}, "0 of 6 experts; up to 64 of 512 are taken"),
        ({"used": 7}, "7 of 6 experts; up to 64 of 512 are taken"),
        ({"experts": 513}, "2 of 513 experts; up to 64 of 512 are taken"),
        ({"kinds": "f32 f32"}, "2 kinds for gate, up and down"),
        ({"kinds": "f32 f32 q5"}, "weights of the unknown kind 'q5'"),
        (
            {"experts": 5},
            "gate and up have [24, 24] rows of the kinds f32 and f32: they must be alike, and "
            "evenly of 5 experts",
        ),
        (
            {"rows": (24, 18, 48)},
            "gate and up have [24, 18] rows of the kinds f32 and f32: they must be alike, and "
            "evenly of 6 experts",
        ),
        ({"scoring": "luck"}, "experts scored by luck"),
        ({"has_choice": True}, "a bias of the choice that 6 experts by softmax do not have"),
        ({"activation": "relu"}, "the unknown activation 'relu'"),
        ({"bias_rows": 24}, "biases of experts that are not those of gate, up and down"),
        ({"rows": (24, 24, 42)}, "down of 42 rows does not give 6 times 8"),
    ],
)
def test_each_fault_is_named(given: dict[str, Any], text: str) -> None:
    with pytest.raises(GraphError) as caught:
        measure(mixture(**given).program())
    assert str(caught.value) == f"op 0 (inpage.experts.default): {text}"


def test_a_residual_is_as_large_as_what_it_is_added_to() -> None:
    with pytest.raises(GraphError, match=r"\[1, 1, 8\] cannot be added to \[1, 5, 8\]"):
        measure(mixture(residual=(1, 1, WIDTH)).program())
