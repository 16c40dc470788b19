"""The engine behind `globalThis.inpage`: one device, at most one model, calls by name."""

import asyncio
import json
import math
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urljoin, urlsplit

from py_runtime import notices
from py_runtime.cancel import CancelToken
from py_runtime.errors import (
    GpuDeviceLostError,
    GpuOutOfMemoryError,
    NetworkError,
    NoModelError,
    RequestError,
)
from py_runtime.folder.stored import delete_stored, stored_models
from py_runtime.folder.urls import fetch_bytes
from py_runtime.generation.completions import Completion
from py_runtime.generation.messages import parse_messages
from py_runtime.gpu import Device, request_device
from py_runtime.model import Model
from py_runtime.verify import verify

Json = dict[str, Any]
Emit = Callable[[Json], None]


class Engine:
    def __init__(self, device: Device, site: str) -> None:
        self.site = site  # its address, with a slash at the end
        self.model: Model | None = None
        self._device = device  # while no model is loaded
        self._running: set[CancelToken] = set()
        self._changing = asyncio.Lock()  # held while a model comes or goes

    @property
    def device(self) -> Device:
        """A model that lost its device has taken a new one."""
        return self._device if self.model is None else self.model.graph.device

    # Models ------------------------------------------------------------------------------------

    async def models(self) -> list[Json]:
        """What the site offers, and whether this browser has it whole."""
        whole = {entry["url"] for entry in await stored_models() if entry["complete"]}
        return [{**entry, "stored": self._url(entry) in whole} for entry in await self._listed()]

    async def load(self, name_or_url: str, emit: Emit, cancel: CancelToken) -> Json:
        """Puts a model in the place of the one that is loaded, or is being loaded."""
        listed = await self._listed()
        url = self._find(name_or_url, listed)
        self._stop_all()
        self._running.add(cancel)
        try:
            async with self._changing:
                cancel.check()
                await self._remove()
                meter = LoadMeter(emit)
                model = self.model = await self._load(url, meter, cancel)
                described = {**_describe(model), "from_cache": not meter.downloaded}
                notices.post("model", f"{model.manifest.name} is loaded.", loaded=described)
                return described
        except GpuOutOfMemoryError as error:
            raise GpuOutOfMemoryError(f"{error}{_what_fits(listed, url, self._url)}") from None
        finally:
            self._running.discard(cancel)

    async def unload(self) -> None:
        """Stops what is being generated or loaded, then gives the GPU's memory back."""
        self._stop_all()
        async with self._changing:
            await self._remove()

    def _stop_all(self) -> None:
        for cancel in list(self._running):
            cancel.cancel()

    async def _remove(self) -> None:
        if self.model is None:
            return
        model = self.model
        async with model.idle():
            self._device, self.model = model.graph.device, None
            model.unload()
        notices.post("model", f"{model.manifest.name} is no longer loaded.", loaded=None)

    async def stored(self) -> list[Json]:
        return await stored_models()

    async def delete_stored(self, name_or_url: str) -> None:
        await delete_stored(name_or_url)

    async def _load(self, url: str, meter: "LoadMeter", cancel: CancelToken) -> Model:
        for is_last in (False, False, True):
            try:
                model = await Model.load(self._device, url, meter, cancel)
                break
            except GpuDeviceLostError:  # perhaps long ago, while nobody used it
                if is_last:
                    raise
                self._device = await request_device()
        try:
            await model.warm_up(meter, cancel)
        except BaseException:
            self._device = model.graph.device
            model.unload()
            raise
        return model

    async def _listed(self) -> list[Json]:
        """models.json; without the network, what this browser has of it."""
        try:
            listed: list[Json] = json.loads(await fetch_bytes(f"{self.site}models.json"))
        except NetworkError:
            listed = [
                {"name": entry["name"], "path": entry["url"].removeprefix(self.site)}
                for entry in await stored_models()
                if entry["complete"] and entry["url"].startswith(self.site)
            ]
            if not listed:
                raise
        return listed

    def _url(self, entry: Mapping[str, Any]) -> str:
        return self.site + str(entry["path"])

    def _find(self, name_or_url: Any, listed: list[Json]) -> str:
        where = "name_or_url"
        if not isinstance(name_or_url, str) or not name_or_url:
            raise RequestError("load() takes a model's name or its address", where)
        for entry in listed:
            if entry["name"] == name_or_url:
                return self._url(entry)
        if "/" not in name_or_url:
            names = ", ".join(entry["name"] for entry in listed) or "none"
            raise RequestError(f"there is no model '{name_or_url}' here; there are: {names}", where)
        url = urljoin(self.site, name_or_url)
        if urlsplit(url)[:2] != urlsplit(self.site)[:2]:
            raise RequestError(f"{url} is of another origin; models come from this one only", where)
        return url if url.endswith("/") else f"{url}/"

    # Answers -----------------------------------------------------------------------------------

    async def create(self, fields: Json, is_chat: bool, emit: Emit, cancel: CancelToken) -> Any:
        """A completion; with `stream`, its chunks go through `emit` and nothing comes back."""
        if not isinstance(fields, dict):
            raise RequestError("a request is an object", None)
        async with self._cancellable(cancel) as model:
            completion = Completion(model, fields, is_chat)
            if not completion.stream:
                return await completion.answer(cancel)
            await completion.chunks(cancel, emit)
            return None

    async def count_tokens(self, messages: Any) -> Json:
        model = self._loaded()
        prompt = model.chat_tokens(parse_messages(messages))
        return {"prompt_tokens": len(prompt), "context": model.context}

    async def verify(self, emit: Emit, cancel: CancelToken, thorough: bool = False) -> Any:
        """Whether this browser and this GPU compute the model rightly."""
        async with self._cancellable(cancel) as model:

            def progress(phase: str, done: int, total: int) -> None:
                emit({"phase": phase, "done": done, "total": total})

            async with model.idle():
                await model.session.recover()
            try:
                return await verify(model, progress, cancel, thorough)
            except GpuDeviceLostError as error:
                async with model.idle():
                    model.session.lose(error)
                    await model.session.recover()
                return await verify(model, progress, cancel, thorough)

    @asynccontextmanager
    async def _cancellable(self, cancel: CancelToken) -> AsyncIterator[Model]:
        model = self._loaded()
        self._running.add(cancel)
        try:
            yield model
        finally:
            self._running.discard(cancel)

    def _loaded(self) -> Model:
        if self.model is None:
            raise NoModelError()
        return self.model


