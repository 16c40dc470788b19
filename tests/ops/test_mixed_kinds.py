"""Weights of several kinds in one op: for one token two kinds share a kernel.

They do where it can bind the weights of both and each of its workgroups has rows of one.
"""

import pytest

from py_runtime.gpu.kernel_target import MEMORY_KERNELS, KernelTarget
from py_runtime.graph.builder import Builder, LaunchSpec
from tests.gguf.test_mixes import ROOMY
from tests.golden import Case, check
from tests.ops.cases_fused import decoder_case, summed_case, swiglu_case
from tests.ops.new_kernels import LEAST
from tests.ops.wide_cases import by_int8_planes
from tests.runners import NativeRunner, Runner

pytestmark = [pytest.mark.torch, pytest.mark.thorough]

MIXED, ALONE = "linear/gemv_mixed_int8", "linear/gemv_int8"
HEADS = (8, 2, 32)  # rows of q and k, and those of v, are whole workgroups
FEW_BUFFERS = [  # no more than software adapters bind
    decoder_case("q4_k + q4_k + q6_k", *HEADS, 32, heads_normed=True, columns=768),
    decoder_case("q6_k + q5_k + q5_k", *HEADS, None, rows_normed=True, biased=True, columns=256),
    # More than is laid out at once, and two blocks of a row that share words of scales.
    swiglu_case("q4_1 + q5_0", 48, 3168, biased=True, normed=True),
    swiglu_case("iq4_xs + q5_k", 32, 256, biased=False, normed=False),
]
MANY_BUFFERS = [  # and how many
    (decoder_case("q4_k + q4_k + q6_k", *HEADS, 32, columns=256), 12),
    (decoder_case("q5_k + q5_k + q6_k", *HEADS, 32, biased=True, columns=256), 12),
    (summed_case("q4_k + q6_k", 32, 256, normed=True, factor=0.75), 12),
]
NOT_ONE = [
    (decoder_case("q4_k + q5_k + q6_k", *HEADS, 32, columns=256), [MIXED, ALONE]),
    (decoder_case("q4_k + q4_k + q6_k", 2, 1, 10, 10, columns=256), [ALONE, ALONE]),
    (decoder_case("f32 + f32 + q8_0", *HEADS, 32), ["linear/gemv_wide", ALONE]),
    (swiglu_case("q4gsw + q4_0", 32, 96, biased=False, normed=True), [ALONE, ALONE]),
]


def names(cases: list[Case]) -> list[str]:
    return [case.name for case in cases]


def gemv_kernels(case: Case, storage_buffers: int) -> list[str]:
    """Return the kernels for one token."""
    target = KernelTarget(wide=True, lanes=32, storage_buffers=storage_buffers)
    builder = Builder(case.writer.program(), ROOMY, target)
    builder.build_ops()
    labels = [step.pipeline.label for step in builder.steps if isinstance(step, LaunchSpec)]
    return [label.split("+")[0] for label in labels if label.startswith("linear/gemv")]


@pytest.mark.parametrize("case", FEW_BUFFERS, ids=names(FEW_BUFFERS))
def test_two_kinds_are_one_kernel(case: Case, native: NativeRunner) -> None:
    assert gemv_kernels(case, 10) == [MIXED]
    check(by_int8_planes(case), native, MEMORY_KERNELS)


def test_two_kinds_in_the_smallest_workgroups(native: NativeRunner) -> None:
    check(by_int8_planes(FEW_BUFFERS[0]), native, MEMORY_KERNELS, limits=LEAST)


@pytest.mark.browser
def test_two_kinds_in_the_page(in_page: Runner) -> None:
    check(by_int8_planes(FEW_BUFFERS[3]), in_page, MEMORY_KERNELS)


@pytest.mark.parametrize(
    ("case", "buffers"), MANY_BUFFERS, ids=names([case for case, _ in MANY_BUFFERS])
)
def test_a_device_that_binds_less_has_a_kernel_for_each(case: Case, buffers: int) -> None:
    assert gemv_kernels(case, buffers) == [MIXED]
    assert gemv_kernels(case, buffers - 1) == [ALONE, ALONE]


@pytest.mark.parametrize(("case", "kernels"), NOT_ONE, ids=names([case for case, _ in NOT_ONE]))
def test_what_one_kernel_cannot_take(case: Case, kernels: list[str]) -> None:
    """A third kind, rows that end inside a workgroup, floats, and scales that lie across rows."""
    assert gemv_kernels(case, 16) == kernels
