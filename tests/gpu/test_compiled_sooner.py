"""Kernels of the tests in other words than those of users (tests/compiled_sooner.py).

Both are right, whichever way WGSL is translated.
"""

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Playwright

from py_runtime import gpu
from py_runtime.gpu.shader_sources import all_shaders
from tests.compiled_sooner import BUILT_IN, IN_TURNS, sooner
from tests.gpu import gpu_cases
from tests.runners import NativeRunner, PageRunner, Runner, patient, started_page, wait
from tools.browser import launch_flags

EDGES = (0x00000000, 0x7F7F7F7F, 0x80808080, 0xFFFFFFFF, 0x017F80FF, 0xFF80017F)
RANDOM = np.random.default_rng(4).integers(0, 1 << 32, (500, 2), np.uint32)
A, B = np.concatenate([np.array(list(product(EDGES, EDGES)), np.uint32), RANDOM]).T.copy()


def check(products: np.ndarray) -> None:
    wide = [words.view(np.int8).reshape(-1, 4).astype(np.int32) for words in (A, B)]
    np.testing.assert_array_equal(products, (wide[0] * wide[1]).sum(1))


@pytest.fixture
def page_as_users_have_it(
    playwright: Playwright, browser_type_launch_args: dict[str, Any], site_url: str
) -> Iterator[PageRunner]:
    browser = playwright.chromium.launch(**browser_type_launch_args | {"args": launch_flags()})
    with started_page(patient(browser), site_url) as runner:
        yield runner
    browser.close()


def test_products_that_are_written_out(runner: Runner) -> None:
    check(runner.run(gpu_cases.__name__, "products_of_bytes", a=A, b=B))


def test_the_built_in_natively(native: NativeRunner) -> None:
    untouched = wait(gpu.request_device())
    check(wait(gpu_cases.products_of_bytes(untouched, A, B)))
    sources = [spec.source for spec in untouched._pipelines]
    assert all(BUILT_IN in source for source in sources)
    untouched.destroy()


@pytest.mark.browser
@pytest.mark.thorough  # a page of its own
def test_the_built_in_in_the_page(page_as_users_have_it: PageRunner) -> None:
    check(page_as_users_have_it.run(gpu_cases.__name__, "products_of_bytes", a=A, b=B))


def test_the_tests_own_kernels_have_no_built_in(native: NativeRunner) -> None:
    native.run(gpu_cases.__name__, "products_of_bytes", a=A, b=B)
    assert not any(BUILT_IN in spec.source for spec in native.device._pipelines)
    plain = gpu.PipelineSpec("plain", gpu_cases.SCALE_AND_ADD)
    assert sooner(plain) == plain


def test_eight_tokens_take_turns() -> None:
    kernel = all_shaders().file("linear/fragments/tiles_by_blocks").source
    in_turns = sooner(gpu.PipelineSpec("in turns", kernel)).source
    assert IN_TURNS in in_turns
    assert in_turns.count("block_dots(rows,") == 1
    assert kernel.count("block_dots(rows,") == 8
