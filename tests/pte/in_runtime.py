"""What runs beside the engine, natively or in the page: .pte files, loaded once, called often."""

from pathlib import Path
from typing import Any

import numpy as np

from py_runtime.base.errors import GraphError
from py_runtime.gpu import Device
from py_runtime.pte import PteModule, load

_modules: dict[str, PteModule] = {}


async def append(device: Device, path: str, piece: np.ndarray, at: int) -> None:
    """A file arrives in pieces; `piece`: uint8."""
    file = Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("wb" if at == 0 else "ab") as stream:
        stream.write(piece.tobytes())


async def open_module(device: Device, path: str, data: list[str]) -> dict[str, Any]:
    """Keeps the module under its path; gives what it says of itself."""
    _modules[path] = await load(Path(path), device, [Path(file) for file in data])
    return _modules[path].describe()


async def refusal(device: Device, path: str, data: list[str]) -> dict[str, Any]:
    """The error that loading the file ends in."""
    try:
        module = await load(Path(path), device, [Path(file) for file in data])
    except GraphError as error:
        return {"class": type(error).__name__, "message": str(error), "facts": error.facts()}
    module.unload()
    return {"class": None}


async def run_method(device: Device, path: str, method: str, inputs: list[Any]) -> list[Any]:
    """The outputs, and the inputs as they are afterwards."""
    outputs = await _modules[path].run(inputs, method)
    return [outputs, inputs]


async def greedy(device: Device, path: str, prompt: np.ndarray, steps: int) -> list[Any]:
    """The tokens a decoder goes on with, and the logits of each step; prompt: [1, S]."""
    tokens, logits, position = prompt, [], 0
    for _ in range(steps):
        (out,) = await _modules[path].run([tokens, np.array([position])])
        position += tokens.shape[1]
        logits.append(out.reshape(-1, out.shape[-1])[-1])  # the last row, of one or of S
        tokens = np.array([[int(logits[-1].argmax())]])
    return [[int(row.argmax()) for row in logits], logits]


async def close_module(device: Device, path: str) -> None:
    _modules.pop(path).unload()
