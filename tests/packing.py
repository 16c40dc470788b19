"""Nested values with arrays as bytes, to cross between the test process and the page."""

import io
import json
from typing import Any

import numpy as np


def pack(value: Any) -> bytes:
    arrays: dict[str, np.ndarray] = {}

    def lower(item: Any) -> Any:
        if isinstance(item, np.ndarray | np.generic):
            key = f"a{len(arrays)}"
            arrays[key] = np.asarray(item)
            return {"$array": key}
        if isinstance(item, dict):
            return {key: lower(inner) for key, inner in item.items()}
        if isinstance(item, list | tuple):
            return [lower(inner) for inner in item]
        return item

    structure = json.dumps(lower(value))
    stream = io.BytesIO()
    np.savez(stream, allow_pickle=False, structure=np.array(structure), **arrays)
    return stream.getvalue()


def unpack(data: bytes) -> Any:
    with np.load(io.BytesIO(data), allow_pickle=False) as stored:

        def lift(item: Any) -> Any:
            if isinstance(item, dict):
                if "$array" in item:
                    return stored[item["$array"]]
                return {key: lift(inner) for key, inner in item.items()}
            if isinstance(item, list):
                return [lift(inner) for inner in item]
            return item

        return lift(json.loads(str(stored["structure"])))
