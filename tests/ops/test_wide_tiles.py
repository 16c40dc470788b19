"""Matrix products of real GPUs take small tiles where large ones would be few.

Their attention takes several tiles at once where there are many rows: all are right.
"""

import pytest

from py_runtime import ops  # noqa: F401  (before kernels, which ops import)
from py_runtime.gpu.kernel_target import MEMORY_KERNELS, SUBGROUP_KERNELS
from tests.golden import check
from tests.ops.cases_attention import CachedAttention, prefills_and_decodes
from tests.ops.cases_fused import decoder_case, residual_case, swiglu_case
from tests.ops.wide_cases import by_int8_planes
from tests.runners import NativeRunner

pytestmark = [pytest.mark.torch, pytest.mark.thorough]


@pytest.mark.parametrize("enough", [1, 10**6])
def test_large_and_small_tiles_equal_torch(
    enough: int, native: NativeRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("py_runtime.ops.kernels.gemm.MIN_SQUARES", enough)
    swiglu = swiglu_case("q4_1", 35, 96, biased=False, normed=True)
    check(residual_case("q4gsw", 37, 100, biased=True), native, kernels=SUBGROUP_KERNELS)
    check(by_int8_planes(swiglu), native, kernels=SUBGROUP_KERNELS)
    check(by_int8_planes(decoder_case("q8_0", 6, 2, 16, 8)), native, kernels=SUBGROUP_KERNELS)


@pytest.mark.parametrize("width", [80, 256])  # invocations that are left over, fewer tiles at once
def test_attention_of_many_rows_equals_torch(width: int, native: NativeRunner) -> None:
    graph = CachedAttention(f"heads of {width}", 6, 2, width, tokens=70, context=200)
    calls = [(70, 0), (70, 70), (5, 140), (1, 145), (54, 146), (70, 0), (33, 70)]
    check(prefills_and_decodes(graph, calls), native, kernels=MEMORY_KERNELS)
