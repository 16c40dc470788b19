"""The views of steering: vectors and parts that are off, as pages ask for them."""

import base64
import binascii
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import numpy as np

from py_runtime.base.cancel import CancelToken
from py_runtime.base.errors import RequestError
from py_runtime.generation.options import unknown_field
from py_runtime.glass.edits import Edit
from py_runtime.glass.points import VALUE
from py_runtime.glass.steering import edits_of, steer
from py_runtime.glass.steering_parts import PART, part_edits, parts_of
from py_runtime.glass.steering_vectors import (
    add_vector,
    build_vector,
    load_vector,
    save_vector,
    vectors_of,
)
from py_runtime.glass.workspace import Workspace
from py_runtime.model import Model

Fields = dict[str, Any]
Progress = Callable[[int, int], None]
MAX_BYTES = 64 << 20


async def _steering(model: Model, fields: Fields, progress: Progress, cancel: CancelToken) -> Any:
    """Give {layers, parts, vectors, off, edits, hooks}, after {remove}, {off}, {on} and {edit}.

    `edit` is one of a hook, without a vector: it scales or ablates.
    """
    edit = fields.pop("edit", None)
    taken = {key: _texts(fields.pop(key, None), key) for key in ("remove", "off", "on")}
    _all_taken(fields)
    gone = {*taken["remove"], *taken["on"]}
    points, before = Workspace.of(model).points, edits_of(model)
    names = {edit.name for edit in before}
    edits = [edit for edit in before if edit.name not in gone]
    for part in taken["off"]:
        if part not in names or part in gone:
            edits += part_edits(points, part)
    if edit is not None:
        added = Edit.parse(edit)
        name = added.name or f"{added.hook} {added.kind}"
        edits = [each for each in edits if each.name != name]
        edits.append(replace(added, name=name))
    if edits != list(before):
        await steer(model, edits)
    return _state(model)


async def _vector(model: Model, fields: Fields, progress: Progress, cancel: CancelToken) -> Any:
    """Build a vector from {positive, negative, layer, how, position} and add it as {name}."""
    wanted = ("name", "positive", "negative", "layer", "how", "position", "strength")
    given = {name: fields.pop(name, None) for name in wanted}
    _all_taken(fields)
    name, layer, strength = given["name"], given["layer"], given["strength"]
    how = {key: given[key] for key in ("how", "position") if given[key] is not None}
    values = await build_vector(
        model,
        given["positive"],
        given["negative"],
        layer,
        **how,
        progress=progress,
        cancel=cancel,
    )
    await add_vector(model, name, layer, values, 1.0 if strength is None else strength)
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
    space = Workspace.of(model)
    layers = len(space.anatomy.blocks)
    names, vectors = dict.fromkeys(edit.name for edit in edits_of(model)), vectors_of(model)
    return {
        "layers": layers,
        "parts": [parts_of(space.points, layer) for layer in range(layers)],
        "vectors": [
            {
                "name": name,
                "layer": layer,
                "strength": edit.strength,
                "length": float(np.linalg.norm(edit.vector)),
            }
            for name, (layer, edit) in vectors.items()
        ],
        "off": [name for name in names if PART.fullmatch(name)],
        "edits": [
            replace(edit, vector=None)
            for edit in edits_of(model)
            if edit.name and edit.name not in vectors and not PART.fullmatch(edit.name)
        ],
        "hooks": [name for name, point in space.points.items() if point.kind == VALUE],
    }


def _texts(given: Any, name: str) -> list[str]:
    if given is None:
        return []
    if not isinstance(given, list) or not all(isinstance(each, str) for each in given):
        raise RequestError(f"{name} must be a list of texts", name)
    return given


def _all_taken(fields: Fields) -> None:
    if fields:
        raise unknown_field(next(iter(fields)))


STEERING_VIEWS: dict[str, Callable[[Model, Fields, Progress, CancelToken], Awaitable[Any]]] = {
    "steering": _steering,
    "steering_vector": _vector,
    "save_steering_vector": _save,
    "load_steering_vector": _load,
}
