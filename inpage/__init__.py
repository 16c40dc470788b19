"""A language model that runs where you are: in the page, and natively over wgpu.

import inpage

model = await inpage.load("models/SmolLM2-135M-Instruct")  # or a .gguf, a .pte
async for piece in model.chat([{"role": "user", "content": "What is gravity?"}]):
    print(piece.text, end="", flush=True)
model.unload()
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from py_runtime import __version__
from py_runtime.base.platform import IN_PAGE

if TYPE_CHECKING:
    from py_runtime.base.cancel import CancelToken
    from py_runtime.base.errors import InpageError
    from py_runtime.base.progress import LoadProgress
    from py_runtime.generation.pieces import Piece
    from py_runtime.model import Model

__all__ = ["CancelToken", "InpageError", "Model", "Piece", "__version__", "load"]

# Imported when they are asked for: the page's server stands on this package, too, and needs no GPU.
PLACES = {
    "CancelToken": "py_runtime.base.cancel",
    "InpageError": "py_runtime.base.errors",
    "Model": "py_runtime.model",
    "Piece": "py_runtime.generation.pieces",
}


def __getattr__(name: str) -> Any:
    if name not in PLACES:
        raise AttributeError(f"module 'inpage' has no attribute {name!r}")
    return getattr(import_module(PLACES[name]), name)


async def load(
    where: str,
    *,
    progress: "LoadProgress | None" = None,
    cancel: "CancelToken | None" = None,
    kernels: str | None = None,
) -> "Model":
    """A model on a device of its own, ready to be asked; InpageError says why it cannot be.

    `where` is a model folder, a .gguf or .pte file, or `hf:owner/name` on the Hub, natively also
    the address of its page there; in a browser, an address whose host lets the page read it. There
    one model at a time has the device: loading another takes it away. `kernels` is one of
    "portable", "subgroups" and "memory", where it is not to be those that suit the device best.
    Where `progress` is not given, notebooks show a bar.
    """
    if IN_PAGE:
        from py_runtime.bridge.own_bridge import bring_bridge

        await bring_bridge()
    from inpage.notebook import LoadBar, in_notebook
    from py_runtime.gpu import request_device
    from py_runtime.model import Model

    device = await request_device()
    if progress is not None or not in_notebook():
        return await Model.load(device, where, progress, cancel, kernels=kernels)
    bar = LoadBar(where)
    try:
        model = await Model.load(device, where, bar, cancel, kernels=kernels)
    except BaseException:
        bar.end("was not loaded")
        raise
    bar.end("is loaded")
    return model
