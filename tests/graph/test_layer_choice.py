"""Kernels by the times of a layer: of the model's shape, for one token and for many."""

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from py_runtime.base.dtypes import F32
from py_runtime.base.errors import GpuDeviceLostError, GpuValidationError
from py_runtime.folder import process_notes
from py_runtime.gpu.kernel_target import (
    BYTES,
    FLOAT_KERNELS,
    FLOATS,
    HALF_KERNELS,
    HALVES,
    MATRICES,
    MATRIX_KERNELS,
    MEMORY_KERNELS,
    MIN_WIDE_SUBGROUP,
    SUBGROUP_KERNELS,
    KernelTarget,
)
from py_runtime.graph import tuning
from py_runtime.graph.builder import Builder
from py_runtime.graph.layer_timing import (
    HEADS,
    MAX_BYTES,
    LayerShape,
    LayerTimes,
    row_bytes,
    shape_of,
    write_layer,
)
from py_runtime.graph.tuning import MEASURED, REMEMBERED, KernelChoice, best_for
from py_runtime.program import Program
from py_runtime.program.weight_kinds import BLOCK_KINDS, Q4GSW
from py_runtime.program.writer import ProgramWriter
from tests.graph.tuning_cases import posing
from tests.halves import having_halves
from tests.matrices import having_matrices
from tests.runners import NativeRunner, Runner, wait

BY_SUBGROUPS = KernelTarget(wide=True, lanes=32)
BY_MEMORY = replace(BY_SUBGROUPS, lanes=1)
BY_FLOATS = replace(BY_SUBGROUPS, one_token=FLOATS, many_tokens=FLOATS)
BY_MATRICES = replace(BY_SUBGROUPS, many_tokens=MATRICES)
COMPARED = {
    SUBGROUP_KERNELS: BY_SUBGROUPS,
    MEMORY_KERNELS: BY_MEMORY,
    FLOAT_KERNELS: BY_FLOATS,
    MATRIX_KERNELS: BY_MATRICES,
}
USUAL = (100.0, 1000.0)


def times_of(**each: tuple[float, float]) -> dict[str, LayerTimes]:
    return {name: LayerTimes(*pair) for name, pair in each.items()}


@pytest.mark.parametrize(
    ("memory", "floats", "lanes", "one_token", "many_tokens"),
    [
        (USUAL, USUAL, 32, BYTES, BYTES),
        ((98.0, 980.0), (98.0, 980.0), 32, BYTES, BYTES),  # as good as equal
        ((80.0, 800.0), USUAL, 1, BYTES, BYTES),
        ((100.0, 800.0), USUAL, 1, BYTES, BYTES),
        ((120.0, 500.0), USUAL, 32, BYTES, BYTES),  # decoding must not become slower
        (USUAL, (60.0, 2000.0), 32, FLOATS, BYTES),
        (USUAL, (120.0, 300.0), 32, BYTES, FLOATS),
        ((80.0, 800.0), (60.0, 300.0), 1, FLOATS, FLOATS),
        ((50.0, 500.0), (90.0, 900.0), 1, FLOATS, FLOATS),  # beside bytes with the same lanes
    ],
)
def test_what_is_noticeably_quicker_is_taken(
    memory: tuple[float, float],
    floats: tuple[float, float],
    lanes: int,
    one_token: str,
    many_tokens: str,
) -> None:
    times = times_of(subgroups=USUAL, memory=memory, floats=floats)
    best = best_for(BY_SUBGROUPS, COMPARED, times)
    assert (best.lanes, best.one_token, best.many_tokens) == (lanes, one_token, many_tokens)


