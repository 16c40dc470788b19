"""Adapters of the model that answers, as pages ask for them."""

from typing import Any
from urllib.parse import urljoin, urlsplit

from py_runtime.adapters.files import files_of
from py_runtime.adapters.gguf import is_adapter
from py_runtime.adapters.peft import CONFIG
from py_runtime.app.dropped_files import sources_of
from py_runtime.app.loaded_models import LoadedModel, LoadedModels
from py_runtime.app.model_facts import Json
from py_runtime.base.errors import InpageError, RequestError
from py_runtime.base.messages import message
from py_runtime.folder.file_names import GGUF
from py_runtime.gguf.reader import open_gguf
from py_runtime.model import writer


async def holds_adapter(listed: list[Any]) -> bool:
    """Return whether a user's files are an adapter, and no model."""
    sources = sources_of(listed)
    if CONFIG in sources:
        return True
    ggufs = [source for name, source in sources.items() if name.lower().endswith(GGUF)]
    if len(ggufs) != 1:
        return False
    try:
        return is_adapter(await open_gguf(ggufs))
    except InpageError:  # whoever loads the model says what is wrong
        return False


class AdapterCalls:
    """The call `adapters`, and files of adapters that are loaded like models."""

    def __init__(self, loaded: LoadedModels, site: str) -> None:
        self._loaded = loaded
        self._site = site

    async def change(
        self, model: Any, where: Any, name: Any, strength: Any, is_removed: Any
    ) -> list[Json]:
        """Load an adapter, change the strength of one, or remove one; return all there are."""
        loaded = self._loaded.find(model)
        adapters = writer(loaded.model).adapters
        if where is not None:
            given = sources_of(where) if isinstance(where, list) else self._address(where)
            found = files_of(given)[0] if name is None else str(name)
            await adapters.load(given, 1.0 if strength is None else strength, found)
        elif is_removed:
            await adapters.remove(name)
        elif strength is not None:
            adapters.set_strength(name, strength)
        if where is not None or is_removed or strength is not None:
            self._tell(loaded)
        return adapters_of(loaded)

    async def load_files(self, listed: list[Any]) -> Json:
        """Apply an adapter in a user's files; `about` describes it, as Markdown."""
        found = await self.change(None, listed, None, None, None)
        name = found[-1]["name"]
        about = f"**{name} is applied.** Its strength is beside the model's name."
        return {"name": name, "adapters": found, "about": about}

    def _address(self, where: Any) -> str:
        if not isinstance(where, str) or not where:
            raise RequestError("an adapter is given by its files or its address", "where")
        url = urljoin(self._site, where)
        if urlsplit(url)[:2] != urlsplit(self._site)[:2]:
            raise RequestError(f"{url} is of another origin; adapters come from this one", "where")
        return url

    def _tell(self, loaded: LoadedModel) -> None:
        loaded.described["adapters"] = adapters_of(loaded)
        self._loaded.tell(message("adapters_changed", name=loaded.name))


def adapters_of(loaded: LoadedModel) -> list[Json]:
    """List the adapters of a model, in the order they came."""
    strengths = writer(loaded.model).adapters.strengths
    return [{"name": name, "strength": strength} for name, strength in strengths.items()]
