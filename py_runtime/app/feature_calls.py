"""The views of sparse autoencoders, as pages ask for them: one is open for each model."""

from collections.abc import Awaitable, Callable
from typing import Any

from py_runtime.app.dropped_files import sources_of
from py_runtime.base.cancel import CancelToken
from py_runtime.base.errors import RequestError
from py_runtime.base.messages import message
from py_runtime.generation.options import unknown_field
from py_runtime.glass.autoencoders.autoencoder import load_autoencoder
from py_runtime.glass.given import given_tokens
from py_runtime.glass.opened_autoencoder import (
    Opened,
    close_autoencoder,
    feature_edits,
    open_autoencoder,
    opened_of,
)
from py_runtime.glass.steering import edits_of, steer
from py_runtime.glass.views.features import (
    chosen_hook,
    feature_edit,
    features,
    hooks_for,
    promoted,
)
from py_runtime.model import Model

Fields = dict[str, Any]
Progress = Callable[[int, int], None]


async def _autoencoder(
    model: Model, fields: Fields, progress: Progress, cancel: CancelToken
) -> Any:
    """Give what is open, after opening {files}, choosing {hook} or closing it ({close})."""
    files, hook, close = (fields.pop(name, None) for name in ("files", "hook", "close"))
    _all_taken(fields)
    if close:
        await close_autoencoder(model)
    if files is not None:
        if not isinstance(files, list):
            raise RequestError("files must be a list", "files")
        await open_autoencoder(model, await load_autoencoder(sources_of(files)), hook)
    elif hook is not None:
        opened = _open_one(model)
        opened.hook = chosen_hook(model, opened.autoencoder, hook)
    return _state(model)


async def _features(model: Model, fields: Fields, progress: Progress, cancel: CancelToken) -> Any:
    """Give the features of tokens, as py_runtime/glass/views/features.py has them."""
    opened = _open_one(model)
    tokens = given_tokens(model, fields)
    given = {name: fields.pop(name) for name in ("positions", "k", "watch") if name in fields}
    _all_taken(fields)
    return await features(
        model,
        tokens,
        opened.autoencoder,
        hook=opened.hook,
        **given,
        progress=progress,
        cancel=cancel,
    )


async def _promoted(model: Model, fields: Fields, progress: Progress, cancel: CancelToken) -> Any:
    """Give the tokens that {features} promote and suppress, {k} of each."""
    opened = _open_one(model)
    listed, k = fields.pop("features", None), fields.pop("k", None)
    _all_taken(fields)
    if not isinstance(listed, list):
        raise RequestError("features must be a list of numbers", "features")
    return await promoted(
        model,
        opened.autoencoder,
        listed,
        hook=opened.hook,
        k=10 if k is None else k,
        progress=progress,
        cancel=cancel,
    )


async def _steer(model: Model, fields: Fields, progress: Progress, cancel: CancelToken) -> Any:
    """Let {feature} steer the model with {strength}, which "strength" changes; give the state."""
    opened = _open_one(model)
    feature, strength = fields.pop("feature", None), fields.pop("strength", None)
    _all_taken(fields)
    edit = await feature_edit(
        model,
        opened.autoencoder,
        feature,
        1.0 if strength is None else strength,
        hook=opened.hook,
    )
    await steer(model, [*(each for each in edits_of(model) if each.name != edit.name), edit])
    return _state(model)


def _open_one(model: Model) -> Opened:
    opened = opened_of(model)
    if opened is None:
        raise RequestError(message("autoencoder_none"), "files")
    return opened


def _state(model: Model) -> Any:
    opened = opened_of(model)
    if opened is None:
        return None
    found = opened.autoencoder
    return {
        "name": found.name,
        "kind": found.kind,
        "features": found.features,
        "kept": found.layout.kept,
        "width": found.width,
        "made_for": found.layout.made_for,
        "wants": found.hook,
        "hook": opened.hook,
        "hooks": hooks_for(model, found),
        "steered": [
            {"name": edit.name, "feature": feature, "strength": edit.strength}
            for feature, edit in feature_edits(model)
        ],
    }


def _all_taken(fields: Fields) -> None:
    if fields:
        raise unknown_field(next(iter(fields)))


FEATURE_VIEWS: dict[str, Callable[[Model, Fields, Progress, CancelToken], Awaitable[Any]]] = {
    "autoencoder": _autoencoder,
    "features": _features,
    "promoted": _promoted,
    "steer_feature": _steer,
}
