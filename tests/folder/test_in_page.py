"""The reader needs no disk: bytes that a page has fetched are enough."""

from pathlib import Path

import numpy as np

from tests.folder.small_model import bytes_of_folder, small_result, write_small
from tests.runners import Runner


def test_a_model_from_bytes_runs(runner: Runner, tmp_path: Path) -> None:
    write_small(tmp_path / "small")
    files = {
        name: np.frombuffer(data, np.uint8)
        for name, data in bytes_of_folder(tmp_path / "small").items()
    }
    x = np.random.default_rng(3).standard_normal((3, 40), np.float32)
    out = runner.run("tests.folder.page_cases", "run_from_bytes", files=files, x=x)
    np.testing.assert_array_equal(out, small_result(x))
