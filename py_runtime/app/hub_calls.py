"""Calls of pages to the Hub, once their user has allowed it: a repository's files, and models."""

from dataclasses import asdict
from typing import Any

from py_runtime.app.model_facts import TOO_LARGE, Json, in_a_line
from py_runtime.base.errors import InpageError, NetworkError, RequestError, StorageError
from py_runtime.base.messages import Message, message, worded
from py_runtime.download.connection import open_connection
from py_runtime.gguf.projector_names import is_projector
from py_runtime.gpu import CPU, Device
from py_runtime.hub.address import HubAddress, parse_address
from py_runtime.hub.choice import Variant, default_of, variants_of
from py_runtime.hub.errors import HubError
from py_runtime.hub.hub import Hub, HubModel, model_of
from py_runtime.hub.requests import HubRequests
from py_runtime.hub.shelf import missing_bytes, open_shelf
from py_runtime.model.gguf_store import GgufStore
from py_runtime.model.hub_store import HubStore
from py_runtime.model.requirements import bytes_on_cpu

BUFFER_LIMIT = "max_storage_buffer_binding_size"
MAX_WORDS = 200  # characters of a search
MAX_OFFERED = 200  # files to choose from: far more than any repository is known to have


class HubCalls:
    """The calls of one engine; `endpoint` is the Hub's address where the site allows it, else None.

    `permission` is what the user has allowed: None for nothing, else an object, with their token
    where they gave one.
    """

    def __init__(self, endpoint: str | None) -> None:
        self._endpoint = endpoint

    async def store(self, where: str, permission: Any) -> HubStore:
        """Return the store of a model that is fetched from the Hub."""
        address = parse_address(where)
        return HubStore(await self._open(permission), address)

    async def search(self, words: Any, permission: Any) -> list[Json]:
        """Find repositories with GGUF files by words, those that are downloaded most first."""
        if not isinstance(words, str) or not words.strip() or len(words) > MAX_WORDS:
            raise RequestError(f"hubSearch() takes up to {MAX_WORDS} characters", "words")
        hub = await self._open(permission)
        return [asdict(found) for found in await hub.search(words.strip())]

    async def files(self, where: Any, permission: Any, device: Device) -> Json:
        """Describe a repository's files and which of them fit this browser and this device."""
        if not isinstance(where, str):
            raise RequestError("hubFiles() takes owner/name, or a model's address", "where")
        address = parse_address(where)
        hub = await self._open(permission)
        found = await hub.list_repository(address)
        variants = variants_of(found.files)
        described: Json = {
            "name": found.name,
            "commit": found.commit,
            "licence": found.licence,
            "gated": found.gated,
            "files": [],
            "default": None,
        }
        if not variants:
            said = message("no_gguf_files")
            return {**described, "error": worded(said), "fault": said}
        preferred = _chosen(variants, address)
        chosen = model_of(found, preferred, address)
        largest, fault = await _look_at(hub, chosen, device)
        rows = [
            await _row(hub, model_of(found, variant, address), chosen, largest, device)
            for variant in _offered(variants, preferred)
        ]
        described |= {"files": rows, "default": chosen.url}
        return {**described, "error": str(fault), "fault": fault.wording} if fault else described

    async def _open(self, permission: Any) -> Hub:
        """Open the Hub; without permission, or on a site without it, only what is stored."""
        requests = None
        if self._endpoint is not None and permission is not None:
            token = permission.get("token") if isinstance(permission, dict) else None
            if token is not None and not _is_token(token):
                raise RequestError("a token of the Hub is one word, without spaces", "token")
            requests = HubRequests(self._endpoint, open_connection(), token)
        elif self._endpoint is None and permission is not None:
            raise HubError(message("hub_switched_off"))
        return Hub(await open_shelf(), requests)


def _is_token(token: Any) -> bool:
    return isinstance(token, str) and token.isascii() and token.isprintable() and " " not in token


def _chosen(variants: list[Variant], address: HubAddress) -> Variant:
    """Return the variant whose file was named, or the default."""
    named = [v for v in variants if any(file.path == address.file for file in v.files)]
    return named[0] if named else default_of(variants)


def _offered(variants: list[Variant], preferred: Variant) -> list[Variant]:
    """Return the smallest variants, and the preferred one wherever it stands."""
    first = variants[:MAX_OFFERED]
    return first if preferred in first else [*first[:-1], preferred]


async def _look_at(hub: Hub, model: HubModel, device: Device) -> tuple[int, InpageError | None]:
    """Return (its largest buffer, why it cannot be loaded), from its header alone.

    On the CPU all of it is in one memory, so that all of it counts.
    """
    store = GgufStore(model.variant.name, hub.sources(model))
    try:
        manifest = await store.manifest()
    except NetworkError:
        raise
    except InpageError as error:
        return 0, error
    if device.kind == CPU:
        return bytes_on_cpu(manifest.least_gpu_bytes, manifest.size), None
    return manifest.requires.limits[BUFFER_LIMIT], None


async def _row(hub: Hub, model: HubModel, chosen: HubModel, largest: int, device: Device) -> Json:
    """Describe a variant; its largest tensor is estimated from the sizes of the files."""
    variant = model.variant
    missing = missing_bytes(hub.shelf, model.files)
    try:
        free: int | None = await hub.shelf.room_for(model.url, model.files)
    except StorageError:
        free = None
    needed = largest * variant.size // max(chosen.variant.size, 1)
    fits_storage = free is not None and missing <= free
    limit = device.limits[BUFFER_LIMIT]
    fits_gpu = needed <= limit
    too_large = TOO_LARGE if device.kind == CPU else "tensor_too_large_for_gpu"
    unfit = _unfit_storage(fits_storage, free, missing)
    if unfit is None and not fits_gpu:
        unfit = message(too_large, needed=needed, limit=limit)
    return {
        "address": model.url,
        "name": variant.name,
        "quantisation": variant.quantisation,
        "size": variant.size,
        "sees": any(is_projector(file.path.rpartition("/")[2]) for file in variant.files),
        "missing": missing,
        "fits_storage": fits_storage,
        "fits_gpu": fits_gpu,
        **in_a_line([message("model_size", size=variant.size), *_stored(variant, missing)]),
        **({"unfit": unfit} if unfit else {}),
        "fit": worded(unfit) if unfit else "",
    }


def _stored(variant: Variant, missing: int) -> list[Message]:
    if not missing:
        return [message("stored_whole")]
    arrived = variant.size - missing
    return [message("stored_bytes", stored=arrived)] if arrived else []


def _unfit_storage(fits_storage: bool, free: int | None, missing: int) -> Message | None:
    """Return why the browser cannot keep a file; None where it can."""
    if free is None:
        return message("storage_off")
    if not fits_storage:
        return message("too_large_for_storage", needed=missing, free=max(free, 0))
    return None
