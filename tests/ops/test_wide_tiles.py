"""Matrix products of real GPUs take small tiles where large ones would be few: both are right."""

import pytest

from py_runtime import ops  # noqa: F401  (before linear_kernels, which ops import)
from py_runtime.gpu.kernel_target import SUBGROUP_KERNELS
from tests.golden import check
from tests.ops.cases_fused import decoder_case, residual_case, swiglu_case
from tests.ops.wide_cases import by_limbs
from tests.runners import NativeRunner


@pytest.mark.parametrize("enough", [1, 10**6])
def test_large_and_small_tiles_equal_torch(
    enough: int, native: NativeRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("py_runtime.ops.kernels.linears.ENOUGH_SQUARES", enough)
    swiglu = swiglu_case("q4_1", 35, 96, biased=False, normed=True)
    check(residual_case("q4gsw", 37, 100, biased=True), native, kernels=SUBGROUP_KERNELS)
    check(by_limbs(swiglu), native, kernels=SUBGROUP_KERNELS)
    check(by_limbs(decoder_case("q8_0", 6, 2, 16, 8)), native, kernels=SUBGROUP_KERNELS)
