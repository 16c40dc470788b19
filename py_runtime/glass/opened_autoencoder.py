"""The autoencoder that is open beside a model, which panels and notebooks share."""

from dataclasses import dataclass
from weakref import WeakKeyDictionary

from py_runtime.glass.autoencoders.autoencoder import Autoencoder
from py_runtime.glass.edits import Edit
from py_runtime.glass.steering import edits_of, steer
from py_runtime.glass.views.features import chosen_hook, edit_name, hooks_for
from py_runtime.model import Model


@dataclass
class Opened:
    """An autoencoder, and the hook that it reads; None: nobody has said yet."""

    autoencoder: Autoencoder
    hook: str | None


_opened: WeakKeyDictionary[Model, Opened] = WeakKeyDictionary()


def opened_of(model: Model) -> Opened | None:
    """Return what is open beside a model."""
    return _opened.get(model)


async def open_autoencoder(model: Model, autoencoder: Autoencoder, hook: str | None = None) -> None:
    """Open an autoencoder in the place of another; in the page, the panel of features shows it."""
    own = hook if hook is not None else _own_hook(model, autoencoder)
    if own is not None:
        own = chosen_hook(model, autoencoder, own)
    await _steer_without(model)
    _opened[model] = Opened(autoencoder, own)


async def close_autoencoder(model: Model) -> None:
    """Close what is open, with what it steers."""
    await _steer_without(model)
    _opened.pop(model, None)


def feature_edits(model: Model) -> list[tuple[int, Edit]]:
    """Return the features by which the open autoencoder steers, each with its edit."""
    opened = opened_of(model)
    if opened is None:
        return []
    beginning = edit_name(opened.autoencoder, 0)[:-1]
    return [
        (int(edit.name.removeprefix(beginning)), edit)
        for edit in edits_of(model)
        if edit.name.startswith(beginning) and edit.name.removeprefix(beginning).isdecimal()
    ]


async def _steer_without(model: Model) -> None:
    """Take back the edits of what is open, whose names would be nobody's."""
    steered = {edit.name for _, edit in feature_edits(model)}
    if steered:
        await steer(model, [each for each in edits_of(model) if each.name not in steered])


def _own_hook(model: Model, found: Autoencoder) -> str | None:
    """Return the hook that the files name; one that suits no hook of this model is refused."""
    if not hooks_for(model, found):
        return chosen_hook(model, found, "blocks.0.hook_resid_post")  # which tells the widths
    return found.hook if found.hook in hooks_for(model, found) else None
