"""The values that buffers hold, on the host: plain ones, and blocks of keys and values."""

import numpy as np

from py_runtime.base.dtypes import Q4, Q8, DType


def held_values(dtype: DType, data: np.ndarray) -> np.ndarray:
    """Return the values that bytes of a buffer hold, as the host's, flat."""
    held = data.view(dtype.gpu)
    if dtype is Q8:
        return (held["shares"] * (held["largest"] / np.float32(127))[..., None]).reshape(-1)
    if dtype is Q4:
        codes = np.concatenate([held["codes"] & 15, held["codes"] >> 4], axis=-1)
        step, least = (held[name].astype(np.float32)[..., None] for name in ("step", "least"))
        return (codes * step + least).reshape(-1)
    return held.astype(dtype.host, copy=False).reshape(-1)
