"""The dynamic-shape suite on the CPU; tests/dynamic_shape/scenarios.py says what the letters mean."""

import pytest

from tests.dynamic_shape import test_suite as suite
from tests.dynamic_shape.scenarios import SCENARIOS, Scenario
from tests.golden import check
from tests.runners import CpuRunner

pytestmark = pytest.mark.torch


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_equals_torch(scenario: Scenario, cpu: CpuRunner) -> None:
    for case in suite.cases_of(scenario):
        check(case, cpu)


def test_c_buffers_keep_their_identity(cpu: CpuRunner) -> None:
    suite.test_c_buffers_keep_their_identity(cpu)


def test_d_static_graph_repeats_its_bytes_and_does_no_resize_work(cpu: CpuRunner) -> None:
    suite.test_d_static_graph_repeats_its_bytes_and_does_no_resize_work(cpu)


def test_n_chunked_prefill_equals_one_prefill(cpu: CpuRunner) -> None:
    suite.test_n_chunked_prefill_equals_one_prefill(cpu)
