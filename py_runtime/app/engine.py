"""The engine behind `globalThis.inpage`: its devices, its models, the calls of pages."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

from py_runtime.app.completions import Completion
from py_runtime.app.listing import parse_listing
from py_runtime.app.load_progress import Emit, LoadMeter
from py_runtime.app.loaded_models import LoadedModel, LoadedModels, Wanted
from py_runtime.app.model_facts import (
    Json,
    describe_model,
    describe_offer,
    describe_stored,
    with_smaller_models,
)
from py_runtime.base import notices
from py_runtime.base.cancel import CancelToken
from py_runtime.base.concurrency import until_cancelled
from py_runtime.base.errors import (
    AbortedError,
    GpuOutOfMemoryError,
    InpageError,
    NetworkError,
    RequestError,
)
from py_runtime.base.messages import message
from py_runtime.base.progress import Meter
from py_runtime.chat.request import ChatRequest
from py_runtime.devices.one_device import device_in_use, newest
from py_runtime.devices.recovery import load_onto
from py_runtime.folder import notes
from py_runtime.folder.file_names import GGUF, PTE
from py_runtime.folder.kept_models import (
    LOCAL,
    delete_stored,
    list_stored_models,
    list_stored_sets,
    share_stored,
)
from py_runtime.folder.on_site import fetch_bytes
from py_runtime.generation.messages import parse_messages
from py_runtime.gpu import Device
from py_runtime.graph.device_choice import wanted_kind
from py_runtime.graph.tuning import choose_kernels
from py_runtime.hub.address import PREFIX, is_hub_address
from py_runtime.model import AnyModel, check_requirements, load_model, writer
from py_runtime.model.cache_type import check_cache_type
from py_runtime.model.stores import Store, open_store
from py_runtime.model.verify import verify

if TYPE_CHECKING:
    from py_runtime.app.adapter_calls import AdapterCalls
    from py_runtime.app.document_calls import DocumentCalls
    from py_runtime.app.hub_calls import HubCalls
    from py_runtime.app.outer_page import OuterPage
    from py_runtime.model.pte_store import PteFiles
    from py_runtime.pte import PteModule

KEPT = (PREFIX, LOCAL)  # what addresses begin with that lead to this browser's storage
FETCHING = 0.9  # of a load from the Hub
# The methods that pages call, by the names and the fields that web/calls.d.ts declares.
CALLS = (
    *("models", "load", "keep_files", "unload", "stored", "delete_stored", "share_stored"),
    *("hub_files", "hub_search", "adapters", "samplers", "check_format"),
    *("chat", "complete", "embed", "rerank", "documents", "count_tokens", "verify", "glass"),
)


@dataclass(frozen=True)
class Load:
    """The way a model is to be loaded."""

    device: Device
    wanted: Wanted
    keep: bool  # those that are loaded
    is_restored: bool  # it was loaded before the engine was restarted
    meter: LoadMeter
    cancel: CancelToken


class Engine:
    """The engine that pages call; one model comes or goes at a time."""

    def __init__(
        self,
        device: Device,
        site: str,
        hub: str | None = None,
        outer_page: "OuterPage | None" = None,
    ) -> None:
        self.site = site  # its address, with a slash at the end
        self.outer_page = outer_page  # in somebody else's page; None in our own
        self.hub = hub  # the Hub's, where the site allows its page to ask there
        self.loaded = LoadedModels()
        self.module: PteModule | None = None  # of a user's file
        self._device = device  # where a load asks for none
        self._loads: set[CancelToken] = set()  # of what is being loaded, or is to be
        self._changing = asyncio.Lock()  # held while a model comes or goes

    def __repr__(self) -> str:
        return f"Engine({self.model!r} on {self.device!r})"

    @property
    def model(self) -> AnyModel | None:
        """Return the model that answers where none is named: the last one, or an encoder."""
        return self.loaded.last.model if self.loaded.last else None

    @property
    def device(self) -> Device:
        """Return the device in use; where a model lost its own, the one that replaced it."""
        return newest(self._device if self.model is None else self.model.graph.device)

    # Models ------------------------------------------------------------------------------------

    async def models(self) -> list[Json]:
        """List what the site offers, and whether this browser has all of it."""
        device = await self.device_for(None)
        return [{**entry, **describe_offer(entry, device)} for entry in await self._listed()]

    async def device_for(self, kind: str | None, threads: int | None = None) -> Device:
        """Return the device of that kind, or the engine's own where none is asked for."""
        own = self._device = newest(self._device)
        if kind in (None, own.kind) and threads in (None, own.threads):
            return own
        return await device_in_use(kind or own.kind, threads)

    async def load(
        self,
        *,
        where: Any = None,
        device: Any = None,
        threads: Any = None,
        kernels: Any = None,
        kv: Any = None,
        draft: Any = None,
        hub: Any = None,
        keep: Any = None,
        is_restored: Any = None,
        emit: Emit,
        cancel: CancelToken,
    ) -> Json:
        """Load a model in place of those that are loaded, or are being loaded.

        `where`: its name, its path or address, or a list of files that the user gave; `device`: the
        kind to load it onto, or None; `threads`: those of the CPU, or None; `kernels`: those of
        Model.load, or None; `kv`: the type of its caches, likewise; `draft`: a model that proposes
        its tokens, by its name, path or address; `hub`: the permission to ask the Hub, as HubCalls
        has it; `keep`: the others stay, except one of the same name;
        `is_restored`: it was loaded before the engine was restarted, perhaps because of it.
        """
        if not isinstance(keep, bool | None):
            raise RequestError(f"keep must be true or false, got {keep!r:.100}", "keep")
        check_cache_type(kv)
        kind = wanted_kind(device, kernels, threads)
        self._loads.add(cancel)
        try:
            chosen = await until_cancelled(self.device_for(kind, threads), cancel)
            meter = LoadMeter(emit)
            wanted = Wanted(kernels, kv, await self._found_draft(draft, hub, meter, cancel))
            load = Load(chosen, wanted, bool(keep), bool(is_restored), meter, cancel)
            return await self._load_from(where, hub, load)
        finally:
            self._loads.remove(cancel)

    async def _found_draft(
        self, where: Any, hub: Any, meter: LoadMeter, cancel: CancelToken
    ) -> str | Store | None:
        """Find the draft that a load names; one on the Hub is fetched."""
        if where is None:
            return None
        listed = [] if is_hub_address(where) else await until_cancelled(self._listed(), cancel)
        url = self._find(where, listed)
        if is_hub_address(url):
            store = await until_cancelled(self._hub.store(url, hub), cancel)
            await until_cancelled(store.fetch(Meter(meter)), cancel)
            return store
        return await self._local_store(url, cancel) if url.startswith(LOCAL) else url

    async def _local_store(self, url: str, cancel: CancelToken) -> Store:
        from py_runtime.app.kept_files import local_store  # few need it

        return await until_cancelled(local_store(url), cancel)

    async def _load_from(self, where: Any, hub: Any, load: "Load") -> Json:
        if isinstance(where, list):
            return await self._load_files(where, load)
        is_listed = not is_hub_address(where)
        listed = await until_cancelled(self._listed(), load.cancel) if is_listed else []
        url = self._find(where, listed)
        if is_hub_address(url):
            return await self._load_from_hub(url, hub, load)
        if url.startswith(LOCAL):
            return await self._load_model(await self._local_store(url, load.cancel), url, load)
        path = url.removeprefix(self.site)
        try:
            return await self._load_model(url, path, load)
        except GpuOutOfMemoryError as error:
            raise with_smaller_models(error, listed, url, self._url) from None

    async def _load_from_hub(self, url: str, hub: Any, load: "Load") -> Json:
        """Load a model of the Hub; what is loaded stays until all of the new one has come."""
        store = await until_cancelled(self._hub.store(url, hub), load.cancel)
        async with self._changing_alone(load):

            async def fetch() -> None:
                check_requirements(await store.manifest(), load.device, self._freed_by(load))
                load.meter.download_share = FETCHING
                await store.fetch(Meter(load.meter))

            await until_cancelled(fetch(), load.cancel)
        path = (await store.found()).url
        return await self._load_model(store, path, load)

    async def hub_search(self, *, words: Any = None, hub: Any = None) -> list[Json]:
        """Find models on the Hub by words."""
        return await self._hub.search(words, hub)

    async def hub_files(self, *, where: Any = None, hub: Any = None) -> Json:
        """Describe the files that a repository of the Hub has to choose from."""
        return await self._hub.files(where, hub, await self.device_for(None))

    async def keep_files(self, *, files: Any = None, emit: Emit, cancel: CancelToken) -> str:
        """Copy files of the user's into this browser's storage; return the copy's address."""
        from py_runtime.app.kept_files import keep_files

        return await until_cancelled(keep_files(files, Meter(LoadMeter(emit))), cancel)

    @property
    def _hub(self) -> "HubCalls":
        from py_runtime.app.hub_calls import HubCalls  # few need it

        return HubCalls(self.hub)

    async def _load_model(self, where: str | Store, path: str | None, load: "Load") -> Json:
        """Load a model; `path` is its path in models(), None for files that the user gave."""
        async with self._changing_alone(load):
            if load.keep:
                where = await until_cancelled(_opened(where), load.cancel)
                name = (await where.manifest()).name
                leaving = [one for one in self.loaded if one.name == name]
            else:
                leaving = list(self.loaded)
                self._replace_module(None)
            await self._remove(leaving)
            try:
                model = await self._onto_device(load.device, where, load.wanted, load)
            except AbortedError:  # another load, or unload(), may want the room
                raise
            except InpageError:
                await self._restore(leaving, load)
                raise
            of_this_load = {"path": path, "from_cache": not load.meter.downloaded}
            described = {**describe_model(model), **of_this_load}
            self.loaded.add(model, described, load.wanted, not load.is_restored)
            return described

    def _freed_by(self, load: "Load") -> int:
        """Return the bytes that models give back to the device that make room for another one."""
        leaving = [] if load.keep else [graph for one in self.loaded for graph in one.graphs]
        on_it = (graph for graph in leaving if newest(graph.device) is newest(load.device))
        return sum(graph.memory.peak for graph in on_it)

    async def _onto_device(
        self, device: Device, where: str | Store, wanted: Wanted, load: "Load"
    ) -> AnyModel:
        return await load_onto(
            device,
            lambda device: load_model(device, where, load.meter, load.cancel, True, *wanted),
            load.cancel,
        )

    async def _restore(self, left: Iterable[LoadedModel], load: "Load") -> None:
        """Load models again that made room for one that turned out to be unusable.

        What is wrong with that one may show only when the last of its weights is read, and few
        devices have room for both models at once.
        """
        for one in left:
            with suppress(InpageError):  # the fault of the other model is what users hear of
                device = one.model.graph.device
                model = await self._onto_device(device, one.model.store, one.wanted, load)
                self.loaded.add(model, one.described, one.wanted)

    async def _load_files(self, listed: list[Any], load: "Load") -> Json:
        """Load a user's files; return what load() gives, and `about`, which describes them."""
        from py_runtime.app.adapter_calls import holds_adapter  # few need them
        from py_runtime.app.dropped_files import dropped

        if await until_cancelled(holds_adapter(listed), load.cancel):
            return await self._load_adapter(listed, load)
        files = dropped(listed)
        try:
            await until_cancelled(files.open(), load.cancel)
            if files.program is None:
                result = await self._load_model(files.store, None, load)
            else:
                result = await self._load_program(files.program, load)
        except AbortedError:
            raise
        except InpageError as error:
            raise files.fault(error) from None
        return {**result, "about": files.about()}

    async def _load_adapter(self, listed: list[Any], load: "Load") -> Json:
        try:
            return await until_cancelled(self._adapters.load_files(listed), load.cancel)
        except AbortedError:
            raise
        except InpageError as error:
            from py_runtime.app.dropped_files import FilesError
            from py_runtime.base.markdown import cannot_be_loaded

            raise FilesError(error, cannot_be_loaded(error)) from None

    async def adapters(
        self,
        *,
        model: Any = None,
        where: Any = None,
        name: Any = None,
        strength: Any = None,
        is_removed: Any = None,
        cancel: CancelToken,
    ) -> list[Json]:
        """Load an adapter onto a model, change the strength of one, or remove one; list all.

        `where`: files that the user gave, or an address of this site.
        """
        work = self._adapters.change(model, where, name, strength, is_removed)
        return await until_cancelled(work, cancel)

    async def samplers(self) -> list[Json]:
        """Describe the samplers that a request can name, those that users registered included."""
        import py_runtime.sampling.steps  # noqa: F401  (registers those of the engine)
        from py_runtime.sampling.step import KINDS

        return [kind.described() for kind in KINDS.values()]

    async def check_format(self, *, response_format: Any = None) -> Json | None:
        """Say what is wrong with the form of answers that a request wants; None if nothing is."""
        from py_runtime.app.format_calls import fault_of_format  # few need it

        return fault_of_format(response_format)

    @property
    def _adapters(self) -> "AdapterCalls":
        from py_runtime.app.adapter_calls import AdapterCalls  # few need it

        return AdapterCalls(self.loaded, self.site)

    async def _load_program(self, files: "PteFiles", load: "Load") -> Json:
        """Load a program that Python can run; the model to chat with stays loaded."""
        from py_runtime.pte import load as load_pte

        async with self._changing_alone(replace(load, keep=True)):
            device = newest(load.device)
            kernels = await choose_kernels(device, notes, load.wanted.kernels)
            meter, target = Meter(load.meter), kernels.target
            work = load_pte(files.program, device, files.data, meter=meter, target=target)
            module = await until_cancelled(work, load.cancel)
            self._replace_module(module)
        return {"name": files.name, "methods": module.methods}

    @asynccontextmanager
    async def _changing_alone(self, load: "Load") -> AsyncIterator[None]:
        """Hold the lock for a model that comes or goes; unload() or another load cancels it."""
        if not load.keep:
            self.loaded.stop_all()
        with self.loaded.at_work(load.cancel):
            async with self._changing:
                load.cancel.check()
                yield

    async def unload(self, *, name: Any = None) -> None:
        """Stop what is being generated or loaded, then give the memory back.

        If a model is named, only that one is unloaded: others go on.
        """
        if name is not None:
            leaving = self.loaded.find(name)
            self.loaded.stop(leaving.model)
            async with self._changing:
                await self._remove(one for one in self.loaded if one is leaving)
            return
        for cancel in list(self._loads):
            cancel.cancel()
        self.loaded.stop_all()
        async with self._changing:
            await self._remove(self.loaded)
            self._replace_module(None)

    def _replace_module(self, module: "PteModule | None") -> None:
        if self.module is not None:
            self.module.unload()
        self.module = module

    async def _remove(self, leaving: Iterable[LoadedModel]) -> None:
        self._device = newest(self._device)
        await self.loaded.remove(leaving)

    async def stored(self) -> list[Json]:
        return [describe_stored(entry) for entry in await list_stored_models()]

    async def share_stored(self, *, is_allowed: Any = None) -> bool:
        """Have sites share one copy of what this browser stores, or no longer."""
        return await share_stored(is_allowed is True)

    async def delete_stored(self, *, name_or_url: Any = None) -> None:
        await delete_stored(name_or_url)

    async def _listed(self) -> list[Json]:
        """Return models.json with `stored`; offline, what this browser has of it."""
        whole = {
            entry["url"]: entry["name"] for entry in await list_stored_models() if entry["complete"]
        }
        if self.outer_page is not None:
            listed = self.outer_page.listed()
        else:
            listed = await self._listed_by_site(whole)
        known = {entry["path"] for entry in listed}
        listed += [
            {"name": files.name, "path": url, "size": files.size, "kept_bytes": kept}
            for url, files, kept in await list_stored_sets()
            if url not in known
        ]
        return [{**entry, "stored": self._url(entry) in whole} for entry in listed]

    async def _listed_by_site(self, whole: Mapping[str, str]) -> list[Json]:
        """Return the site's list; `whole` is address → name of models that this browser has."""
        try:
            return parse_listing(await fetch_bytes(f"{self.site}models.json"))
        except NetworkError as error:
            listed = [
                {"name": name, "path": url.removeprefix(self.site)}
                for url, name in whole.items()
                if url.startswith(self.site)
            ]
            if not listed and not await list_stored_sets():
                raise
            notices.post("models", message("only_stored_models", reason=error.wording))
            return listed

    def _url(self, entry: Mapping[str, Any]) -> str:
        path = str(entry["path"])
        return path if self.outer_page or path.startswith(KEPT) else self.site + path

    def _find(self, name_or_url: Any, listed: list[Json]) -> str:
        where = "name_or_url"
        if not isinstance(name_or_url, str) or not name_or_url:
            raise RequestError("load() takes a model's name or its address", where)
        if name_or_url.startswith(KEPT):
            return name_or_url
        for entry in listed:
            if name_or_url not in (entry["name"], entry["path"]):
                continue
            if "error" in entry and not entry["stored"]:
                said = message("model_not_loadable", name=entry["name"], fault=entry["error"])
                raise RequestError(said, where)
            return self._url(entry)
        if "/" not in name_or_url:
            names = [entry["name"] for entry in listed]
            if not names:
                raise RequestError(message("no_models_here", name=name_or_url), where)
            raise RequestError(message("no_such_model", name=name_or_url, names=names), where)
        url = urljoin(self.site, name_or_url)
        if self.outer_page is not None and not self.outer_page.allows(url):
            advice = f"createEngine({{ models: [{url!r}] }}) allows it"
            raise RequestError(f"{url} is of another origin; {advice}", where)
        if self.outer_page is None and urlsplit(url)[:2] != urlsplit(self.site)[:2]:
            raise RequestError(f"{url} is of another origin; models come from this one only", where)
        return url if url.lower().endswith(("/", PTE, GGUF)) else f"{url}/"

    # Answers -----------------------------------------------------------------------------------

    async def chat(self, *, request: Any = None, emit: Emit, cancel: CancelToken) -> Any:
        """Answer a chat; with `stream`, its chunks go through `emit` and nothing comes back."""
        return await self._create(request, True, emit, cancel)

    async def complete(self, *, request: Any = None, emit: Emit, cancel: CancelToken) -> Any:
        """Continue a text, in the same ways."""
        return await self._create(request, False, emit, cancel)

    async def _create(self, request: Any, is_chat: bool, emit: Emit, cancel: CancelToken) -> Any:
        if not isinstance(request, dict):
            raise RequestError("a request is an object", None)
        with self.loaded.asked(request.get("model"), cancel) as loaded:
            completion = Completion(writer(loaded.model), request, is_chat)
            if not completion.stream:
                return await completion.answer(cancel)
            await completion.chunks(cancel, emit, is_compiling=not loaded.warming.done())
            return None

    async def embed(self, *, request: Any = None, cancel: CancelToken) -> Json:
        from py_runtime.app.embeddings import create_embeddings  # few need them

        if not isinstance(request, dict):
            raise RequestError("a request is an object", None)
        with self.loaded.asked(request.get("model"), cancel, for_texts=True) as loaded:
            return await create_embeddings(loaded.model, request, cancel)

    async def rerank(self, *, request: Any = None, cancel: CancelToken) -> Json:
        from py_runtime.app.rerank import create_ranking  # few need it

        if not isinstance(request, dict):
            raise RequestError("a request is an object", None)
        with self.loaded.asked(request.get("model"), cancel, for_pairs=True) as loaded:
            return await create_ranking(loaded.model, request, cancel)

    async def documents(
        self, *, action: Any = None, fields: Any = None, cancel: CancelToken
    ) -> Json:
        """Search documents that are longer than a context: the actions are in document_calls.py."""
        return await self._documents.call(action, fields, cancel)

    @cached_property
    def _documents(self) -> "DocumentCalls":
        from py_runtime.app.document_calls import DocumentCalls  # few need it

        return DocumentCalls(self.loaded)

    async def count_tokens(self, *, messages: Any = None, tools: Any = None) -> Json:
        model = writer(self.loaded.find(None).model)
        asked = ChatRequest.take({"tools": tools})
        prompt = model.chat_tokens(parse_messages(messages), asked)
        return {"prompt_tokens": len(prompt), "context": model.context}

    async def verify(self, *, thorough: bool = False, emit: Emit, cancel: CancelToken) -> Any:
        """Check whether this browser and this device compute the model correctly."""
        with self.loaded.asked(None, cancel) as loaded:
            model = writer(loaded.model)

            def progress(phase: str, done: int, total: int) -> None:
                said = message(f"verifying_{phase}", share=done / total)
                emit({"phase": phase, "done": done, "total": total, "messages": [said]})

            return await model.session.device.survive(
                lambda: verify(model, progress, cancel, thorough), cancel, model.idle()
            )

    async def glass(
        self,
        *,
        view: Any = None,
        fields: Any = None,
        model: Any = None,
        emit: Emit,
        cancel: CancelToken,
    ) -> Any:
        """Look into a model, or steer it: the views are in glass_calls.py."""
        from py_runtime.app.glass_calls import OF_ENCODERS, call_view  # few need them

        with self.loaded.asked(model, cancel, for_texts=view in OF_ENCODERS) as loaded:
            return await call_view(loaded.model, view, fields, emit, cancel)


async def _opened(where: str | Store) -> Store:
    return await open_store(where) if isinstance(where, str) else where