class LoadMeter:
    """Tells how far a load is: the phase, what it counts, the seconds, and one overall fraction."""

    SHARES: Mapping[str, float] = {"upload": 0.8, "shaders": 0.15, "warm-up": 0.05}

    def __init__(self, emit: Emit) -> None:
        self.downloaded = False
        self._emit = emit
        self._started = time.perf_counter()
        self._phases: dict[str, float] = {}  # how much of each is done
        self._fraction = 0.0  # never falls, also when a phase learns of more to do

    def __call__(self, phase: str, done: int, total: int) -> None:
        self.downloaded |= phase == "download" and done > 0
        self._phases[phase] = done / total if total else 1.0
        overall = sum(share * self._phases.get(name, 0) for name, share in self.SHARES.items())
        self._fraction = max(self._fraction, overall)
        self._emit(
            {
                "phase": phase,
                "done": done,
                "total": total,
                "seconds": time.perf_counter() - self._started,
                "fraction": self._fraction,
            }
        )


def _describe(model: Model) -> Json:
    """What a page shows of a model."""
    manifest = model.manifest
    return {
        "name": manifest.name,
        "parameters": manifest.parameters,
        "context": manifest.context,
        "size": manifest.size,
        "gpu_bytes": manifest.gpu_bytes,
        "quantisation": manifest.quantisation,
        "source": manifest.source,
        "has_chat_template": model.chat_template is not None,
        "has_goldens": manifest.goldens is not None,
    }


def _what_fits(listed: list[Json], url: str, url_of: Callable[[Json], str]) -> str:
    """Advice after the GPU's memory did not suffice."""
    needed = {url_of(entry): float(entry.get("gpu_bytes") or math.inf) for entry in listed}
    limit = needed.get(url, math.inf)
    smaller = [
        f"{entry['name']} ({entry['gpu_bytes'] / 1e6:.0f} MB)"
        for entry in listed
        if needed[url_of(entry)] < limit
    ]
    return f". Smaller models here: {', '.join(smaller)}" if smaller else ""
