"""Opens files that a user gave: tells what they hold, and loads what can be loaded.

A decoder beside its tokenizer becomes the model to chat with; any other program can be run from
Python, and leaves that model where it is.
"""

from typing import TYPE_CHECKING, Any

from py_runtime.app.given_files import given_files
from py_runtime.base.cancel import CancelToken
from py_runtime.base.concurrency import until_cancelled
from py_runtime.base.errors import AbortedError, InpageError
from py_runtime.base.progress import Meter
from py_runtime.folder.file_names import TOKENIZER
from py_runtime.model.pte_store import PteStore, decoder_of
from py_runtime.pte import PteProgram, inspect_pte, load
from py_runtime.pte.about import about_pte, cannot_be_loaded, plain

if TYPE_CHECKING:
    from py_runtime.app.engine import Engine, LoadMeter

Json = dict[str, Any]
AS_GRAPH = "**It is loaded.** In Python it is `graph`: `await graph.run([…])`."
AS_MODEL = "**You can chat with it now.** In Python it is `model`, and its graph is `graph`."


class FilesError(InpageError):
    """What is wrong with a user's files; `about` is all that is known of them, as Markdown."""

    def __init__(self, error: InpageError, about: str) -> None:
        super().__init__(str(error))
        self.code = error.code
        self._facts = {**error.facts(), "about": about}

    def facts(self) -> Json:
        return self._facts


async def open_files(
    engine: "Engine", listed: list[Any], meter: "LoadMeter", cancel: CancelToken
) -> Json:
    """What Engine.load gives, and `about`."""
    described = None
    try:
        files = given_files(listed)
        described = await inspect_pte(files.program, files.data)
        result, outcome = await _load(engine, PteStore(files), meter, cancel)
    except AbortedError:
        raise
    except InpageError as error:
        outcome = cannot_be_loaded(error)
        about = about_pte(described, outcome) if described else outcome
        raise FilesError(error, about) from None
    return {**result, "about": about_pte(described, outcome)}


async def _load(
    engine: "Engine", store: PteStore, meter: "LoadMeter", cancel: CancelToken
) -> tuple[Json, str]:
    """What became of it, and that in words."""
    program = await store.program()
    has_tokenizer = store.files.beside(TOKENIZER) is not None
    fault = _why_no_decoder(program)
    if has_tokenizer and not fault:
        return await engine.load_model(store, meter, cancel), AS_MODEL
    async with engine.changing(cancel):
        files = store.files
        work = load(files.program, engine.device, files.data, meter=Meter(meter))
        engine.replace_module(await until_cancelled(work, cancel))
    outcome = AS_GRAPH
    if has_tokenizer:
        outcome += f" It cannot be chatted with: {plain(fault, max_characters=1000)}."
    elif not fault:
        outcome += f" To chat with it, give its `{TOKENIZER}` and `tokenizer_config.json` as well."
    return {"name": files.name, "methods": list(program.methods)}, outcome


def _why_no_decoder(program: PteProgram) -> str:
    """Empty where it is one."""
    try:
        decoder_of(program)
    except InpageError as error:
        return str(error)
    return ""
