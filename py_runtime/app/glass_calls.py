"""The call `glass`: the views of py_runtime/glass by name, with their fields and answers as JSON.

Arrays travel as {dtype, shape, base64}, which web/arrays.js unpacks.
"""

import base64
from collections.abc import Awaitable, Callable
from dataclasses import asdict, is_dataclass
from typing import Any

import numpy as np

from py_runtime.app.load_progress import Emit
from py_runtime.app.steering_calls import VIEWS as STEERING
from py_runtime.base.cancel import CancelToken
from py_runtime.base.errors import RequestError
from py_runtime.base.short_texts import short
from py_runtime.generation.options import unknown_field
from py_runtime.glass.given import given_tokens, texts_of
from py_runtime.glass.score import score
from py_runtime.model import Model

Fields = dict[str, Any]
Progress = Callable[[int, int], None]
View = Callable[[Model, Fields, Progress, CancelToken], Awaitable[Any]]

ARRAYS = {"f": np.float32, "i": np.int32, "u": np.int32, "b": np.uint8}  # by a dtype's kind


async def call_view(model: Model, view: Any, fields: Any, emit: Emit, cancel: CancelToken) -> Any:
    """Answer a view; what it computes comes as plain data with packed arrays."""
    if not isinstance(view, str) or view not in VIEWS:
        raise RequestError(f"view must be one of {', '.join(VIEWS)}, got {short(view)}", "view")
    if not isinstance(fields, dict | None):
        raise RequestError("fields must be an object", "fields")
    given = {name: value for name, value in (fields or {}).items() if value is not None}

    def progress(done: int, total: int) -> None:
        emit({"done": done, "total": total})

    return packed(await VIEWS[view](model, given, progress, cancel))


def packed(value: Any) -> Any:
    """Return plain data in which arrays are {dtype, shape, base64}."""
    if isinstance(value, np.ndarray):
        data = np.ascontiguousarray(value, ARRAYS[value.dtype.kind])
        text = base64.b64encode(data.tobytes()).decode()
        return {"dtype": str(data.dtype), "shape": list(data.shape), "base64": text}
    if is_dataclass(value) and not isinstance(value, type):
        return packed(asdict(value))
    if isinstance(value, dict):
        return {str(key): packed(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [packed(item) for item in value]
    return value


def _all_taken(fields: Fields) -> None:
    """Refuse what no view knows: no field is ignored."""
    if fields:
        raise unknown_field(next(iter(fields)))


# Views -------------------------------------------------------------------------------------------


async def _score(model: Model, fields: Fields, progress: Progress, cancel: CancelToken) -> Any:
    """Give {tokens, next}: each token's score, and what would come after them."""
    tokens = given_tokens(model, fields)
    k, settings, prompt = (fields.pop(name, None) for name in ("k", "settings", "prompt"))
    _all_taken(fields)
    *scored, following = await score(
        model,
        tokens,
        k=10 if k is None else k,
        settings=settings,
        prompt=prompt,
        progress=progress,
        cancel=cancel,
    )
    return {"tokens": scored, "next": following}


async def _tokens(model: Model, fields: Fields, progress: Progress, cancel: CancelToken) -> Any:
    """Give the tokens of a text or of messages, and the text of each."""
    tokens = given_tokens(model, fields)
    _all_taken(fields)
    return {"tokens": tokens, "texts": texts_of(model, tokens)}


VIEWS: dict[str, View] = {"score": _score, "tokens": _tokens, **STEERING}
