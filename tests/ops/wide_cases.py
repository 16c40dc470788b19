"""The cases of ops that have kernels for real GPUs."""

from tests.golden import Case
from tests.ops.test_ops import CASES

WIDE: list[Case] = [
    case for case in CASES if case.name.startswith(("sdpa", "rms_norm", "linear", "swiglu", "qkv"))
]
