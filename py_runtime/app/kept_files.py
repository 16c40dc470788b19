"""Copies of the user's files that this browser stores because they asked for it."""

import hashlib
from collections.abc import Sequence
from contextlib import aclosing
from typing import Any

from py_runtime.app.dropped_files import sources_of
from py_runtime.base.errors import QuotaError, RequestError
from py_runtime.base.file_facts import FileFacts
from py_runtime.base.messages import message
from py_runtime.base.progress import DOWNLOAD, Meter
from py_runtime.bridge.opfs import free_bytes
from py_runtime.folder.browser_storage import Storage
from py_runtime.folder.file_names import GGUF
from py_runtime.folder.file_set import FileSet
from py_runtime.folder.kept_models import LOCAL
from py_runtime.folder.stored_names import FILE
from py_runtime.gguf.part_names import model_name
from py_runtime.gguf.projector_names import apart
from py_runtime.model.gguf_store import GgufStore
from py_runtime.weights.byte_source import ByteSource
from py_runtime.weights.page_source import StoredSource


async def keep_files(listed: list[Any], meter: Meter) -> str:
    """Copy GGUF files into storage and return the address to load them from."""
    sources = [s for name, s in sources_of(listed).items() if name.lower().endswith(GGUF)]
    if not sources:
        raise RequestError("only GGUF files are kept", "files")
    storage = await Storage.open()
    await _check_room(sources)
    for source in sources:
        meter.expect(DOWNLOAD, source.name, await source.size())
    facts = {source.name: await _copy(storage, source, meter) for source in sources}
    parts, _ = apart(sources)
    files = FileSet(model_name(min(part.name for part in parts)), facts)
    url = LOCAL + files.name
    await storage.keep_manifest(url, files, files.to_json())
    return url


async def local_store(url: str) -> GgufStore:
    """Return the store of a copy that was kept."""
    storage = await Storage.open()
    kept = storage.find_model(url)
    if kept is None or not storage.is_whole(kept.manifest):
        said = message("no_stored_copy", name=url.removeprefix(LOCAL))
        raise RequestError(said, "name_or_url")
    return GgufStore(
        kept.manifest.name,
        [
            StoredSource(FILE + facts.sha256, name, facts.size)
            for name, facts in kept.manifest.files.items()
        ],
    )


async def _check_room(sources: Sequence[ByteSource]) -> None:
    needed = sum([await source.size() for source in sources])
    free = await free_bytes()
    if needed > free:
        raise QuotaError(message("copy_too_large", needed=needed, free=max(free, 0)))


async def _copy(storage: Storage, source: ByteSource, meter: Meter) -> FileFacts:
    size = await source.size()
    sha256 = hashlib.sha256()
    writer = storage.create_partial()
    try:
        async with aclosing(source.pieces([0, size])) as pieces:
            async for position, piece in pieces:
                sha256.update(piece.data)
                await writer.write(piece)
                meter.reach(DOWNLOAD, source.name, position + len(piece))
        facts = FileFacts(size, sha256.hexdigest())
        await writer.keep(facts)
    except BaseException:
        await writer.drop()
        raise
    return facts
