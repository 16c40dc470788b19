"""The views of steering: vectors and parts that are off, as pages ask for them."""

import base64
import binascii
from collections.abc import Awaitable, Callable
from typing import Any

from py_runtime.base.cancel import CancelToken
from py_runtime.base.errors import RequestError
from py_runtime.generation.options import unknown_field
from py_runtime.glass.steering import Steering
from py_runtime.glass.steering_vectors import build_vector, load_vector, save_vector
from py_runtime.model import Model

Fields = dict[str, Any]
Progress = Callable[[int, int], None]
MAX_BYTES = 64 << 20


async def _steering(model: Model, fields: Fields, progress: Progress, cancel: CancelToken) -> Any:
    """Give {layers, parts, vectors, off}: what there is to steer, and how it is steered."""
    _all_taken(fields)
    return _state(model)


async def _steer(model: Model, fields: Fields, progress: Progress, cancel: CancelToken) -> Any:
    """Change {strengths}, remove vectors {remove}, turn parts {off} or {on}; give the state.

    `off` replaces what was off, where `only` is true.
    """
    steering = Steering.of(model)
    taken = {key: fields.pop(key, None) for key in ("strengths", "remove", "off", "on", "only")}
    _all_taken(fields)
    for name, strength in _pairs(taken["strengths"]):
        steering.set_strength(name, strength)
    for name in _texts(taken["remove"], "remove"):
        await steering.remove(name)
    off = _texts(taken["off"], "off")
    gone = steering.turned_off if taken["only"] else _texts(taken["on"], "on")
    if gone:
        await steering.turn_on(*(part for part in gone if part not in off))
    if off:
        await steering.turn_off(*off)
    return _state(model)


async def _vector(model: Model, fields: Fields, progress: Progress, cancel: CancelToken) -> Any:
    """Build a vector from {positive, negative, layer, how, position} and add it as {name}."""
    wanted = ("name", "positive", "negative", "layer", "how", "position", "strength")
    given = {name: fields.pop(name, None) for name in wanted}
    _all_taken(fields)
    name, strength = given.pop("name"), given.pop("strength")
    how = {key: given[key] for key in ("how", "position") if given[key] is not None}
    values = await build_vector(
        model,
        given["positive"],
        given["negative"],
        given["layer"],
        **how,
        progress=progress,
        cancel=cancel,
    )
    await Steering.of(model).add(
        name, given["layer"], values, 1.0 if strength is None else strength
    )
    return _state(model)


async def _save(model: Model, fields: Fields, progress: Progress, cancel: CancelToken) -> Any:
    """Give {file, base64}: the vector {name} as a safetensors file."""
    name = fields.pop("name", None)
    _all_taken(fields)
    data = save_vector(model, name)
    return {"file": f"{name}.safetensors", "base64": base64.b64encode(data).decode()}


async def _load(model: Model, fields: Fields, progress: Progress, cancel: CancelToken) -> Any:
    """Add the vector of such a file, given as {file, base64}."""
    file, text = fields.pop("file", None) or "the file", fields.pop("base64", None)
    _all_taken(fields)
    if not isinstance(text, str) or len(text) > MAX_BYTES:
        raise RequestError("base64 must be the file's bytes", "base64")
    try:
        data = base64.b64decode(text, validate=True)
    except binascii.Error:
        raise RequestError("base64 must be the file's bytes", "base64") from None
    await load_vector(model, data, str(file))
    return _state(model)


def _state(model: Model) -> Any:
    steering = Steering.of(model)
    return {
        "layers": steering.layers,
        "parts": [steering.parts_of(layer) for layer in range(steering.layers)],
        "vectors": [
            {"name": name, "layer": each.layer, "strength": each.strength, "length": each.length}
            for name, each in steering.vectors.items()
        ],
        "off": list(steering.turned_off),
    }


def _pairs(given: Any) -> list[tuple[str, Any]]:
    if not isinstance(given, dict | None):
        raise RequestError("strengths must be an object of names and numbers", "strengths")
    return list((given or {}).items())


def _texts(given: Any, name: str) -> list[str]:
    if given is None:
        return []
    if not isinstance(given, list) or not all(isinstance(each, str) for each in given):
        raise RequestError(f"{name} must be a list of texts", name)
    return given


def _all_taken(fields: Fields) -> None:
    if fields:
        raise unknown_field(next(iter(fields)))


VIEWS: dict[str, Callable[[Model, Fields, Progress, CancelToken], Awaitable[Any]]] = {
    "steering": _steering,
    "steer": _steer,
    "steering_vector": _vector,
    "save_steering_vector": _save,
    "load_steering_vector": _load,
}
