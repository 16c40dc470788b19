"""Fused linears in a graph that lies: whoever writes one by hand is told what is wrong with it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from py_runtime.base.dtypes import F32
from py_runtime.base.errors import GraphError
from py_runtime.gpu.kernel_target import PORTABLE
from py_runtime.graph.buffers import measure
from py_runtime.passes import DEFAULT_PASSES, run_passes
from py_runtime.program.json_format import dump_program, load_program
from py_runtime.program.writer import ProgramWriter
from py_runtime.pte import open_pte
from tests.pte.memory_source import MemorySource
from tests.runners import wait

DECODER = Path(__file__).parents[1] / "pte" / "files" / "decoder_4w.pte"
FUSED = "inpage.qkv_rotary_cache.default"
KIND, WEIGHTS, SCALES, GROUP_SIZE = range(3, 7)  # places of its arguments
Lie = Callable[[list[Any], int], None]  # of all values, and the one at that place


def become(value: dict[str, Any]) -> Lie:
    def change(values: list[Any], at: int) -> None:
        values[at] = value

    return change


def flatten_first(values: list[Any], at: int) -> None:
    """Give the first tensor of a list one dim."""
    first = values[values[at]["value"][0]]
    first["dims"] = [first["dims"][0] * first["dims"][1]]


LIES: dict[str, tuple[int, Lie, str]] = {
    "kind": (KIND, become({"kind": "string", "value": "q5"}), "weights of the unknown kind 'q5'"),
    "no weights": (WEIGHTS, become({"kind": "value_list", "value": []}), "no weights"),
    "no scales": (SCALES, become({"kind": "null"}), "of the kind q4gsw without scales"),
    "groups": (GROUP_SIZE, become({"kind": "int", "value": 0}), "groups of 0; they must be"),
    "flat weight": (WEIGHTS, flatten_first, r"a weight of \[\d+\]; it must be \[rows, columns\]"),
    "flat scales": (SCALES, flatten_first, r"scales are f32 \[\d+\]; the kind q4gsw has f32 of"),
}


def fused_decoder() -> dict[str, Any]:
    method = wait(open_pte(MemorySource(DECODER.read_bytes()))).method("forward")
    program = run_passes(method.delegate.program, PORTABLE, DEFAULT_PASSES)
    document: dict[str, Any] = json.loads(dump_program(program))
    return document


def test_the_honest_one_is_read() -> None:
    assert measure(load_program(json.dumps(fused_decoder()))).report.constants > 0


@pytest.mark.parametrize("name", LIES)
def test_each_lie_is_named(name: str) -> None:
    place, lie, fault = LIES[name]
    document = fused_decoder()
    call = next(op for op in document["ops"] if op["op"] == FUSED)
    lie(document["values"], call["args"][place])
    with pytest.raises(GraphError, match=fault):
        measure(load_program(json.dumps(document)))


def test_two_batches_at_once_are_refused() -> None:
    """An input of its own stands for x: what makes the other one would be refused before."""
    document = fused_decoder()
    call = next(op for op in document["ops"] if op["op"] == FUSED)
    x = document["values"][call["args"][0]]
    call["args"][0] = len(document["values"])
    document["values"].append({**x, "dims": [2, *x["dims"][1:]], "name": "batches"})
    document["inputs"].append({"value": call["args"][0], "dynamic": []})
    with pytest.raises(GraphError, match="must be of one batch"):
        measure(load_program(json.dumps(document)))


def test_scales_of_another_rank_are_named_before_anything_is_fused() -> None:
    """A pass's result is checked like any other op."""
    method = wait(open_pte(MemorySource(DECODER.read_bytes()))).method("forward")
    document = json.loads(dump_program(method.delegate.program))
    linears = [op for op in document["ops"] if op["op"] == "et_vk.linear_q4gsw.default"]
    for op in linears:
        document["values"][op["args"][2]]["dims"] = [64]
    with pytest.raises(GraphError, match=r"scales are f32 \[64\]|has rank 1; it must be 2"):
        measure(load_program(json.dumps(document)))


def gate_of_a_sum(
    factor: int = 1, columns: int = 8, outs: int = 2, number: int = 0, biases: int | None = None
) -> None:
    """Three rows of eight columns become gates of parts of four."""
    writer = ProgramWriter()
    x, residual = (
        writer.input(name, (3, width), F32, dynamic=(0,))
        for name, width in (("x", 8), ("residual", columns))
    )
    parts = writer.input("parts", (3, 2, 4), F32, dynamic=(0,))
    norm, scale, weight, bias = (
        writer.constant(name, np.ones(dims, np.float32))
        for name, dims in (("n", (8,)), ("f", (factor,)), ("w", (4, 8)), ("b", (4,)))
    )
    made = [writer.tensor((3, width), F32) for width in (4, 8)]
    given = (x, norm, 1e-5, residual, scale, "f32", [weight], None, 32)
    added = None if biases is None else [bias] * biases
    writer.op("inpage.gated_linear.of_sum", *given, added, parts, number, made[:outs])
    writer.output(*made[:outs])
    measure(writer.program())


@pytest.mark.parametrize(
    ("lie", "fault"),
    [
        ({"factor": 2}, r"a factor of \[2\], not \[1\]"),
        ({"columns": 12}, r"\[3, 12\] and their sum \[3, 8\] do not fit"),
        ({"outs": 1}, "1 outputs; they must be two"),
        ({"number": 2}, r"part 2 of \[3, 2, 4\] does not fit 4 rows"),
        ({"biases": 1}, "one weight without a bias is taken"),
    ],
)
def test_a_sum_and_its_gate_that_do_not_fit_are_told(lie: dict[str, int], fault: str) -> None:
    gate_of_a_sum()
    with pytest.raises(GraphError, match=fault):
        gate_of_a_sum(**lie)
