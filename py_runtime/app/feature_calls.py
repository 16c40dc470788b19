"""The views of sparse autoencoders, as pages ask for them: one is open for each model."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from py_runtime.app.dropped_files import sources_of
from py_runtime.base.cancel import CancelToken
from py_runtime.base.errors import RequestError
from py_runtime.base.messages import message
from py_runtime.generation.options import unknown_field
from py_runtime.glass.autoencoders.autoencoder import Autoencoder, load_autoencoder
from py_runtime.glass.given import given_tokens
from py_runtime.glass.steering import edits_of, steer
from py_runtime.glass.views.features import (
    chosen_hook,
    edit_name,
    feature_edit,
    features,
    hooks_for,
    promoted,
)
from py_runtime.model import Model

Fields = dict[str, Any]
Progress = Callable[[int, int], None]


@dataclass
class Opened:
    """An autoencoder, and the hook that it reads; None: nobody has said yet."""

    autoencoder: Autoencoder
    hook: str | None


_opened: WeakKeyDictionary[Model, Opened] = WeakKeyDictionary()


async def _autoencoder(
    model: Model, fields: Fields, progress: Progress, cancel: CancelToken
) -> Any:
    """Give what is open, after opening {files}, choosing {hook} or closing it ({close})."""
    files, hook, close = (fields.pop(name, None) for name in ("files", "hook", "close"))
    _all_taken(fields)
    if close:
        await _steer_without(model)
        _opened.pop(model, None)
    if files is not None:
        if not isinstance(files, list):
            raise RequestError("files must be a list", "files")
        found = await load_autoencoder(sources_of(files))
        own = hook if hook is not None else _own_hook(model, found)
        if own is not None:
            own = chosen_hook(model, found, own)
        await _steer_without(model)
        _opened[model] = Opened(found, own)
    elif hook is not None:
        opened = _open_one(model)
        opened.hook = chosen_hook(model, opened.autoencoder, hook)
    return _state(model)


def _own_hook(model: Model, found: Autoencoder) -> str | None:
    """Return the hook that the files name; one that suits no hook of this model is refused."""
    if not hooks_for(model, found):
        return chosen_hook(model, found, "blocks.0.hook_resid_post")  # which tells the widths
    return found.hook if found.hook in hooks_for(model, found) else None


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
    if model not in _opened:
        raise RequestError(message("autoencoder_none"), "files")
    return _opened[model]


async def _steer_without(model: Model) -> None:
    """Take back the edits of what is open, whose names would be nobody's."""
    steered = {each["name"] for each in _steered(model)}
    if steered:
        await steer(model, [each for each in edits_of(model) if each.name not in steered])


def _steered(model: Model) -> list[dict[str, Any]]:
    opened = _opened.get(model)
    if opened is None:
        return []
    beginning = edit_name(opened.autoencoder, 0)[:-1]
    return [
        {
            "name": edit.name,
            "feature": int(edit.name.removeprefix(beginning)),
            "strength": edit.strength,
        }
        for edit in edits_of(model)
        if edit.name.startswith(beginning) and edit.name.removeprefix(beginning).isdecimal()
    ]


def _state(model: Model) -> Any:
    opened = _opened.get(model)
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
        "steered": _steered(model),
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
