"""A language model that runs where you are: in the page, and natively, on GPU or CPU.

import inpage

model = await inpage.load("models/SmolLM2-135M-Instruct")  # or a .gguf, a .pte
async for piece in model.chat([{"role": "user", "content": "What is gravity?"}]):
    print(piece.text, end="", flush=True)
model.unload()
"""

import sys
from importlib import import_module
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any

from py_runtime import __version__
from py_runtime.base.platform import IN_PAGE

if TYPE_CHECKING:
    from inpage.listing import ModelEntry
    from py_runtime.base.cancel import CancelToken
    from py_runtime.base.errors import InpageError
    from py_runtime.base.progress import LoadProgress
    from py_runtime.generation.pieces import Piece
    from py_runtime.gpu import Device
    from py_runtime.model import AnyModel, Encoder, Model
    from py_runtime.sampling.step import register_sampler

__all__ = [
    "CancelToken",
    "Encoder",
    "InpageError",
    "Model",
    "ModelEntry",
    "Piece",
    "__version__",
    "glass",
    "load",
    "models",
    "register_sampler",
]

# Imported when they are asked for: the page's server stands on this package, too, and needs no GPU.
PLACES = {
    "CancelToken": "py_runtime.base.cancel",
    "Encoder": "py_runtime.model",
    "InpageError": "py_runtime.base.errors",
    "Model": "py_runtime.model",
    "ModelEntry": "inpage.listing",
    "Piece": "py_runtime.generation.pieces",
    "register_sampler": "py_runtime.sampling.step",
}


def __getattr__(name: str) -> Any:
    if name == "glass":
        return import_module("inpage.glass")
    if name not in PLACES:
        raise AttributeError(f"module 'inpage' has no attribute {name!r}")
    return getattr(import_module(PLACES[name]), name)


async def load(
    where: "str | PathLike[str]",
    *,
    progress: "LoadProgress | None" = None,
    cancel: "CancelToken | None" = None,
    device: str | None = None,
    threads: int | None = None,
    kernels: str | None = None,
    kv: str | None = None,
    draft: "str | PathLike[str] | None" = None,
) -> "AnyModel":
    """Load a model and return it; InpageError says why it cannot be loaded.

    It is a Model, or an Encoder where it makes vectors of texts and writes none. `where` is a model
    folder, a text encoder's checkpoint, a .gguf or .pte file, by its path or its address (in a
    browser, one whose host lets the page read it), or `hf:owner/name` on the Hub, natively also the
    address of its page there. `device` is "gpu" or "cpu", where it is not to be the faster one of
    this machine (or what INPAGE_DEVICE in the environment says); `threads` is for the CPU. Models
    loaded one after another share one device of a kind, until each is unloaded. `kernels` is one of
    "portable", "subgroups", "memory", "floats" and "halves", where it is not to be those that suit
    the GPU best; "halves", which are less exact, never are. `kv` is how keys and values of the
    context are kept: "f32", "f16", "q8" or "q4", where it is not to be what is usual on the device.
    `draft` is a smaller model of the same family, in any of these places: it proposes tokens, which
    changes no answer and makes them quicker where it is much quicker itself. Where `progress` is
    not given, notebooks show a bar.
    """
    await _bring_bridge()
    where, drafting = fspath(where), None if draft is None else fspath(draft)
    from inpage.notebook import LoadBar, in_notebook
    from py_runtime.devices.recovery import load_onto
    from py_runtime.graph.device_choice import wanted_kind
    from py_runtime.model import load_model

    async def load_here(told: "LoadProgress | None") -> "AnyModel":
        chosen = await _device_for(wanted_kind(device, kernels, threads), threads)
        return await load_onto(
            chosen,
            lambda found: load_model(found, where, told, cancel, False, kernels, kv, drafting),
            cancel,
        )

    if progress is not None or not in_notebook():
        return await load_here(progress)
    bar = LoadBar(where)
    try:
        model = await load_here(bar)
    except BaseException:
        bar.end("was not loaded")
        raise
    bar.end("is loaded")
    return model


async def models(where: str | None = None) -> "list[ModelEntry]":
    """Return the models at hand; `load` takes what each has as `where`.

    Natively they are those in the folder `where`, or in `models/`. In a browser they are those that
    it keeps, and those that the site at the address `where` lists; without an address, the
    site is the one that this runs on, if it has a list.
    """
    await _bring_bridge()
    from inpage.listing import in_browser, in_folder

    return await in_browser(where) if IN_PAGE else in_folder(where)


async def _bring_bridge() -> None:
    if IN_PAGE:
        from py_runtime.bridge.own_bridge import bring_bridge

        await bring_bridge()


async def _device_for(kind: str | None, threads: int | None) -> "Device":
    """Return the device to load onto; in our own page's Python, one of its engine's.

    A second GPU device would take the GPU away from the engine.
    """
    page = sys.modules.get("py_runtime.app.in_page")
    if page:
        device: Device = await page.device_for(kind, threads)
        return device
    from py_runtime.folder import notes
    from py_runtime.graph.device_choice import choose_device

    return await choose_device(kind, threads, notes)