@pytest.mark.parametrize(
    ("floats", "matrices", "one_token", "many_tokens"),
    [
        (USUAL, (10.0, 980.0), BYTES, BYTES),  # for many tokens alone
        (USUAL, (300.0, 400.0), BYTES, MATRICES),
        ((60.0, 300.0), (100.0, 400.0), FLOATS, FLOATS),
        ((60.0, 500.0), (100.0, 400.0), FLOATS, MATRICES),
        (None, (100.0, 400.0), BYTES, MATRICES),
    ],
)
def test_matrix_units_take_many_tokens_where_they_are_quickest(
    floats: tuple[float, float] | None,
    matrices: tuple[float, float],
    one_token: str,
    many_tokens: str,
) -> None:
    times = times_of(subgroups=USUAL, memory=USUAL, matrices=matrices)
    times |= times_of(floats=floats) if floats else {}
    best = best_for(BY_SUBGROUPS, COMPARED, times)
    assert (best.lanes, best.one_token, best.many_tokens) == (32, one_token, many_tokens)


def test_kernels_that_do_not_run_are_not_taken() -> None:
    only_floats = times_of(floats=(1.0, 1.0))
    assert best_for(BY_SUBGROUPS, COMPARED, only_floats) == BY_SUBGROUPS
    assert best_for(BY_SUBGROUPS, COMPARED, times_of(subgroups=USUAL)) == BY_SUBGROUPS


# What is remembered -----------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def forgetful() -> Iterator[None]:
    process_notes._in_memory.clear()
    yield
    process_notes._in_memory.clear()


