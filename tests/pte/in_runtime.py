"""Code that runs beside the engine, natively or in the page: .pte files, loaded and called."""

from pathlib import Path
from typing import Any

import numpy as np

from py_runtime.base.errors import GraphError
from py_runtime.gpu import Device
from py_runtime.pte import PteModule, load

_modules: dict[str, PteModule] = {}


async def append(device: Device, path: str, piece: np.ndarray, at: int) -> None:
    """Write a piece of a file, uint8: it arrives in several."""
    file = Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("wb" if at == 0 else "ab") as stream:
        stream.write(piece.tobytes())


async def open_module(device: Device, path: str, data: list[str]) -> dict[str, Any]:
    """Keep the module under its path; return what it says about itself."""
    _modules[path] = await load(Path(path), device, [Path(file) for file in data])
    return _modules[path].describe()


async def refusal(device: Device, path: str, data: list[str]) -> dict[str, Any]:
    """Return the error that loading the file ends in."""
    try:
        module = await load(Path(path), device, [Path(file) for file in data])
    except GraphError as error:
        return {"class": type(error).__name__, "message": str(error), "facts": error.facts()}
    module.unload()
    return {"class": None}


async def run_method(device: Device, path: str, method: str, inputs: list[Any]) -> list[Any]:
    """Return the outputs, and the inputs as they are afterwards."""
    outputs = await _modules[path].run(inputs, method)
    return [outputs, inputs]


async def greedy(device: Device, path: str, prompt: np.ndarray, steps: int) -> list[Any]:
    """Return the tokens of a decoder's continuation, and the logits of each step.

    Prompt: [1, S].
    """
    tokens, logits, position = prompt, [], 0
    for _ in range(steps):
        (out,) = await _modules[path].run([tokens, np.array([position])])
        position += tokens.shape[1]
        logits.append(out.reshape(-1, out.shape[-1])[-1])  # the last row, of one or of S
        tokens = np.array([[int(logits[-1].argmax())]])
    return [[int(row.argmax()) for row in logits], logits]


async def close_module(device: Device, path: str) -> None:
    _modules.pop(path).unload()
