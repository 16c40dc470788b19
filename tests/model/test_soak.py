"""Answers and loads leave nothing behind, natively; tests/app/test_soak.py is the page's."""

from pathlib import Path

import pytest

from tests.model.soak import soak
from tests.runners import NativeRunner, wait

pytestmark = pytest.mark.thorough


def test_what_is_alive_does_not_grow(native: NativeRunner, toy_model: Path) -> None:
    assert wait(soak(native.device, str(toy_model), answers=300, loads=10)) == []
