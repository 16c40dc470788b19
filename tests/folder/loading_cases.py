"""Loads beside the engine, natively or in the page, on behalf of the tests in this folder."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from py_runtime.base import notices
from py_runtime.base import progress as meters
from py_runtime.base.cancel import CancelToken
from py_runtime.base.errors import InpageError
from py_runtime.gpu import Device
from py_runtime.graph import Graph
from py_runtime.model import Model

PROMPT = [1, 2, 3]


async def load(
    device: Device, where: str, cancel_at: tuple[str, float] | None = None
) -> dict[str, Any]:
    """Everything that can be seen of a load; it is cancelled once a phase is so far."""
    told: list[list[Any]] = []
    seen: list[notices.Notice] = []
    cancel = CancelToken()

    def progress(phase: str, done: int, total: int) -> None:
        told.append([phase, done, total])
        if cancel_at is not None and phase == cancel_at[0] and done >= cancel_at[1] * total:
            cancel.cancel()

    result: dict[str, Any] = {"progress": told, "notices": seen, "error": None}
    buffers = device.counters.buffers_alive
    stop_listening = notices.listen(seen.append)
    between = meters.SECONDS_BETWEEN if cancel_at is None else 0.0  # else a step may go untold
    try:
        with _patched(meters, "SECONDS_BETWEEN", between):
            model = await Model.load(device, where, progress, cancel)
        result["logits"] = await model.prefill(PROMPT)
        model.unload()
    except InpageError as error:
        result["error"] = [error.code, str(error)]
    stop_listening()
    result["buffers left"] = device.counters.buffers_alive - buffers
    return result


async def rebuild(device: Device, where: str) -> list[Any]:
    """Logits before and after, and how many buffers more there are."""
    model = await Model.load(device, where)
    before = await model.prefill(PROMPT)
    buffers = device.counters.buffers_alive
    told: list[str] = []
    await model.rebuild(device, lambda phase, done, total: told.append(phase))
    more = device.counters.buffers_alive - buffers
    after = await model.prefill(PROMPT)
    model.unload()
    return [before, after, more, sorted(set(told))]


async def read_goldens(device: Device, where: str) -> int:
    """Read the bytes of a file that loading does not need."""
    model = await Model.load(device, where)
    assert model.manifest.goldens
    data = await model.store.read(model.folder, model.manifest.goldens)
    model.unload()
    return len(data)


async def load_and_count_hashes(device: Device, where: str) -> list[Any]:
    """Load, and count how many files' bytes were hashed for it."""
    import hashlib

    hashed: list[int] = []

    class Counted:
        def __init__(self, data: bytes = b"") -> None:
            self.own = original(data)
            self.is_counted = False

        def update(self, data: Any) -> None:
            if not self.is_counted:
                hashed.append(1)
            self.is_counted = True
            self.own.update(data)

        def hexdigest(self) -> str:
            return self.own.hexdigest()

    original = hashlib.sha256
    with _patched(hashlib, "sha256", Counted):
        result = await load(device, where)
    return [result, len(hashed)]


# In the page alone --------------------------------------------------------------------------------


async def stored(device: Device) -> list[dict[str, Any]]:
    from py_runtime.folder.kept_models import list_stored_models

    return await list_stored_models()


async def entries(device: Device) -> dict[str, int]:
    """Return the names and sizes that the browser's storage has."""
    from py_runtime.bridge.opfs import list_stored

    return {name: size for name, size, _ in await list_stored()}


async def empty_storage(device: Device) -> None:
    from py_runtime.bridge.opfs import delete_stored_file

    for name in await entries(device):
        await delete_stored_file(name)


async def delete(device: Device, name: str) -> str | None:
    from py_runtime.folder.kept_models import delete_stored

    try:
        await delete_stored(name)
    except InpageError as error:
        return str(error)
    return None


async def overwrite(device: Device, entry: str, at: int, data: list[int]) -> None:
    """Damages a stored file."""
    import numpy as np

    from py_runtime.bridge.opfs import StoredWriter

    writer = StoredWriter(entry)
    await writer.write(at, np.array(data, np.uint8))
    await writer.close()


async def load_while_locked(device: Device, where: str, entry: str) -> dict[str, Any]:
    """Load as if another tab were just moving that file to its place."""
    from py_runtime.bridge.opfs import StoredWriter

    writer = StoredWriter(entry)
    await writer.opened()
    try:
        return await load(device, where)
    finally:
        await writer.close()


