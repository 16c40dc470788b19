"""Families exported in floats, which all tests of the glass engine share."""

from collections.abc import Callable
from typing import Any

import pytest

Exported = Callable[[str], tuple[Any, str]]


@pytest.fixture(scope="session")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Exported:
    """Return a function that exports a family: (torch's model, the folder)."""
    from export.command import main
    from tests.export.checkpoints import save_checkpoint

    made: dict[str, tuple[Any, str]] = {}

    def export(family: str) -> tuple[Any, str]:
        if family not in made:
            folder = tmp_path_factory.mktemp("models")
            model = save_checkpoint(folder / "checkpoint", family)
            out = folder / "exported"
            assert main([str(folder / "checkpoint"), "-o", str(out), "--quant", "none"]) == 0
            made[family] = model, str(out)
        return made[family]

    return export