class Straw:
    """Stands for both measurements: wide kernels win, and floats do for one token."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.matrices = LayerTimes(1e-4, 1e-2)
        self.fault: Exception | None = None
        self.shapes: list[LayerShape] = []
        self.names: list[str] = []
        monkeypatch.setattr(tuning, "time_products", self.time_products)
        monkeypatch.setattr(tuning, "time_layers", self.time_layers)

    async def time_products(self, device: Any, targets: list[KernelTarget]) -> list[float]:
        return [1.0 if target.wide else 2.0 for target in targets]

    async def time_layers(
        self, device: Any, targets: Mapping[str, KernelTarget], shape: LayerShape
    ) -> dict[str, LayerTimes]:
        self.shapes.append(shape)
        self.names = list(targets)
        if self.fault is not None:
            raise self.fault
        half, whole = LayerTimes(1e-4, 1e-2), LayerTimes(2e-4, 1e-2)
        own = {FLOAT_KERNELS: half, MATRIX_KERNELS: self.matrices}
        return {name: own.get(name, whole) for name in targets}


@pytest.fixture
def straw(monkeypatch: pytest.MonkeyPatch) -> Straw:
    return Straw(monkeypatch)


def program_of(kind: str = "q8_0", rows: int = 512, columns: int = 256) -> Program:
    """Two linears of a kind."""
    writer = ProgramWriter()
    x = writer.input("x", (4, columns), F32, dynamic=(0,))
    for at in range(2):
        out = writer.tensor((4, rows), F32)
        if kind in BLOCK_KINDS:
            own = BLOCK_KINDS[kind]
            weight = np.zeros(own.weight_dims(rows, columns), own.dtype.host)
            scales = np.zeros(own.scale_dims(rows, columns), own.scale_dtype.host)
            names = (f"weight {at}", f"scales {at}")
            parts = [writer.constant(*each) for each in zip(names, (weight, scales), strict=True)]
            writer.op(own.linear, x, *parts, None, out)
        else:
            weight = np.zeros((rows, columns), np.float32)
            writer.op("aten.linear.default", x, writer.constant(f"weight {at}", weight), None, out)
        writer.output(out)
    return writer.program()


def chosen(native: NativeRunner, program: Program, is_fallback: bool = False) -> KernelChoice:
    with posing(native.device, "straw", MIN_WIDE_SUBGROUP, is_fallback):
        return wait(tuning.choose_kernels(native.device, process_notes, None, program))


def test_a_shape_is_measured_once(native: NativeRunner, straw: Straw) -> None:
    first = chosen(native, program_of())
    assert first.why == MEASURED
    assert (first.target.one_token, first.target.many_tokens) == (FLOATS, BYTES)
    again = chosen(native, program_of())
    assert (again.why, again.target) == (REMEMBERED, first.target)
    assert again.times == first.times, "and is shown with its figures"
    assert chosen(native, program_of(rows=1024)).why == MEASURED
    assert len(straw.shapes) == 2


def test_as_many_shapes_are_remembered_as_a_note_holds(native: NativeRunner, straw: Straw) -> None:
    for number in range(1, tuning.MAX_SHAPES + 3):
        chosen(native, program_of(rows=256 * number))
    assert len(process_notes._in_memory[tuning.NOTE]["shapes"]) == tuning.MAX_SHAPES
    assert chosen(native, program_of(rows=256 * number)).why == REMEMBERED
    assert chosen(native, program_of(rows=256)).why == MEASURED


def test_floats_are_nothing_that_could_be_bytes(native: NativeRunner, straw: Straw) -> None:
    chosen(native, program_of("f32"))
    assert FLOAT_KERNELS not in straw.names


def test_products_in_halves_are_for_those_who_ask(native: NativeRunner, straw: Straw) -> None:
    with having_halves(native.device) as device:
        chosen(native, program_of())
        asked = wait(tuning.choose_kernels(device, process_notes, HALF_KERNELS, program_of()))
    assert FLOAT_KERNELS in straw.names
    assert HALF_KERNELS not in straw.names
    assert (asked.target.one_token, asked.target.many_tokens) == (HALVES, HALVES)


def test_matrix_units_are_remembered_for_many_tokens(native: NativeRunner, straw: Straw) -> None:
    """A note from a browser that has them is no answer for one that was started otherwise."""
    straw.matrices = LayerTimes(1e-4, 1e-3)
    with having_matrices(native.device) as device:
        for why in (MEASURED, REMEMBERED):
            choice = chosen(native, program_of())
            assert (choice.why, choice.target.kernels) == (why, MATRIX_KERNELS)
            assert (choice.target.one_token, choice.target.many_tokens) == (FLOATS, MATRICES)
            assert set(choice.times) >= {FLOAT_KERNELS, MATRIX_KERNELS}
        assert choice.wanted is None
        asked = wait(tuning.choose_kernels(device, process_notes, MATRIX_KERNELS, program_of()))
        assert (asked.target.one_token, asked.target.many_tokens) == (BYTES, MATRICES)
        assert asked.wanted == MATRIX_KERNELS
        assert chosen(native, program_of("mxfp4")).target.many_tokens == BYTES
        assert MATRIX_KERNELS not in straw.names, "their exponents leave the range of halves"
        assert chosen(native, program_of("f32")).target.many_tokens == MATRICES
    again = chosen(native, program_of())
    assert (again.why, again.target.many_tokens) == (MEASURED, BYTES)
    assert MATRIX_KERNELS not in straw.names


def test_matrix_units_can_be_left_to_those_who_ask(
    native: NativeRunner, straw: Straw, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuning, "ONLY_IF_ASKED", tuning.ONLY_IF_ASKED | {MATRIX_KERNELS})
    straw.matrices = LayerTimes(1e-4, 1e-3)
    with having_matrices(native.device) as device:
        assert chosen(native, program_of()).target.many_tokens == BYTES
        asked = wait(tuning.choose_kernels(device, process_notes, MATRIX_KERNELS))
    assert asked.target.many_tokens == MATRICES


def test_software_is_not_measured_layer_by_layer(native: NativeRunner, straw: Straw) -> None:
    assert chosen(native, program_of(), is_fallback=True).target.wide
    assert straw.shapes == []


def test_a_fault_leaves_what_was_chosen_before(native: NativeRunner, straw: Straw) -> None:
    straw.fault = GpuValidationError("no such luck")
    first = chosen(native, program_of())
    assert (first.why, first.target.one_token) == (MEASURED, BYTES)
    assert chosen(native, program_of()).target == first.target
    assert len(straw.shapes) == 1, "a slow fault is not met again"


def test_a_layer_without_end_is_not_waited_for(
    native: NativeRunner, straw: Straw, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def for_ever(*arguments: Any) -> dict[str, LayerTimes]:
        await asyncio.Event().wait()
        return {}

    monkeypatch.setattr(tuning, "time_layers", for_ever)
    monkeypatch.setattr(tuning, "LAYER_LIMITS", (0.0, 0.0))
    assert chosen(native, program_of()).target.one_token == BYTES


def test_a_lost_device_is_no_verdict(native: NativeRunner, straw: Straw) -> None:
    straw.fault = GpuDeviceLostError("gone")
    for _ in range(2):
        assert chosen(native, program_of()).target.one_token == BYTES
    assert len(straw.shapes) == 2


@pytest.mark.parametrize(
    "shapes",
    [
        7,
        {"": 7},
        {"kernels": "quick", "by": [BYTES, BYTES], "times": {}},
        {"kernels": MEMORY_KERNELS, "by": [BYTES], "times": {}},
        {"kernels": MEMORY_KERNELS, "by": [BYTES, "f64"], "times": {}},
        {"kernels": MEMORY_KERNELS, "by": [BYTES, HALVES], "times": {}},
        {"kernels": MEMORY_KERNELS, "by": [BYTES, BYTES], "times": {"memory": "soon"}},
    ],
)
def test_a_note_that_makes_no_sense_is_ignored(
    shapes: Any, native: NativeRunner, straw: Straw
) -> None:
    chosen(native, program_of())
    note = process_notes._in_memory[tuning.NOTE]
    assert str(straw.shapes[0]) in note["shapes"]
    note["shapes"] = shapes if isinstance(shapes, int) else {str(straw.shapes[0]): shapes}
    assert chosen(native, program_of()).why == MEASURED


# The layer ---------------------------------------------------------------------------------------


def test_the_shape_is_that_of_most_weights_that_repeat() -> None:
    shape = shape_of(program_of("q8_0", rows=500, columns=256))
    assert shape == LayerShape("q8_0", 32, 256, 512, *HEADS)
    assert shape_of(ProgramWriter().program()) is None


@pytest.mark.parametrize("args", [(), (0,), (0, 99, 0, 0, 0), (0, 0, 0, 0, 0)])
def test_a_program_that_is_faulty_has_no_shape(args: tuple[int, ...]) -> None:
    """Its fault is told when it is built."""
    program = program_of()
    ops = tuple(replace(call, args=args) for call in program.ops)
    assert shape_of(replace(program, ops=ops)) is None


def test_a_large_matrix_is_not_copied_whole() -> None:
    shape = shape_of(program_of("q8_0", rows=1 << 16, columns=1 << 10))
    assert shape is not None
    assert shape.rows * row_bytes("q8_0", shape.columns) == MAX_BYTES


@pytest.mark.parametrize("kind", [Q4GSW, "f32", *BLOCK_KINDS])
def test_a_layer_can_be_of_every_kind(kind: str, native: NativeRunner) -> None:
    """It is planned, which checks all arguments."""
    writer = write_layer(LayerShape(kind, 32, 256, 512, 4, 2, 32))
    builder = Builder(writer.program(), native.device.limits, BY_MEMORY)
    builder.build_ops()
    assert builder.steps


@pytest.mark.thorough  # compiles the kernels of two layers
def test_layers_are_timed_and_leave_nothing(runner: Runner) -> None:
    found, left = runner.run("tests.graph.tuning_cases", "layer_times")
    assert set(found) == {MEMORY_KERNELS, FLOAT_KERNELS}
    assert all(seconds > 0 for pair in found.values() for seconds in pair)
    assert left == 0
