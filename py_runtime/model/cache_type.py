"""The type of a model's caches of keys and values: the usual one of its device, or another."""

from dataclasses import dataclass

from py_runtime.base.dtypes import CACHE_DTYPES, F32, DType
from py_runtime.base.errors import RequestError
from py_runtime.passes import type_caches
from py_runtime.program import Program, TensorValue

USUAL, ASKED_FOR = "usual", "asked for"


@dataclass(frozen=True)
class CacheType:
    """A type, and who chose it."""

    name: str  # one of CACHE_DTYPES
    why: str  # USUAL or ASKED_FOR

    @property
    def wanted(self) -> str | None:
        """Return the name to ask for to get the same type on another device."""
        return self.name if self.why == ASKED_FOR else None


def check_cache_type(wanted: object) -> None:
    """Raise RequestError unless `wanted` is None or the name of a type."""
    if wanted is not None and wanted not in CACHE_DTYPES:
        *names, last = CACHE_DTYPES
        raise RequestError(f"kv must be {', '.join(names)} or {last}, got {wanted!r:.100}", "kv")


def choose_cache_type(name: str, program: Program, usual: str, wanted: str | None) -> CacheType:
    """Choose the wanted type, or the usual one; RequestError says why caches cannot have it.

    A model without caches takes any.
    """
    check_cache_type(wanted)
    if wanted is None or not type_caches.caches_of(program):
        return CacheType(usual, USUAL)
    dtype = CACHE_DTYPES[wanted]
    reason = _why_not(program, dtype)
    if reason is not None:
        raise RequestError(f"{name} cannot keep keys and values as {wanted}: {reason}", "kv")
    return CacheType(wanted, ASKED_FOR)


def _why_not(program: Program, dtype: DType) -> str | None:
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
