"""Ops against torch with products in halves, as floats that are rounded where halves would be."""

from collections.abc import Hashable
from dataclasses import replace

import pytest

from py_runtime.gpu.kernel_target import HALF_KERNELS, HALVES, KernelTarget
from tests.golden import Case
from tests.golden import check as check_case
from tests.ops.new_kernels import parts_of, with_new_kernels
from tests.ops.test_float_kernels import IN_BLOCKS
from tests.runners import NativeRunner, PageRunner, Runner

pytestmark = [pytest.mark.torch, pytest.mark.thorough]

IN_HALVES = KernelTarget(wide=True, storage_buffers=10, one_token=HALVES, many_tokens=HALVES)
ROUNDED = 4e-3  # relative RMS: what halves may cost an op, whose products may cancel out
ONCE = with_new_kernels(IN_BLOCKS, IN_HALVES)


def with_each_kernel() -> list[Case]:
    """Return a case for each kernel in halves: their fragments are in the page by other kernels."""
    seen: set[Hashable] = set()
    found = []
    for case in ONCE:
        parts = parts_of(case, IN_HALVES)
        kernels = {part[0] for part in parts if isinstance(part, tuple) and "f16" in part[0]}
        if not kernels <= seen:
            found.append(case)
        seen |= kernels
    return found


def check(case: Case, runner: Runner, enough_tiles: int | None = None) -> None:
    own = case.tolerance
    relative = max(own.relative_rms, ROUNDED)
    rounded = replace(own, absolute=20 * own.absolute, relative_rms=relative, of_each=1e-2)
    check_case(replace(case, tolerance=rounded), runner, HALF_KERNELS, enough_tiles=enough_tiles)


@pytest.mark.parametrize("enough_tiles", [None, 1])
@pytest.mark.parametrize("case", ONCE, ids=lambda case: case.name)
def test_op_equals_torch_by_halves(
    case: Case, enough_tiles: int | None, native: NativeRunner
) -> None:
    check(case, native, enough_tiles)


@pytest.mark.browser
@pytest.mark.parametrize("case", with_each_kernel(), ids=lambda case: case.name)
def test_op_equals_torch_by_halves_in_the_page(case: Case, in_page: PageRunner) -> None:
    check(case, in_page)
