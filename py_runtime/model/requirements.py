"""A model's requirements of a device, checked before anything large is fetched."""

from py_runtime.base.errors import GpuOutOfMemoryError
from py_runtime.base.messages import message
from py_runtime.base.model_errors import ModelError
from py_runtime.folder.manifest import NEEDED_LIMITS, Manifest
from py_runtime.gpu import Device

NOT_HERE = "use a browser or a graphics processor with more, or a smaller --max-seq-len"


def check_requirements(manifest: Manifest, device: Device) -> None:
    """Raise if the device cannot run the model, before anything large is fetched."""
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
