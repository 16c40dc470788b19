"""The kind of adapter a kernel will run on, which decides between the kernel's variants."""

from dataclasses import dataclass, replace

from py_runtime.base.dtypes import F16, F32
from py_runtime.gpu import CPU, SUBGROUP_MATRICES, AdapterInfo, Device

MIN_WIDE_SUBGROUP = 16  # software adapters have 4 or 8 lanes

# Kernels by name, as users choose them.
PORTABLE_KERNELS, SUBGROUP_KERNELS, MEMORY_KERNELS = "portable", "subgroups", "memory"
FLOAT_KERNELS = "floats"  # those, with products in floats
HALF_KERNELS = "halves"  # the same in halves, where the adapter has shader-f16
MATRIX_KERNELS = "matrices"  # those whose products of many tokens go by matrix units
CPU_KERNELS = "cpu"
GPU_KERNELS = (PORTABLE_KERNELS, SUBGROUP_KERNELS, MEMORY_KERNELS, FLOAT_KERNELS)
KERNELS = (*GPU_KERNELS, HALF_KERNELS, MATRIX_KERNELS, CPU_KERNELS)
HAS_HALVES, HAS_SUBGROUPS = "shader-f16", "subgroups"  # features

# Arithmetics of products with weights in blocks: dot4I8Packed, for which some GPUs have no
# instruction, floats, or halves whose sums are floats from a block on.
BYTES, FLOATS, HALVES = "bytes", "f32", "f16"
ARITHMETICS = (BYTES, FLOATS, HALVES)
BY_ARITHMETIC = {FLOATS: FLOAT_KERNELS, HALVES: HALF_KERNELS}  # the names of wide kernels
# That of many tokens alone, and of weights of nearly any kind: halves, in matrix units with sums in
# floats. Weights that these do not take have the arithmetic of one token.
MATRICES = "matrices"
MATRIX_LANES, MATRIX_BYTES = 32, 20 << 10  # subgroups and workgroup memory of linear/gemm_matrices


@dataclass(frozen=True)
class KernelTarget:
    """The kernel variants that suit an adapter.

    `wide` means that barriers and workgroup memory are cheap, so the invocations of a workgroup
    work together: in a subgroup of `lanes` by subgroup operations, or through workgroup memory.

    Otherwise kernels keep everything in registers and share nothing beyond four lanes, which suits
    software adapters and runs on every device.
    """

    wide: bool = False
    lanes: int = 1  # the smallest subgroup the device may use; 1: there are none
    storage_buffers: int = 8  # a kernel may bind; every device allows this many
    binding_bytes: int = 128 << 20  # of one of them; every device allows as much
    kv: str = F32.name  # the type of caches of keys and values, one of CACHE_DTYPES
    cpu: bool = False  # kernels in C, each with the interface of a shader
    one_token: str = BYTES  # the arithmetic of wide kernels' products, one of ARITHMETICS
    many_tokens: str = BYTES  # one of them, or MATRICES
    exact: bool = False  # results of many tokens are held to 1e-4 of torch's: towers and encoders

    @classmethod
    def of(cls, device: Device) -> "KernelTarget":
        """Choose by features alone; graph/tuning.py measures where features mislead."""
        if device.kind == CPU:
            limits = device.limits
            buffers = limits["max_storage_buffers_per_shader_stage"]
            return cls(
                storage_buffers=buffers,
                binding_bytes=limits["max_storage_buffer_binding_size"],
                cpu=True,
            )
        lanes = max(device.adapter.subgroup_min_size, 1) if HAS_SUBGROUPS in device.features else 1
        buffers = device.limits["max_storage_buffers_per_shader_stage"]
        binding_bytes = device.limits["max_storage_buffer_binding_size"]
        kv = F16.name if HAS_HALVES in device.features else F32.name
        is_software = seems_software(device.adapter, device.features)
        return cls(not is_software, lanes, buffers, binding_bytes, kv)

    @property
    def fuses_tokens(self) -> bool:
        """Return whether products of several tokens take every epilogue, as those of one do."""
        return self.wide or self.cpu

    @property
    def lanes_by(self) -> str:
        """Return which of shaders/shared/lanes_* the wide kernels use."""
        return "subgroups" if self.lanes > 1 else "memory"

    @property
    def kernels(self) -> str:
        """Return the name of these kernels, one of KERNELS."""
        if self.cpu:
            return CPU_KERNELS
        if not self.wide:
            return PORTABLE_KERNELS
        if self.many_tokens == MATRICES:
            return MATRIX_KERNELS
        if self.one_token == self.many_tokens != BYTES:
            return BY_ARITHMETIC[self.one_token]
        return SUBGROUP_KERNELS if self.lanes > 1 else MEMORY_KERNELS


def seems_software(adapter: AdapterInfo, features: frozenset[str]) -> bool:
    """Return whether the adapter says it is software, or has subgroups as small as software's."""
    return adapter.is_fallback or has_small_subgroups(adapter, features)


def has_small_subgroups(adapter: AdapterInfo, features: frozenset[str]) -> bool:
    """Return whether subgroups are as small as those of software; few graphics processors' are."""
    return HAS_SUBGROUPS in features and adapter.subgroup_min_size < MIN_WIDE_SUBGROUP


def has_matrices(device: Device) -> bool:
    """Return whether the device runs linear/gemm_matrices."""
    adapter = device.adapter
    return (
        adapter.has_matrix_units
        and device.features >= {SUBGROUP_MATRICES, HAS_SUBGROUPS, HAS_HALVES}
        and adapter.subgroup_min_size == adapter.subgroup_max_size == MATRIX_LANES
        and device.limits["max_compute_workgroup_storage_size"] >= MATRIX_BYTES
    )


def candidates(device: Device) -> dict[str, KernelTarget]:
    """Return all targets that run on this device by name, the one its features suggest first."""
    expected = KernelTarget.of(device)
    if expected.cpu:
        return {expected.kernels: expected}
    others = [
        replace(expected, wide=False),
        replace(expected, wide=True),
        replace(expected, wide=True, lanes=1),
        replace(expected, wide=True, one_token=FLOATS, many_tokens=FLOATS),
    ]
    if HAS_HALVES in device.features:
        others.append(replace(expected, wide=True, one_token=HALVES, many_tokens=HALVES))
    if has_matrices(device):
        others.append(replace(expected, wide=True, many_tokens=MATRICES))
    return {target.kernels: target for target in (expected, *others)}


PORTABLE = KernelTarget()
