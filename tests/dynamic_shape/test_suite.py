"""The suite, natively and in Chromium; scenarios.py says what stands behind each letter."""

from functools import cache

import numpy as np
import pytest
import torch

from py_runtime.program.json_format import dump_program
from tests.dynamic_shape.scenarios import SCENARIOS, Scenario, generator
from tests.golden import Case, check, compare
from tests.runners import Runner

pytestmark = [pytest.mark.torch, pytest.mark.thorough_in_page]

BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}


@cache
def cases_of(scenario: Scenario) -> list[Case]:
    """Export and have torch answer once, for both runners."""
    return scenario.cases()


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_equals_torch(scenario: Scenario, runner: Runner) -> None:
    for case in cases_of(scenario):
        check(case, runner)


def test_every_letter_is_there() -> None:
    assert {name[0] for name in BY_NAME} == set("ABCDEFGHIJKLM")  # N is below


def test_c_buffers_keep_their_identity(runner: Runner) -> None:
    (case,) = cases_of(BY_NAME["C rms_norm reused"])
    before, after = runner.run(
        "tests.in_runtime",
        "buffers_before_and_after",
        program=dump_program(case.writer.program()),
        constants=case.writer.constants,
        calls=[call.inputs for call in case.calls],
    )
    assert before == after


def test_d_static_graph_repeats_its_bytes_and_does_no_resize_work(runner: Runner) -> None:
    (case,) = cases_of(BY_NAME["D rms_norm static"])
    outputs, resized, writes = runner.run(
        "tests.in_runtime",
        "same_call_twice",
        program=dump_program(case.writer.program()),
        constants=case.writer.constants,
        inputs=case.calls[0].inputs,
    )
    assert outputs[0].tobytes() == outputs[1].tobytes()
    assert resized == [0, 0]
    assert writes[1] == 1, "the second run writes nothing but its input"


def test_n_chunked_prefill_equals_one_prefill(runner: Runner) -> None:
    """S = 16 at 0, 16 at 16, 16 at 32 against 48 at 0: the same logits, and the same next step."""
    _, writer = BY_NAME["M toy decoder"].export()
    tokens = torch.randint(0, 97, (1, 48), generator=generator(5)).numpy()
    chunks = [[tokens[:, at : at + 16], np.array([at])] for at in (0, 16, 32)]
    step = [np.array([[3]]), np.array([48])]
    calls = [[tokens, np.array([0])], step, *chunks, step]
    results = runner.run(
        "tests.in_runtime",
        "run_graph",
        program=dump_program(writer.program()),
        constants=writer.constants,
        calls=calls,
    )
    whole, whole_step, *_, chunked, chunked_step = [outputs[0] for outputs in results]
    tolerance = BY_NAME["M toy decoder"].tolerance
    compare("N chunked prefill", chunked, whole.astype(np.float64), tolerance)
    compare("N step after it", chunked_step, whole_step.astype(np.float64), tolerance)
