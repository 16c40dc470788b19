"""Fixtures of the tests of .pte files."""

from pathlib import Path
from typing import Any

import pytest

from tests.pte.loaded import loaded
from tests.runners import Runner


@pytest.fixture
def run(runner: Runner, tmp_path: Path) -> Any:
    """Load the bytes of a file, run it with each set of inputs, return the outputs of each."""

    def load_and_run(
        file: bytes, *calls: list[Any], name: str = "forward", data: bytes | None = None
    ) -> list[Any]:
        path = tmp_path / f"{tmp_path.name}.pte"
        path.write_bytes(file)
        data_path = path.with_suffix(".ptd")
        if data is not None:
            data_path.write_bytes(data)
        files = [] if data is None else [data_path]
        with loaded(runner, path, files) as module:
            return [module.run(inputs, name) for inputs in calls]

    return load_and_run
