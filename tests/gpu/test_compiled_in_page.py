"""Chromium's compiler takes every kernel; which of them run in the page is in tests/ops."""

import pytest

from tests.gpu.compiled_in_browsers import BROKEN, COMPILE, batches
from tests.runners import PageRunner

pytestmark = [pytest.mark.browser, pytest.mark.thorough]


def test_every_kernel_compiles_with_each_file_that_plugs_into_it(in_page: PageRunner) -> None:
    compile_all = f"async given => {{ {COMPILE} }}"
    for kernels in batches("subgroups"):
        assert in_page.page.evaluate(compile_all, kernels) == []
    assert in_page.page.evaluate(compile_all, BROKEN) != []
