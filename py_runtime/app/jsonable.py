"""Python values as JSON that a page can parse: arrays keep dtype and shape, nothing is refused."""

import base64
import json
import math
from dataclasses import asdict, is_dataclass
from typing import Any

import numpy as np


def dumps(value: Any) -> str:
    """Return JSON of any value, as far as JSON can hold it."""
    try:
        return PLAIN.encode(value)  # most values are, and are done in C
    except (TypeError, ValueError):
        return PLAIN.encode(jsonable(value))


PLAIN = json.JSONEncoder(allow_nan=False)


def jsonable(value: Any) -> Any:
    """Return a value that JSON can hold; NaN and infinities become the strings of JavaScript."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else _non_finite(value)
    if isinstance(value, np.ndarray):
        data = jsonable(value.tolist())
        return {"dtype": str(value.dtype), "shape": list(value.shape), "data": data}
    if isinstance(value, np.generic):
        return jsonable(value.item())
    if isinstance(value, bytes | bytearray | memoryview):
        return {"base64": base64.b64encode(bytes(value)).decode()}
    if isinstance(value, dict):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [jsonable(item) for item in value]
    if is_dataclass(value) and not isinstance(value, type):
        return jsonable(asdict(value))
    return {"repr": repr(value)}


def _non_finite(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"
