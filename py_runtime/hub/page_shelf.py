"""The shelf in this browser's storage, beside the models of sites."""

from collections.abc import Mapping

from py_runtime.base.file_facts import FileFacts
from py_runtime.folder.browser_storage import Storage
from py_runtime.folder.file_set import FileSet
from py_runtime.folder.stored_names import FILE
from py_runtime.weights.page_source import StoredSource


class PageShelf(Storage):
    """A HubShelf."""

    def kept_sets(self) -> Mapping[str, FileSet]:
        kept = {model.url: model.manifest for model in self.models}
        return {url: files for url, files in kept.items() if isinstance(files, FileSet)}

    async def keep_set(self, url: str, files: FileSet) -> None:
        await self.keep_manifest(url, files, files.to_json())

    def source_of(self, name: str, facts: FileFacts) -> StoredSource:
        return StoredSource(FILE + facts.sha256, name, facts.size)
