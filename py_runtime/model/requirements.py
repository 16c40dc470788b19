"""A model's requirements of a device, checked before anything large is fetched."""

from py_runtime.base.errors import GpuOutOfMemoryError
from py_runtime.base.messages import message
from py_runtime.base.model_errors import ModelError
from py_runtime.folder.manifest import NEEDED_LIMITS, Manifest
from py_runtime.gpu import Device

CPU_MARGIN = 64 << 20  # bytes beside weights, caches and intermediates
NOT_HERE = "use a browser or a graphics processor with more, or a smaller --max-seq-len"


def check_requirements(manifest: Manifest, device: Device, freed: int = 0) -> None:
    """Raise if the device cannot run the model, before anything large is fetched.

    `freed` is how many bytes other models will have given back by then.
    """
    if device.bytes_left is not None:
        check_memory(bytes_on_cpu(manifest.least_gpu_bytes, manifest.size), manifest, device, freed)
    for feature in manifest.requires.features:
        if feature not in device.features:
            raise ModelError(f"{manifest.name} needs the GPU feature '{feature}'", NOT_HERE)
    for limit, needed in manifest.requires.limits.items():
        has = device.limits.get(limit, 0)
        if has >= needed:
            continue
        if limit in NEEDED_LIMITS:
            sizes = {"needed": needed, "limit": has, "limit_name": limit}
            raise GpuOutOfMemoryError(message("gpu_buffer_too_small", name=manifest.name, **sizes))
        fault = f"{manifest.name} needs {limit} {needed}; this device has {has}"
        raise ModelError(fault, NOT_HERE)


def check_memory(needed: int, manifest: Manifest, device: Device, freed: int = 0) -> None:
    """Raise if a CPU has not so many bytes left."""
    left = (device.bytes_left or 0) + freed
    if needed > left:
        left_of = {"left": left, "limit": device.limits["max_buffer_size"]}
        said = message("memory_too_small", name=manifest.name, needed=needed, **left_of)
        raise GpuOutOfMemoryError(said)


def bytes_on_cpu(held: int, size: int) -> int:
    """Return the memory that a model takes on the CPU.

    `held` is what its graph holds; 0 where nobody counted it, then its files' `size` stands for it.
    """
    return (held or size) + CPU_MARGIN
