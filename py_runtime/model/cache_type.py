"""The type of a model's caches of keys and values: the usual one of its device, or another.

Others are asked for, or chosen where the usual one does not fit: then the finest that does.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from py_runtime.base import notices
from py_runtime.base.dtypes import CACHE_DTYPES, F32, DType
from py_runtime.base.errors import RequestError
from py_runtime.base.messages import Message, message
from py_runtime.folder.layout import ModelFolder
from py_runtime.folder.manifest import NEEDED_LIMITS
from py_runtime.gpu import Device
from py_runtime.model.program_sizes import cache_bytes, largest_cache
from py_runtime.model.requirements import bytes_on_cpu, check_memory
from py_runtime.passes import type_caches
from py_runtime.program import Program, TensorValue

USUAL, ASKED_FOR, MEMORY = "usual", "asked for", "memory"


@dataclass(frozen=True)
class CacheType:
    """A type, and who chose it."""

    name: str  # one of CACHE_DTYPES
    why: str  # USUAL, ASKED_FOR or MEMORY
    said: Message | None = None  # what people are told of it

    @property
    def wanted(self) -> str | None:
        """Return the name to ask for to get the same type on another device."""
        return self.name if self.why == ASKED_FOR else None


def check_cache_type(wanted: object) -> None:
    """Raise RequestError unless `wanted` is None or the name of a type."""
    if wanted is not None and (type(wanted) is not str or wanted not in CACHE_DTYPES):
        *names, last = CACHE_DTYPES
        raise RequestError(f"kv must be {', '.join(names)} or {last}, got {wanted!r:.100}", "kv")


def choose_cache_type(
    folder: ModelFolder, device: Device, usual: str, wanted: str | None
) -> CacheType:
    """Choose the wanted type, or the usual one, or where that does not fit the finest that does.

    RequestError says why caches cannot have the wanted one. A model without caches takes any.
    GpuOutOfMemoryError: a CPU has no room for any.
    """
    check_cache_type(wanted)
    program, name = folder.program, folder.manifest.name
    if not type_caches.caches_of(program):
        return CacheType(usual, USUAL)
    if wanted is not None:
        reason = why_not(program, CACHE_DTYPES[wanted])
        if reason is not None:
            raise RequestError(f"{name} cannot keep keys and values as {wanted}: {reason}", "kv")
        return CacheType(wanted, ASKED_FOR)
    if _fits(folder, device, CACHE_DTYPES[usual]):
        return CacheType(usual, USUAL)
    smaller = list(_smaller(program, usual))
    found = next((each for each in smaller if _fits(folder, device, each)), None)
    if found is None:
        if device.bytes_left is not None:
            least = smaller[-1] if smaller else CACHE_DTYPES[usual]
            check_memory(_bytes_on_cpu(folder, least), folder.manifest, device)
        return CacheType(usual, USUAL)  # the device says which buffer is too large
    said = message("caches_in_less", name=name, kv=found.name, usual=usual)
    notices.post("memory", said)
    return CacheType(found.name, MEMORY, said)


def why_not(program: Program, dtype: DType) -> str | None:
    """Return why the program's caches cannot all be of a type, if they cannot."""
    if dtype is F32:
        return None
    caches = type_caches.caches_of(program)
    typed = type_caches.typed(program, dtype).values
    values = [value for at in sorted(caches) if isinstance(value := typed[at], TensorValue)]
    left = next((value for value in values if value.dtype is not dtype), None)
    if left is None:
        return None
    *_, heads, width = left.dims
    if type_caches.holds_rows(dtype, heads, width):
        return "something besides attention reads them"
    unit = f"whole blocks of {dtype.block} values" if dtype.block > 1 else "multiples of 4"
    return f"{heads} heads of {width} values are no {unit}"


def _smaller(program: Program, usual: str) -> Iterator[DType]:
    """Yield the types that take less than the usual one and that caches can have, finest first."""
    names = list(CACHE_DTYPES)
    for name in names[names.index(usual) + 1 :]:
        if why_not(program, CACHE_DTYPES[name]) is None:
            yield CACHE_DTYPES[name]


def _fits(folder: ModelFolder, device: Device, dtype: DType) -> bool:
    """Return whether a device has room for caches of a type: a CPU in all, a GPU in one buffer."""
    if device.bytes_left is not None:
        return _bytes_on_cpu(folder, dtype) <= device.bytes_left
    most = min(device.limits[name] for name in NEEDED_LIMITS)
    return largest_cache(folder.program, dtype) <= most


def _bytes_on_cpu(folder: ModelFolder, dtype: DType) -> int:
    manifest, program = folder.manifest, folder.program
    saved = cache_bytes(program, F32) - cache_bytes(program, dtype)
    return bytes_on_cpu(manifest.gpu_bytes, manifest.size) - saved
