"""Python's calls into JavaScript: the bridge of web/worker.js, heap addresses, faults.

Whatever the bridge throws becomes one of our own errors here, and nowhere else.
"""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import numpy as np
from inpage_bridge import bridge  # registered by web/worker.js, or by own_bridge.py
from pyodide.ffi import JsException

from py_runtime.base.concurrency import turn_by
from py_runtime.base.errors import (
    GpuDeviceLostError,
    GpuError,
    GpuOutOfMemoryError,
    GpuUnavailableError,
    GpuValidationError,
    InpageError,
    NetworkError,
    NotFoundError,
    ShaderError,
    ShaderMessage,
    StorageError,
)

__all__ = ["JsException", "address_of", "answer_of", "bridge", "fault"]

FAULTS: dict[str, type[InpageError]] = {
    "no-webgpu": GpuUnavailableError,
    "no-adapter": GpuUnavailableError,
    "no-device": GpuUnavailableError,
    "unavailable": GpuUnavailableError,
    "out-of-memory": GpuOutOfMemoryError,
    "internal": GpuError,
    "validation": GpuValidationError,
    "lost": GpuDeviceLostError,
    "network": NetworkError,
    "missing": NotFoundError,
    "storage": StorageError,
}


async def answer_of(
    promise: Any,
    undo: Callable[[Any], object] | None = None,
    sources: dict[str, str] | None = None,
) -> Any:
    """Await the bridge's answer; `undo` takes it back if the caller no longer waits."""
    answer = asyncio.ensure_future(promise)
    try:
        return await asyncio.shield(answer)
    except JsException as error:
        raise fault(error, sources) from None
    except asyncio.CancelledError:
        answer.add_done_callback(lambda done: done.exception() or (undo and undo(done.result())))
        raise


async def _turn() -> None:
    """Let the worker hear all that it was told: Python's own turns can come before its messages."""
    await answer_of(bridge.turn())


turn_by(_turn)


def fault(error: Any, sources: dict[str, str] | None = None) -> BaseException:
    """Convert a JsException of the bridge to our own error; anything else is a bug and stays."""
    if error.name == "shader":
        facts = json.loads(error.message)
        messages = [ShaderMessage(*row) for row in facts["messages"]]
        return ShaderError(facts["label"], (sources or {}).get(facts["label"], ""), messages)
    kind = FAULTS.get(error.name)
    return error if kind is None else kind(error.message)


def address_of(array: np.ndarray) -> int:
    """Return where the array's bytes lie in the heap that JavaScript sees."""
    return int(array.__array_interface__["data"][0])
