"""Graphs that share constants and states with another one of the same model."""

from pathlib import Path

import numpy as np
import pytest

from tests.runners import CpuRunner, PlacedToy, Runner

CASES = "tests.graph.sharing_cases"


def check(runner: Runner, where: str, own_bytes: int = 4 << 20) -> None:
    """Check a graph that stands on another one: of its own are intermediates alone."""
    found = runner.run(CASES, "derive", where=where)
    alone, alike, gone_on = found["logits"]
    np.testing.assert_array_equal(alone, alike)
    np.testing.assert_allclose(gone_on, alone, rtol=2e-3, atol=1e-4)
    constants, state, of_alike = found["constants"].tolist()
    assert (constants, state) == (0, 0), "everything lies the same way"
    assert of_alike < own_bytes
    assert found["left"] == 0
    assert "was unloaded" in found["ended"]


def test_a_graph_shares_with_its_base(toy: PlacedToy) -> None:
    check(toy.runner, toy.where)


def test_on_the_cpu(cpu: CpuRunner, toy_model: Path) -> None:
    check(cpu, str(toy_model))


@pytest.mark.model
@pytest.mark.thorough
def test_of_the_default_model(cpu: CpuRunner) -> None:
    check(cpu, "models/SmolLM2-135M-Instruct", own_bytes=16 << 20)  # weights and caches: 187 MB
