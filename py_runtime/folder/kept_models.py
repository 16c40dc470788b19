"""The list of models that this browser keeps, and their deletion."""

from typing import Any

from py_runtime.base.errors import StorageError
from py_runtime.bridge.cross_origin import is_offered
from py_runtime.folder.browser_storage import Storage
from py_runtime.folder.file_set import FileSet

LOCAL = "local:"  # what the address of a copy of the user's own files begins with


async def list_stored_models() -> list[dict[str, Any]]:
    """List each model's name, url, bytes that are kept, and whether that is all of it."""
    try:
        storage = await Storage.open()
    except StorageError:
        return []  # where nothing can be kept, nothing is
    return [
        {
            "name": model.manifest.name,
            "url": model.url,
            "bytes": storage.kept_bytes(model.manifest),
            "complete": storage.is_whole(model.manifest),
        }
        for model in storage.models
    ]


async def list_stored_sets() -> list[tuple[str, FileSet, int]]:
    """List (address, files, bytes that are kept) of models that came without a manifest."""
    try:
        storage = await Storage.open()
    except StorageError:
        return []
    return [
        (model.url, model.manifest, storage.kept_bytes(model.manifest))
        for model in storage.models
        if isinstance(model.manifest, FileSet)
    ]


async def share_stored(is_allowed: bool) -> bool:
    """Have sites share the files of models, or no longer; return whether this browser can."""
    await (await Storage.open()).allow_sharing(is_allowed)
    return is_offered()


async def delete_stored(name_or_url: str) -> None:
    """Delete a model; files that another kept model needs as well stay."""
    storage = await Storage.open()
    found = [m for m in storage.models if name_or_url in (m.url, m.manifest.name)]
    if not found:
        raise StorageError(f"no model '{name_or_url}' is stored in this browser")
    for model in found:
        await storage.forget(model)
