"""A GGUF file that users drop on the page or choose, or all parts of one: a model to chat with."""

from typing import Any

from py_runtime.app.dropped_files import AS_MODEL, FilesError, sources_of
from py_runtime.base.errors import InpageError
from py_runtime.base.markdown import cannot_be_loaded
from py_runtime.folder.file_names import GGUF
from py_runtime.gguf.about import about_gguf
from py_runtime.gguf.part_names import model_name
from py_runtime.gguf.reader import GgufFile, open_gguf
from py_runtime.model.gguf_store import GgufStore


class DroppedGguf:
    """As DroppedFiles: `open()` it; what that raises, and what fails later, `fault` tells."""

    store: GgufStore

    def __init__(self) -> None:
        self._file: GgufFile | None = None

    async def open(self, listed: list[Any]) -> None:
        sources = [
            source for name, source in sources_of(listed).items() if name.lower().endswith(GGUF)
        ]
        self._file = await open_gguf(sources)
        self.store = GgufStore(model_name(self._file.name), sources)
        await self.store.model()  # what is loaded stays where this cannot be

    def about(self) -> str:
        """What it holds, as Markdown."""
        assert self._file is not None, "it was opened"
        return about_gguf(self._file, AS_MODEL)

    def fault(self, error: InpageError) -> FilesError:
        """The same of a file that could not be loaded."""
        outcome = cannot_be_loaded(error)
        return FilesError(error, about_gguf(self._file, outcome) if self._file else outcome)


def is_gguf(listed: list[Any]) -> bool:
    """Whether there is one among what web/client.js makes of a list of Files."""
    names = [entry.get("name") for entry in listed if isinstance(entry, dict)]
    return any(isinstance(name, str) and name.lower().endswith(GGUF) for name in names)
