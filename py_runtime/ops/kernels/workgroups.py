"""The size of the workgroups of wide kernels, by the device's limits."""

from collections.abc import Mapping

ROOMY_BYTES, ROOMY_INVOCATIONS = 32 << 10, 256


def is_roomy(limits: Mapping[str, int]) -> bool:
    """Return whether workgroups may be larger than every device allows, as on GPUs."""
    return (
        limits["max_compute_workgroup_storage_size"] >= ROOMY_BYTES
        and limits["max_compute_invocations_per_workgroup"] >= ROOMY_INVOCATIONS
    )


def usual_workgroup(limits: Mapping[str, int]) -> int:
    """Return the invocations for kernels that take any workgroup; more are of little use."""
    return 256 if is_roomy(limits) else 128
