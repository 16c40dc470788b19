"""Files that users drop on the page or choose: which of them is the program, what goes with it,
and what it all holds, in words. The engine loads them."""

from pathlib import PurePosixPath
from typing import Any

from py_runtime.base.errors import InpageError, RequestError
from py_runtime.base.markdown import plain
from py_runtime.folder.file_names import PTD, PTE, TOKENIZER
from py_runtime.model.pte_store import PteFiles, PteStore, decoder_of
from py_runtime.pte import PteProgram, inspect_pte
from py_runtime.pte.about import about_pte, pte_cannot_be_loaded
from py_runtime.weights.page_source import DroppedSource

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


class DroppedFiles:
    """A decoder beside its tokenizer can become the model to chat with; any other program can be
    run from Python. Use `open()`; what it raises, and what fails later, `fault` puts into words."""

    store: PteStore
    program: PteProgram

    def __init__(self) -> None:
        self._described: Json | None = None  # what the program holds
        self._has_tokenizer = False
        self._why_no_decoder = ""  # empty where it is one

    async def open(self, listed: list[Any]) -> None:
        """`listed`: what web/client.js makes of a list of Files."""
        files = find_program(listed)
        self._described = await inspect_pte(files.program, files.data)
        self.store = PteStore(files)
        self.program = await self.store.program()
        self._has_tokenizer = files.beside(TOKENIZER) is not None
        self._why_no_decoder = _why_no_decoder(self.program)

    @property
    def can_chat(self) -> bool:
        return self._has_tokenizer and not self._why_no_decoder

    def about(self) -> str:
        """What they hold and what became of them, as Markdown."""
        assert self._described is not None, "they were opened"
        return about_pte(self._described, self._outcome())

    def fault(self, error: InpageError) -> FilesError:
        """The same of files that could not be loaded."""
        outcome = pte_cannot_be_loaded(error)
        return FilesError(
            error, about_pte(self._described, outcome) if self._described else outcome
        )

    def _outcome(self) -> str:
        if self.can_chat:
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


def sources_of(listed: list[Any]) -> dict[str, DroppedSource]:
    """By name, from what web/client.js makes of a list of Files."""
    sources = {}
    for entry in listed:
        if not isinstance(entry, dict) or entry.keys() != {"number", "name", "size"}:
            raise RequestError("a list that is loaded holds files", "where")
        sources[entry["name"]] = DroppedSource(entry["number"], entry["name"], entry["size"])
    return sources


def find_program(listed: list[Any]) -> PteFiles:
    """The one program among the files, with what lies beside it."""
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
