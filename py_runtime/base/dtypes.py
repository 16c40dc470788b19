"""Element types and their widths on the host and on the GPU, defined here alone."""

from dataclasses import dataclass

import numpy as np

CACHED_BLOCK = 32  # elements


@dataclass(frozen=True)
class DType:
    """An element type: the host's dtype, and the one that a buffer holds for it."""

    name: str
    host: np.dtype
    gpu: np.dtype  # what a buffer holds; kernels know 32-bit elements and packed constants
    block: int = 1  # elements that are held together, as one of `gpu`

    @property
    def gpu_bytes(self) -> int:
        return self.gpu.itemsize

    def bytes_of(self, count: int) -> int:
        """Return the bytes of so many elements in a buffer."""
        return -(-count // self.block) * self.gpu_bytes


def _dtype(name: str, host: type, gpu: type) -> DType:
    return DType(name, np.dtype(host), np.dtype(gpu))


def _blocks(name: str, *parts: tuple[str, str] | tuple[str, str, int]) -> DType:
    return DType(name, np.dtype(np.float32), np.dtype([*parts]), CACHED_BLOCK)


F32 = _dtype("f32", np.float32, np.float32)
I32 = _dtype("i32", np.int32, np.int32)
I64 = _dtype("i64", np.int64, np.int32)  # int64 on the host, int32 on the GPU, range-checked
BOOL = _dtype("bool", np.bool_, np.int32)
U8 = _dtype("u8", np.uint8, np.uint8)  # packed weights, and quantised values
I8 = _dtype("i8", np.int8, np.int8)  # the same, with a sign
F16 = _dtype("f16", np.float16, np.float16)  # packed scales, and caches of keys and values

# Caches of keys and values alone are held in these: shaders/attention/fragments/cached_*.
Q8 = _blocks("q8", ("range", "<f2"), ("least", "<f2"), ("high", "u1", 32), ("low", "u1", 8))
Q4 = _blocks("q4", ("step", "<f2"), ("least", "<f2"), ("codes", "u1", 16))
CACHE_DTYPES = {dtype.name: dtype for dtype in (F32, F16, Q8, Q4)}  # the finest first

DTYPES = {dtype.name: dtype for dtype in (F32, I32, I64, BOOL, U8, I8, F16)}
