"""The compiled kernels, where there are none."""

from pathlib import Path

import pytest

from py_runtime.base.errors import GpuUnavailableError
from py_runtime.cpu import kernel_table


def test_a_checkout_without_them_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(kernel_table, "KERNELS_FOLDER", tmp_path)
    with pytest.raises(GpuUnavailableError, match=r"not compiled here .* run: make setup"):
        kernel_table.kernel_table.__wrapped__()
    with pytest.raises(GpuUnavailableError, match=r"has no kernels\.wasm"):
        kernel_table.module_code.__wrapped__("kernels.wasm")
