"""GPU time by op: `graph.profile` counts what runs, and changes nothing."""

from typing import Any

import numpy as np
import pytest

from py_runtime.base.dtypes import F32
from py_runtime.program.json_format import dump_program
from py_runtime.program.writer import ProgramWriter
from tests.graph.engine_graphs import WIDTH, norm_of, rows
from tests.runners import Runner

CASES = "tests.graph.profile_cases"
NORMS = 3
LABEL, KIND, COUNT, MICROSECONDS, SHARE = range(5)


def two_outputs() -> ProgramWriter:
    """Write x → rms_norm, three times over; and x + x, which only the second output needs."""
    writer = ProgramWriter()
    value = x = writer.input("x", (1, 16, WIDTH), F32, dynamic=(1,))
    for _ in range(NORMS):
        value = norm_of(writer, value)
    twice = writer.tensor((1, 16, WIDTH), F32)
    writer.op("aten.add.Tensor", x, x, 1, twice)
    writer.output(value, twice)
    return writer


def profile(runner: Runner, case: str = "profile", **arguments: Any) -> dict[str, Any]:
    writer = two_outputs()
    found: dict[str, Any] = runner.run(
        CASES,
        case,
        program=dump_program(writer.program()),
        constants=writer.constants,
        inputs=[rows(5)],
        **arguments,
    )
    return found


def may_stand_still(runner: Runner) -> bool:
    """Return whether the clock may stand still: a browser may round it to 0.1 ms."""
    return runner.name == "page"


def test_a_profile_counts_every_dispatch(runner: Runner) -> None:
    found = profile(runner)
    kinds = {row[LABEL]: row[COUNT] for row in found["kinds"]}
    assert kinds == {"et_vk.rms_norm.default": NORMS, "aten.add.Tensor": 1}
    norms = [row for row in found["kernels"] if "reduce/rms_norm" in row[LABEL]]
    assert [row[COUNT] for row in norms] == [NORMS]
    assert norms[0][LABEL].startswith("et_vk.rms_norm.default ")
    assert [row[LABEL].split(" (")[0] for row in found["dispatches"]] == [
        f"op {place}" for place in range(NORMS + 1)
    ]
    has_time = found["microseconds"] > 0
    assert has_time or may_stand_still(runner)
    for name in ("kinds", "kernels", "dispatches"):
        assert sum(row[SHARE] for row in found[name]) == pytest.approx(float(has_time))
        total = sum(row[MICROSECONDS] for row in found[name])
        assert total == pytest.approx(found["microseconds"])
    times = [row[MICROSECONDS] for row in found["kinds"]]
    assert times == sorted(times, reverse=True)


def test_what_an_output_does_not_need_is_not_timed(runner: Runner) -> None:
    found = profile(runner, outputs=[0])
    assert [row[KIND] for row in found["dispatches"]] == ["et_vk.rms_norm.default"] * NORMS
    assert found["counted"] == 3 * NORMS, "two runs, and one to warm up"


def test_a_profile_leaves_nothing_behind(runner: Runner) -> None:
    found = profile(runner)
    assert found["buffers left"] == 0
    for before, after in zip(found["before"], found["after"], strict=True):
        np.testing.assert_array_equal(before, after)


def test_a_plan_longer_than_a_query_set_goes_in_parts(runner: Runner) -> None:
    found = profile(runner, "profile_in_parts", max_timed=3)
    assert [row[COUNT] for row in found["dispatches"]] == [1] * (NORMS + 1)
    first, *others = [row[MICROSECONDS] for row in found["dispatches"]]
    assert first > 0
    assert others == pytest.approx([first * ticks for ticks in (2, 3, 4)])


def test_a_device_without_timestamps_says_so(runner: Runner) -> None:
    writer, x = two_outputs(), rows(5)
    code, text, outputs = runner.run(
        CASES,
        "profile_without_timestamps",
        program=dump_program(writer.program()),
        constants=writer.constants,
        inputs=[x],
    )
    assert code == "gpu_unavailable"
    assert "'timestamp-query'" in text
    assert "\n" not in text
    np.testing.assert_array_equal(outputs[1], x + x)
