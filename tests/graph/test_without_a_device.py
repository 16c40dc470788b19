"""A graph before it has a device: shared memory, ops that must run, rings, states, measuring."""

import asyncio

import numpy as np
import pytest

import py_runtime.ops  # noqa: F401  (fills the registry)
from py_runtime.base.dtypes import F16, F32, DType
from py_runtime.base.errors import GraphError
from py_runtime.graph import tuning
from py_runtime.graph.buffers import measure
from py_runtime.graph.carried_states import carried_states, copied_bytes
from py_runtime.graph.load_checks import MAX_NAMES, check_ops
from py_runtime.graph.memory import Interval, MemoryReport, share
from py_runtime.graph.needed_ops import ops_needed
from py_runtime.graph.rings import Ring
from py_runtime.graph.timed_plan import TimedPlan
from py_runtime.program import Program, TensorValue
from py_runtime.program.writer import ProgramWriter
from tests.runners import wait

WIDTH = 8


# Memory ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second", "slots"),
    [
        ((0, 1), (2, 3), 1),  # one ends before the other begins
        ((0, 1), (1, 2), 2),  # one op reads the first and writes the second
        ((2, 3), (0, 1), 1),
        ((1, 2), (0, 1), 2),
        ((0, 3), (1, 2), 2),
        ((1, 1), (1, 1), 2),
    ],
)
def test_memory_is_shared_by_what_is_never_needed_at_once(
    first: tuple[int, int], second: tuple[int, int], slots: int
) -> None:
    plan = share([Interval("a", 40, *first), Interval("b", 20, *second)])
    assert plan.slot_bytes == (40, 20)[:slots]
    assert plan.slot_of == {"a": 0, "b": slots - 1}


def test_the_largest_come_first_and_take_the_first_slot_that_is_free() -> None:
    sizes = {"a": (10, 0, 0), "b": (30, 0, 1), "c": (20, 1, 2), "d": (5, 2, 3), "e": (5, 3, 3)}
    plan = share([Interval(key, *facts) for key, facts in sizes.items()])
    assert plan.slot_bytes == (30, 20)
    assert plan.slot_of == {"b": 0, "c": 1, "a": 1, "d": 0, "e": 1}
    assert share([]).slot_bytes == ()


def test_the_peak_counts_what_is_allocated() -> None:
    report = MemoryReport(constants=1, state=2, inputs=4, intermediates=8, unshared=16, uniforms=32)
    assert report.peak == 1 + 2 + 4 + 8 + 32


# Ops ---------------------------------------------------------------------------------------------


def chain(*parents: int, outputs: tuple[int, ...]) -> Program:
    """Write ops, each of which reads what an earlier one made; 0: the input."""
    writer = ProgramWriter()
    made = [writer.input("x", (1, WIDTH), F32)]
    for parent in parents:
        made.append(writer.tensor((1, WIDTH), F32))
        writer.op("aten.sigmoid.default", made[parent], made[-1])
    writer.output(*(made[at] for at in outputs))
    return writer.program()


@pytest.mark.parametrize(
    ("wanted", "runs"),
    [
        ([0], [True, True, False, False]),
        ([1], [True, False, True, False]),
        ([0, 1], [True, True, True, False]),
        ([2], [False, False, False, False]),  # the input itself
        ([], [False, False, False, False]),
    ],
)
def test_ops_run_that_a_wanted_output_needs(wanted: list[int], runs: list[bool]) -> None:
    program = chain(0, 1, 1, 3, outputs=(2, 3, 0))
    assert ops_needed(program, wanted).tolist() == runs


@pytest.mark.parametrize("count", [1, MAX_NAMES, MAX_NAMES + 1])
def test_of_unknown_ops_some_are_named(count: int) -> None:
    writer = ProgramWriter()
    x = writer.input("x", (1, WIDTH), F32)
    for number in [*range(count), 0]:
        writer.op(f"test.unknown_{number:02}", x, writer.tensor((1, WIDTH), F32))
    with pytest.raises(GraphError, match="ops that this engine does not have") as caught:
        check_ops(writer.program())
    assert str(caught.value).count("test.unknown_") == min(count, MAX_NAMES)
    assert ("and 1 more" in str(caught.value)) == (count > MAX_NAMES)


# States ------------------------------------------------------------------------------------------


def convolved(width: int, dtypes: tuple[DType, ...] = (F32,)) -> Program:
    """Write convolutions, each with a state of its own, and the first with its state again."""
    writer = ProgramWriter()
    x = writer.input("x", (1, 4, width), F32)
    start = writer.symint_input("start_pos")
    weight = writer.constant("weight", np.zeros((width, 3), np.float32))
    states = [writer.state(f"state {at}", (1, 2, width), dtype) for at, dtype in enumerate(dtypes)]
    for state in [*states, states[0]]:
        out = writer.tensor((1, 4, width), F32)
        writer.op("inpage.conv_silu.default", x, weight, state, start, out)
        writer.output(out)
    return writer.program()


def test_each_carried_state_is_copied_once() -> None:
    program = convolved(WIDTH, (F32, F32))
    values = [program.values[at] for at in carried_states(program)]
    assert [value.name for value in values if isinstance(value, TensorValue)] == [
        *("state 0", "state 1"),
    ]
    assert copied_bytes(program) == 2 * 2 * WIDTH * 4
    assert carried_states(chain(0, outputs=(1,))) == []
    assert copied_bytes(chain(0, outputs=(1,))) == 0


def test_copies_of_states_take_whole_words() -> None:
    assert copied_bytes(convolved(1, (F16, F16))) == 2 * 4
    assert copied_bytes(convolved(3, (F16,))) == 12


def test_memory_is_planned_for_a_state_and_three_copies_of_it() -> None:
    assert measure(convolved(WIDTH)).report.state == (1 + 3) * 2 * WIDTH * 4
    assert measure(chain(0, outputs=(1,))).report.state == 0


# Rings -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("position", "written", "can"),
    [
        (0, 1000, True),  # there is nothing to see
        (1, 6, True),
        (1, 7, False),  # the row of position 0 has been reused
        (4, 9, True),
        (4, 10, False),
        (9, 9, True),
    ],
)
def test_a_ring_goes_on_where_its_window_is_still_there(
    position: int, written: int, can: bool
) -> None:
    assert Ring(rows=6, window=2).can_go_on(position, written) is can


# The measurement ---------------------------------------------------------------------------------


def measured(monkeypatch: pytest.MonkeyPatch, *takes: float) -> tuple[float, list[int]]:
    """Have a product measured whose submissions take this long; also how many were repeated."""
    product = TimedPlan.__new__(TimedPlan)
    product._rounds, product._sample_seconds = tuning.ROUNDS, tuning.SAMPLE_SECONDS
    repeats: list[int] = []
    given = iter(takes)

    async def submit(self: TimedPlan) -> float:
        repeats.append(self._repeats)
        await asyncio.sleep(0)
        return next(given)

    monkeypatch.setattr(TimedPlan, "_submit", submit)
    product._repeats = 1
    return wait(product.seconds()), repeats


def test_more_products_are_submitted_until_they_take_long_enough(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    enough = tuning.SAMPLE_SECONDS
    assert measured(monkeypatch, enough) == (enough / tuning.ROUNDS, [1])
    assert measured(monkeypatch, enough / 2, enough) == (enough / 2 / tuning.ROUNDS, [1, 2])
    seconds, repeats = measured(monkeypatch, *[enough / 100] * 9)
    assert repeats == [1, 2, 4, 8]
    assert seconds == pytest.approx(enough / 100 / 8 / tuning.ROUNDS)