async def load_while_taken_away(device: Device, where: str, before: str) -> dict[str, Any]:
    """Load as if another tab moved each download to its place before this one has opened it."""
    from py_runtime.bridge import opfs

    entry_of, close = opfs._entry, opfs.StoredWriter.close

    async def entry_that_goes(name: str, create: bool = False) -> Any:
        entry = await entry_of(name, create)
        if create and name.startswith("begun-"):
            await opfs.delete_stored_file(name)
        return entry

    async def close_what_goes(self: opfs.StoredWriter) -> None:
        await close(self)
        if self._name.startswith("begun-"):
            await opfs.delete_stored_file(self._name)

    opening = _patched(opfs, "_entry", entry_that_goes)
    moving = _patched(opfs.StoredWriter, "close", close_what_goes)
    with {"opening": opening, "moving": moving}[before]:
        return await load(device, where)


async def load_with_little_room(device: Device, where: str, free: int) -> dict[str, Any]:
    import js
    from pyodide.ffi import create_proxy, to_js

    async def estimate(*_: Any) -> Any:
        answer = {"quota": 1000 + free, "usage": 1000}
        return to_js(answer, dict_converter=js.Object.fromEntries)

    with _patched(js.StorageManager.prototype, "estimate", create_proxy(estimate)):
        return await load(device, where)


async def load_until_full(device: Device, where: str, writes: int) -> dict[str, Any]:
    """Load with a storage that is full after so many writes, whatever its estimate was."""
    import js
    from pyodide.ffi import create_proxy

    prototype = js.FileSystemSyncAccessHandle.prototype
    original = prototype.write
    left = writes

    def write(handle: Any, *arguments: Any) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            raise _no_space()
        return original.call(handle, *arguments)

    with _patched(prototype, "write", create_proxy(write, capture_this=True)):
        return await load(device, where)


async def load_while_nothing_opens(device: Device, where: str) -> dict[str, Any]:
    """Load with a storage where files can be created, and none be opened to be written."""
    import js
    from pyodide.ffi import create_proxy

    refuse = create_proxy(lambda *_: js.Promise.reject(_no_space()))
    with _patched(js.FileSystemFileHandle.prototype, "createSyncAccessHandle", refuse):
        return await load(device, where)


def _no_space() -> Any:
    """Return the error of a full storage; of newer browsers it has a class of its own."""
    import js

    if hasattr(js, "QuotaExceededError"):
        return js.QuotaExceededError.new("no space on purpose")
    return js.DOMException.new("no space on purpose", "QuotaExceededError")


async def load_without_storage(device: Device, where: str) -> list[Any]:
    import js

    with _patched(js.StorageManager.prototype, "getDirectory", None):
        return [await load(device, where), await stored(device)]


async def load_with_a_broken_plan(device: Device, where: str) -> dict[str, Any]:
    """Load while the graph's pipelines fail and its weights are on their way."""
    from py_runtime.base.errors import GraphError

    async def fail(*_: Any) -> None:
        raise GraphError("broken on purpose")

    with _patched(Graph, "_create_plan", fail):
        return await load(device, where)


async def load_without_gpu_memory(device: Device, where: str) -> dict[str, Any]:
    """Load where the scope that looks for memory, the last of three, finds none."""
    import js
    from inpage_bridge import bridge
    from pyodide.ffi import create_proxy

    closed = 0

    def pop(*_: Any) -> Any:
        nonlocal closed
        closed += 1
        found = original.call(bridge.device())
        return js.GPUOutOfMemoryError.new("none on purpose") if closed % 3 == 0 else found

    original = js.GPUDevice.prototype.popErrorScope
    with _patched(js.GPUDevice.prototype, "popErrorScope", create_proxy(pop)):
        return await load(device, where)


async def gpu_buffers(device: Device) -> int:
    """Count the buffers that the bridge holds, not those that the device counts."""
    from inpage_bridge import bridge

    return [gpu_object.constructor.name for gpu_object in bridge.objects.values()].count(
        "GPUBuffer"
    )


@contextmanager
def _patched(owner: Any, name: str, value: Any) -> Iterator[None]:
    original = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, original)
