"""Embeddings in the shapes of OpenAI's API."""

import base64
from collections.abc import Mapping
from typing import Any

import numpy as np

from py_runtime.app.completions import check_labels, check_model
from py_runtime.base.cancel import CancelToken
from py_runtime.base.concurrency import aside
from py_runtime.base.errors import RequestError
from py_runtime.base.request_texts import is_long, refuse_half_pairs
from py_runtime.generation.options import unknown_field
from py_runtime.model import AnyModel, Encoder
from py_runtime.model.embed import TINY, embed, parse_inputs

FORMATS = ("float", "base64")
Json = dict[str, Any]


async def create_embeddings(model: AnyModel, given: Mapping[str, Any], cancel: CancelToken) -> Json:
    """Return a vector for each input; RequestError names the field that is wrong.

    Vectors have length 1, unless an encoder's own files leave them as they are.
    """
    refuse_half_pairs(given)
    fields = {name: value for name, value in given.items() if value is not None}
    check_model(model, fields.pop("model", None))
    check_labels(fields.pop("user", None), None)
    encoding = fields.pop("encoding_format", "float")
    if encoding not in FORMATS:
        raise RequestError(
            f"encoding_format must be one of {', '.join(FORMATS)}", "encoding_format"
        )
    dimensions = fields.pop("dimensions", None)
    pooling, texts = fields.pop("pooling", None), fields.pop("input", None)
    prompt_name = fields.pop("prompt_name", None) if isinstance(model, Encoder) else None
    if fields:
        raise unknown_field(next(iter(fields)))
    if isinstance(model, Encoder):
        inputs = await aside(is_long(texts), lambda: model.parse_inputs(texts, prompt_name))
        whole = await model.vectors(inputs, pooling, cancel)
    else:
        inputs = await aside(is_long(texts), lambda: parse_inputs(model, texts))
        whole = await embed(model, inputs, "mean" if pooling is None else pooling, cancel)
    vectors = shortened(whole, dimensions)
    count = sum(map(len, inputs))
    return {
        "object": "list",
        "data": [
            {"object": "embedding", "index": index, "embedding": encoded(vector, encoding)}
            for index, vector in enumerate(vectors)
        ],
        "model": model.manifest.name,
        "usage": {"prompt_tokens": count, "total_tokens": count},
    }


def shortened(vectors: np.ndarray, dimensions: Any) -> np.ndarray:
    """Keep the first numbers of each vector, at length 1 again: some models are trained for it."""
    if dimensions is None:
        return vectors
    width = vectors.shape[1]
    is_whole = isinstance(dimensions, int) and not isinstance(dimensions, bool)
    if not is_whole or not 1 <= dimensions <= width:
        raise RequestError(f"dimensions must be an integer from 1 to {width}", "dimensions")
    first = vectors[:, :dimensions]
    lengths = np.maximum(np.linalg.norm(first, axis=1, keepdims=True), np.float32(TINY))
    return np.asarray(first / lengths)


def encoded(vector: np.ndarray, encoding: str) -> list[float] | str:
    """Return a vector as numbers, or as the bytes of little-endian 32-bit floats."""
    if encoding == "float":
        return [float(each) for each in vector]
    return base64.b64encode(vector.astype("<f4").tobytes()).decode()
