"""The cases of ops that have kernels for real GPUs."""

from dataclasses import replace

from py_runtime.program.weight_kinds import BLOCK_KINDS
from tests.golden import TWO_PLANES, Case
from tests.ops.test_ops import CASES


def by_int8_planes(case: Case) -> Case:
    """Return the case with the tolerance of products by two int8 planes."""
    near = max(case.tolerance.relative_rms, TWO_PLANES)
    return replace(case, tolerance=replace(case.tolerance, relative_rms=near))


def multiplies_blocks(case: Case) -> bool:
    """Return whether the case may multiply weights in blocks."""
    ops = ("linear", "swiglu", "qkv", "q_rotary", "gated_linear")
    return case.name.startswith(ops) and " f32 " not in case.name


WIDE: list[Case] = [
    by_int8_planes(case) if multiplies_blocks(case) else case
    for case in CASES
    if case.name.startswith(
        ("sdpa", "rms_norm", "linear", "swiglu", "qkv", "q_rotary", "gated_delta", "selective_scan")
    )
]

# Products of weights in blocks share nothing among lanes: they are the same kernels on every GPU.
_IN_BLOCKS = tuple(
    f"{op}{kind.name} "
    for op in ("linear_", "linear_residual ", "swiglu ")
    for kind in BLOCK_KINDS.values()
    if kind.has_scales
)
SHARING: list[Case] = [case for case in WIDE if not case.name.startswith(_IN_BLOCKS)]
