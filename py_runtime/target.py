"""What decides between the variants of a kernel: the kind of adapter it will run on."""

from dataclasses import dataclass

from py_runtime.gpu import Device

SMALLEST_WIDE_SUBGROUP = 16  # software adapters have 4 or 8 lanes
WIDE_WORKGROUP_BYTES = 32 << 10  # what shaders/linear_gemm_wide.wgsl takes


@dataclass(frozen=True)
class Target:
    """`wide`: barriers and workgroup memory are cheap, and a subgroup of `lanes` works as one.

    Without it kernels keep everything in registers and share nothing, which suits software
    adapters and runs on every device.
    """

    wide: bool = False
    lanes: int = 1  # the smallest subgroup the device may use
    storage_buffers: int = 8  # a kernel may bind; every device allows this many
    binding_bytes: int = 128 << 20  # of one of them; every device allows as much

    @classmethod
    def of(cls, device: Device) -> "Target":
        lanes = device.adapter.subgroup_min_size if "subgroups" in device.features else 1
        wide = (
            "subgroups" in device.features
            and not device.adapter.is_fallback
            and lanes >= SMALLEST_WIDE_SUBGROUP
            and device.limits["max_compute_workgroup_storage_size"] >= WIDE_WORKGROUP_BYTES
        )
        buffers = device.limits["max_storage_buffers_per_shader_stage"]
        binding_bytes = device.limits["max_storage_buffer_binding_size"]
        return cls(wide, max(lanes, 1), buffers, binding_bytes)


PORTABLE = Target()
