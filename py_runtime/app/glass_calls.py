"""The call `glass`: the views of py_runtime/glass by name, with their fields and answers as JSON.

Arrays travel as {dtype, shape, base64}, which web/arrays.js unpacks.
"""

import base64
from collections.abc import Awaitable, Callable
from dataclasses import asdict, is_dataclass, replace
from typing import Any

import numpy as np

from py_runtime.app.feature_calls import FEATURE_VIEWS
from py_runtime.app.load_progress import Emit
from py_runtime.app.message_views import MESSAGE_VIEWS
from py_runtime.app.room_calls import ROOM_VIEWS
from py_runtime.app.steering_calls import STEERING_VIEWS
from py_runtime.base.cancel import CancelToken
from py_runtime.base.errors import RequestError
from py_runtime.base.short_texts import short
from py_runtime.generation.options import unknown_field
from py_runtime.glass.given import given_tokens, texts_of
from py_runtime.glass.runs import hooks, run_with_cache
from py_runtime.glass.score import score
from py_runtime.glass.steering import edits_of, set_strength, steer
from py_runtime.glass.views.attention import attention
from py_runtime.glass.views.lens import lens
from py_runtime.glass.views.map import map_texts
from py_runtime.glass.views.neurons import neurons
from py_runtime.glass.views.norms import norms
from py_runtime.glass.views.patch import patch
from py_runtime.glass.workspace import close
from py_runtime.model import AnyModel, Model, writer

Fields = dict[str, Any]
Progress = Callable[[int, int], None]
View = Callable[[Model, Fields, Progress, CancelToken], Awaitable[Any]]

ARRAYS = {"f": np.float32, "i": np.int32, "u": np.int32, "b": np.uint8}  # by a dtype's kind


async def call_view(
    model: AnyModel, view: Any, fields: Any, emit: Emit, cancel: CancelToken
) -> Any:
    """Answer a view; what it computes comes as plain data with packed arrays."""
    known = (*VIEWS, *OF_ENCODERS)
    if not isinstance(view, str) or view not in known:
        raise RequestError(f"view must be one of {', '.join(known)}, got {short(view)}", "view")
    if not isinstance(fields, dict | None):
        raise RequestError("fields must be an object", "fields")
    given = {name: value for name, value in (fields or {}).items() if value is not None}

    def progress(done: int, total: int) -> None:
        emit({"done": done, "total": total})

    if view in OF_ENCODERS:
        return packed(await OF_ENCODERS[view](model, given, progress, cancel))
    return packed(await VIEWS[view](writer(model), given, progress, cancel))


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
    """Give {tokens, next}: each token's score from `since` on, and what would come after them."""
    tokens = given_tokens(model, fields)
    k, settings, prompt = (fields.pop(name, None) for name in ("k", "settings", "prompt"))
    since = fields.pop("since", 0)
    _all_taken(fields)
    *scored, following = await score(
        model,
        tokens,
        k=10 if k is None else k,
        settings=settings,
        prompt=prompt,
        since=since,
        progress=progress,
        cancel=cancel,
    )
    return {"tokens": scored, "next": following}


async def _tokens(model: Model, fields: Fields, progress: Progress, cancel: CancelToken) -> Any:
    """Give the tokens of a text or of messages, and the text of each."""
    tokens = given_tokens(model, fields)
    _all_taken(fields)
    return {"tokens": tokens, "texts": texts_of(model, tokens)}


async def _hooks(model: Model, fields: Fields, progress: Progress, cancel: CancelToken) -> Any:
    """Give the names of hooks, each with its shape."""
    _all_taken(fields)
    return {name: list(shape) for name, shape in hooks(model).items()}


async def _cache(model: Model, fields: Fields, progress: Progress, cancel: CancelToken) -> Any:
    """Give the activations of `names` (patterns, too), and the logits if they are asked for."""
    tokens = given_tokens(model, fields)
    names, wants_logits = fields.pop("names", None), fields.pop("logits", False)
    _all_taken(fields)
    if not isinstance(names, str | list):
        raise RequestError("names are those of hooks, or patterns of these", "names")
    return_type = "logits" if wants_logits else None
    logits, cache = await run_with_cache(
        model, tokens, names, return_type=return_type, progress=progress, cancel=cancel
    )
    activations = {name: array[0] for name, array in cache.items()}
    logits = None if logits is None else logits[0]
    return {
        "tokens": tokens,
        "texts": texts_of(model, tokens),
        "cache": activations,
        "logits": logits,
    }


