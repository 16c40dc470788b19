"""The files in tests/pte/files are what ExecuTorch's exporter writes."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.packing import unpack
from tests.pte.make_files import FILES, make_all

pytestmark = pytest.mark.timeout(1800)


def test_made_anew_they_are_the_same(tmp_path: Path) -> None:
    for file in make_all():
        file.write(tmp_path)
    assert sizes(tmp_path) == sizes(FILES)
    for path in tmp_path.glob("*.npz"):
        for new, stored in zip(calls_in(path), calls_in(FILES / path.name), strict=True):
            assert new.keys() == stored.keys()
            assert new["method"] == stored["method"]
            for kind in new.keys() - {"method"}:
                for one, other in zip(new[kind], stored[kind], strict=True):
                    # Another processor rounds otherwise.
                    np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def sizes(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_size for path in folder.iterdir()}


def calls_in(path: Path) -> list[dict[str, Any]]:
    calls: list[dict[str, Any]] = unpack(path.read_bytes())
    return calls
