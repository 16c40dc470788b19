"""Fixtures by which tests that were written for a GPU run on the CPU.

A file here names tests of other folders; whatever device they ask for, they get the CPU.
"""

import pytest

from tests.pte.conftest import run  # noqa: F401  (a fixture)
from tests.runners import CpuRunner


@pytest.fixture(scope="session")
def native(cpu: CpuRunner) -> CpuRunner:
    return cpu


@pytest.fixture
def runner(cpu: CpuRunner) -> CpuRunner:
    return cpu
