"""Rows of a folder of a site, on behalf of test_folder_rows.py."""

from typing import Any

from py_runtime.base.progress import Meter
from py_runtime.gpu import Device


async def rows(device: Device, where: str, tokens: list[int]) -> dict[str, Any]:
    """Read rows from the site's files by ranges, then from the browser's storage."""
    from py_runtime.download.download import discard  # in the page alone
    from py_runtime.model.streamed_weights import StreamedFolder

    store = StreamedFolder(where)
    folder = await store.open()
    own = store.token_rows(folder)
    assert own is not None
    from_site = await own.read(tokens)
    for file in folder.manifest.weights:
        await store.delivery.deliver(file, discard, Meter())
    kept = [store.delivery.is_kept(file) for file in folder.manifest.weights]
    again = StreamedFolder(where)
    stored = again.token_rows(await again.open())
    assert stored is not None
    return {"site": from_site, "kept": all(kept), "stored": await stored.read(tokens)}
