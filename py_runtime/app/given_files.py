"""Files that a user gave to the page: which of them is the program, and what goes with it."""

from pathlib import PurePosixPath
from typing import Any

from py_runtime.base.errors import RequestError
from py_runtime.folder.file_names import PTD, PTE
from py_runtime.model.pte_store import PteFiles
from py_runtime.weights.page_source import DroppedSource


def given_files(listed: list[Any]) -> PteFiles:
    """From what web/client.js makes of a list of Files."""
    sources = {}
    for entry in listed:
        if not isinstance(entry, dict) or entry.keys() != {"number", "name", "size"}:
            raise RequestError("a list that is loaded holds files", "where")
        sources[entry["name"]] = DroppedSource(entry["number"], entry["name"], entry["size"])
    programs = [source for name, source in sources.items() if name.endswith(PTE)]
    if len(programs) != 1:
        raise RequestError(
            f"give one {PTE} file, with its {PTD} files and the tokenizer's files beside it if "
            f"there are some; got {', '.join(sources) or 'nothing'}",
            "where",
        )
    data = tuple(source for name, source in sources.items() if name.endswith(PTD))
    name = PurePosixPath(programs[0].name).stem
    return PteFiles(name, programs[0], sources.get, data)
