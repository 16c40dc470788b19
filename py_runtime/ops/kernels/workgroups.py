"""How large the workgroups of wide kernels may be: a few limits of the device decide."""

from collections.abc import Mapping

ROOMY_BYTES, ROOMY_INVOCATIONS = 32 << 10, 256


def is_roomy(limits: Mapping[str, int]) -> bool:
    """Whether workgroups may have more than every device allows, as graphics processors' may."""
    return (
        limits["max_compute_workgroup_storage_size"] >= ROOMY_BYTES
        and limits["max_compute_invocations_per_workgroup"] >= ROOMY_INVOCATIONS
    )


def usual_workgroup(limits: Mapping[str, int]) -> int:
    """The invocations of kernels that take workgroups of any size; more are of little use."""
    return 256 if is_roomy(limits) else 128
