"""Files that users drop on the page or choose, and a description of what they hold.

This module finds the model or program among them; the engine loads it.
"""

from pathlib import PurePosixPath
from typing import Any, Protocol

from py_runtime.base.errors import InpageError, RequestError
from py_runtime.base.markdown import cannot_be_loaded, plain
from py_runtime.folder.file_names import GGUF, PTD, PTE, TOKENIZER
from py_runtime.gguf.about import about_gguf
from py_runtime.gguf.encoder import GgufEncoder
from py_runtime.gguf.part_names import model_name
from py_runtime.gguf.projector_names import is_projector
from py_runtime.gguf.reader import GgufFile, open_gguf
from py_runtime.model.gguf_store import GgufStore
from py_runtime.model.pte_store import PteFiles, PteStore, decoder_of
from py_runtime.model.stores import Store
from py_runtime.pte import PteProgram, inspect_pte
from py_runtime.pte.about import about_pte, pte_cannot_be_loaded
from py_runtime.weights.page_source import DroppedSource

Json = dict[str, Any]
AS_GRAPH = "**It is loaded.** In Python it is `graph`: `await graph.run([…])`."
AS_ENCODER = (
    "**It is loaded.** It makes vectors of texts, and writes none. In Python it is `model`: "
    "`await model.embed([…])`."
)
AS_SEEING = (
    "**You can chat with it now, and show it images.** In Python it is `model`, and its graph is "
    "`graph`."
)
AS_MODEL = "**You can chat with it now.** In Python it is `model`, and its graph is `graph`."


class FilesError(InpageError):
    """An error of a user's files; `about` is all that is known of them, as Markdown."""

    def __init__(self, error: InpageError, about: str) -> None:
        super().__init__(error.wording)
        self.code = error.code
        self._facts = {**error.facts(), "about": about}

    def facts(self) -> Json:
        return self._facts


class Dropped(Protocol):
    """Files to be opened with `open()` first; `fault` describes whatever fails then or later."""

    async def open(self) -> None: ...

    @property
    def store(self) -> Store:
        """Return the store of the model, where there is one to chat with."""

    @property
    def program(self) -> PteFiles | None:
        """Return the program that Python can run, or None where there is a model."""

    def about(self) -> str:
        """Describe what the files hold and what became of them, as Markdown."""

    def fault(self, error: InpageError) -> FilesError:
        """Return the error of files that could not be loaded, with the same description."""


def dropped(listed: list[Any]) -> Dropped:
    """Sort out files; `listed` is what web/client.js makes of a list of Files."""
    names = [entry.get("name") for entry in listed if isinstance(entry, dict)]
    is_gguf = any(isinstance(name, str) and name.lower().endswith(GGUF) for name in names)
    return DroppedGguf(listed) if is_gguf else DroppedPte(listed)


class DroppedPte:
    """A .pte program and the files beside it.

    A decoder beside its tokenizer can become the model to chat with; Python can run any other
    program.
    """

    store: PteStore

    def __init__(self, listed: list[Any]) -> None:
        self._listed = listed
        self._described: Json | None = None  # what the program holds
        self._has_tokenizer = False
        self._why_no_decoder = ""  # empty where it is one

    async def open(self) -> None:
        files = find_program(self._listed)
        self._described = await inspect_pte(files.program, files.data)
        self.store = PteStore(files)
        self._has_tokenizer = files.beside(TOKENIZER) is not None
        self._why_no_decoder = _why_no_decoder(await self.store.program())

    @property
    def program(self) -> PteFiles | None:
        can_chat = self._has_tokenizer and not self._why_no_decoder
        return None if can_chat else self.store.files

    def about(self) -> str:
        assert self._described is not None, "they were opened"
        return about_pte(self._described, self._outcome())

    def fault(self, error: InpageError) -> FilesError:
        outcome = pte_cannot_be_loaded(error)
        known = self._described
        return FilesError(error, about_pte(known, outcome) if known else outcome)

    def _outcome(self) -> str:
        if self.program is None:
            return AS_MODEL
        if self._has_tokenizer:
            fault = plain(self._why_no_decoder, max_characters=1000)
            return f"{AS_GRAPH} It cannot be chatted with: {fault}."
        if self._why_no_decoder:
            return AS_GRAPH
        return (
            f"{AS_GRAPH} To chat with it, give its `{TOKENIZER}` and `tokenizer_config.json` "
            "as well."
        )


class DroppedGguf:
    """A GGUF file, or all parts of one: a model to chat with, or one that encodes texts."""

    store: GgufStore
    program = None

    def __init__(self, listed: list[Any]) -> None:
        self._listed = listed
        self._file: GgufFile | None = None
        self._outcome = AS_MODEL

    async def open(self) -> None:
        named = sources_of(self._listed).items()
        sources = [source for name, source in named if name.lower().endswith(GGUF)]
        sources, projector = _apart(sources)
        self._file = await open_gguf(sources)
        self.store = GgufStore(model_name(self._file.name), sources, projector)
        model = await self.store.model()  # what is loaded stays where this cannot be
        self._outcome = AS_ENCODER if isinstance(model, GgufEncoder) else AS_MODEL
        if projector is not None and not isinstance(model, GgufEncoder):
            self._outcome = AS_SEEING

    def about(self) -> str:
        assert self._file is not None, "it was opened"
        return about_gguf(self._file, self._outcome)

    def fault(self, error: InpageError) -> FilesError:
        outcome = cannot_be_loaded(error)
        known = self._file
        return FilesError(error, about_gguf(known, outcome) if known else outcome)


def _apart(sources: list[DroppedSource]) -> tuple[list[DroppedSource], DroppedSource | None]:
    """Return a model's parts, and its mmproj file where it is among them."""
    projectors = [source for source in sources if is_projector(source.name)]
    parts = [source for source in sources if source not in projectors]
    if not parts:
        return sources, None  # it will be said what such a file is
    if len(projectors) > 1:
        names = ", ".join(source.name for source in projectors)
        raise RequestError(f"give one mmproj file along with a model, not {names}", "where")
    return parts, next(iter(projectors), None)


def sources_of(listed: list[Any]) -> dict[str, DroppedSource]:
    """Return sources by name, from what web/client.js makes of a list of Files."""
    sources = {}
    for entry in listed:
        if not isinstance(entry, dict) or entry.keys() != {"number", "name", "size"}:
            raise RequestError("a list that is loaded holds files", "where")
        sources[entry["name"]] = DroppedSource(entry["number"], entry["name"], entry["size"])
    return sources


def find_program(listed: list[Any]) -> PteFiles:
    """Return the one program among the files, with what lies beside it."""
    sources = sources_of(listed)
    programs = [source for name, source in sources.items() if name.endswith(PTE)]
    if len(programs) != 1:
        raise RequestError(
            f"give a .gguf file, or one {PTE} file with its {PTD} files and the tokenizer's files "
            f"beside it if there are some; got {', '.join(sources) or 'nothing'}",
            "where",
        )
    data = tuple(source for name, source in sources.items() if name.endswith(PTD))
    name = PurePosixPath(programs[0].name).stem
    return PteFiles(name, programs[0], sources.get, data)


def _why_no_decoder(program: PteProgram) -> str:
    try:
        decoder_of(program)
    except InpageError as error:
        return str(error)
    return ""
