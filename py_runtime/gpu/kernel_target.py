"""What decides between the variants of a kernel: the kind of adapter it will run on."""

from dataclasses import dataclass

from py_runtime.gpu import Device
from py_runtime.gpu.shader_figures import workgroup_memory

SMALLEST_WIDE_SUBGROUP = 16  # software adapters have 4 or 8 lanes
WIDE_WORKGROUP_BYTES = workgroup_memory("linear/gemm_wide")  # no wide kernel takes more


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
    f16_kv: bool = False  # caches of keys and values hold halves

    @classmethod
    def of(cls, device: Device) -> "Target":
        """By features alone; tuning.choose looks closer where they mislead."""
        lanes = device.adapter.subgroup_min_size if "subgroups" in device.features else 1
        is_software = device.adapter.is_fallback or lanes < SMALLEST_WIDE_SUBGROUP
        wide = can_be_wide(device) and not is_software
        buffers = device.limits["max_storage_buffers_per_shader_stage"]
        binding_bytes = device.limits["max_storage_buffer_binding_size"]
        return cls(wide, max(lanes, 1), buffers, binding_bytes, "shader-f16" in device.features)


def can_be_wide(device: Device) -> bool:
    """Whether the wide kernels run there at all."""
    workgroup_bytes = device.limits["max_compute_workgroup_storage_size"]
    return "subgroups" in device.features and workgroup_bytes >= WIDE_WORKGROUP_BYTES


PORTABLE = Target()
