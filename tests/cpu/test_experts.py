"""Experts on the CPU with few tokens, as integers, and with more than are found at a time."""

from dataclasses import replace

import pytest

from tests.golden import TWO_PLANES, check
from tests.ops import cases_experts
from tests.runners import CpuRunner

pytestmark = pytest.mark.torch


@pytest.mark.parametrize("kind", ["q8_0", "f32"])
def test_few_and_many_tokens_of_an_expert(
    kind: str, cpu: CpuRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cases_experts, "LIVE_LINES", (700, 16, 17, 1, 40))
    case = cases_experts.experts_case((kind, kind), 3, 2, 32, 64, has_bias=True, is_sum=True)
    if kind != "f32":
        case = replace(case, tolerance=replace(case.tolerance, relative_rms=TWO_PLANES))
    check(case, cpu)
