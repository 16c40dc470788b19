"""The cases of ops that have kernels for real GPUs."""

from dataclasses import replace

from py_runtime.program.weight_kinds import BLOCK_KINDS
from tests.golden import Case
from tests.ops.test_ops import CASES

TWO_LIMBS = 1e-4  # relative RMS: columns of x have 15 bits, a block with one scale


def by_limbs(case: Case) -> Case:
    """Allow the distance from torch that products of many lines by whole numbers have."""
    near = max(case.tolerance.relative_rms, TWO_LIMBS)
    return replace(case, tolerance=replace(case.tolerance, relative_rms=near))


def _multiplies_blocks(case: Case) -> bool:
    return (
        case.name.startswith(("linear", "swiglu", "qkv", "q_rotary")) and " f32 " not in case.name
    )


WIDE: list[Case] = [
    by_limbs(case) if _multiplies_blocks(case) else case
    for case in CASES
    if case.name.startswith(
        ("sdpa", "rms_norm", "linear", "swiglu", "qkv", "q_rotary", "gated_delta")
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