async def _close(model: Model, fields: Fields, progress: Progress, cancel: CancelToken) -> Any:
    """Free what views have left on the device."""
    _all_taken(fields)
    await close(model)


# Steering ----------------------------------------------------------------------------------------


async def _edits(model: Model, fields: Fields, progress: Progress, cancel: CancelToken) -> Any:
    """Give the edits that the model obeys, without their vectors."""
    _all_taken(fields)
    return [replace(edit, vector=None) for edit in edits_of(model)]


async def _steer(model: Model, fields: Fields, progress: Progress, cancel: CancelToken) -> Any:
    """Let the model obey edits, as py_runtime/glass/edits.py has them; none clears them."""
    edits = fields.pop("edits", [])
    _all_taken(fields)
    if not isinstance(edits, list):
        raise RequestError("edits must be a list", "edits")
    await steer(model, [unpacked(edit) for edit in edits])
    return await _edits(model, {}, progress, cancel)


async def _strength(model: Model, fields: Fields, progress: Progress, cancel: CancelToken) -> Any:
    """Change an edit's strength, by its number or name, even while the model writes."""
    which, strength = fields.pop("which", None), fields.pop("strength", None)
    _all_taken(fields)
    await set_strength(model, which, strength)
    return await _edits(model, {}, progress, cancel)


def unpacked(value: Any) -> Any:
    """Return arrays that came as {dtype, shape, base64} or {shape, data}."""
    if isinstance(value, dict) and "base64" in value:
        data = base64.b64decode(str(value["base64"]))
        return np.frombuffer(data, str(value.get("dtype", "float32"))).reshape(value["shape"])
    if isinstance(value, dict):
        return {name: unpacked(item) for name, item in value.items()}
    return value


# The views of glass/views --------------------------------------------------------------------


def _of_text(view: Any, *names: str) -> View:
    """Return a view of one text, whose fields are these parameters of its function."""

    async def call(model: Model, fields: Fields, progress: Progress, cancel: CancelToken) -> Any:
        tokens = given_tokens(model, fields)
        given = {name: fields.pop(name) for name in names if name in fields}
        _all_taken(fields)
        return await view(model, tokens, **given, progress=progress, cancel=cancel)

    return call


async def _patch(model: Model, fields: Fields, progress: Progress, cancel: CancelToken) -> Any:
    """Give the effect of moving activations of `clean` into `corrupted`, on `answers`."""
    given = {name: fields.pop(name, None) for name in ("clean", "corrupted", "answers")}
    for name, value in given.items():
        if value is None:
            raise RequestError(f"patch needs {name}", name)
    more = {name: fields.pop(name) for name in ("sites", "positions") if name in fields}
    _all_taken(fields)
    return await patch(model, **given, **more, progress=progress, cancel=cancel)


async def _map(model: AnyModel, fields: Fields, progress: Progress, cancel: CancelToken) -> Any:
    """Give the places of `texts` on a map of their embeddings."""
    texts, pooling = fields.pop("texts", None), fields.pop("pooling", None)
    _all_taken(fields)
    return await map_texts(model, texts, pooling=pooling, progress=progress, cancel=cancel)


VIEWS: dict[str, View] = {
    "score": _score,
    "tokens": _tokens,
    "hooks": _hooks,
    "cache": _cache,
    "close": _close,
    "edits": _edits,
    "steer": _steer,
    "strength": _strength,
    "lens": _of_text(lens, "positions", "token", "race", "at"),
    "attention": _of_text(attention, "layers", "positions", "labels"),
    "norms": _of_text(norms, "outliers"),
    "neurons": _of_text(neurons, "layers", "position", "k", "promoted"),
    "patch": _patch,
    **MESSAGE_VIEWS,
    **ROOM_VIEWS,
    **STEERING_VIEWS,
    **FEATURE_VIEWS,
}

# Views of models that encode texts, too.
OF_ENCODERS: dict[str, Callable[[AnyModel, Fields, Progress, CancelToken], Awaitable[Any]]] = {
    "map": _map,
}
