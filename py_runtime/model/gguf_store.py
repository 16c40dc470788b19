"""A GGUF file opened as a model; its metadata has all that a folder would say."""

from collections.abc import Sequence
from typing import Any

from py_runtime.base.file_facts import FileFacts
from py_runtime.base.model_errors import ModelFileError
from py_runtime.base.progress import Meter
from py_runtime.folder.file_names import CONFIG
from py_runtime.folder.layout import ModelFolder
from py_runtime.folder.manifest import (
    NEEDED_LIMITS,
    Manifest,
    Requirements,
    Source,
)
from py_runtime.gguf.constants import GgufConstants
from py_runtime.gguf.encoder import GgufEncoder, is_encoder, read_encoder
from py_runtime.gguf.errors import UnsupportedGgufError
from py_runtime.gguf.model import GgufModel, read_model
from py_runtime.gguf.projector_names import apart
from py_runtime.gguf.reader import GgufFile, open_gguf
from py_runtime.gguf.token_rows import GgufTokenRows
from py_runtime.gguf.tower import Tower, check_projector, read_tower
from py_runtime.model.encoder_folder import encoder_folder
from py_runtime.model.program_sizes import cache_bytes, held_bytes, needed_bytes
from py_runtime.model.seeing_folder import SeeingFolder
from py_runtime.weights.byte_source import ByteSource

MADE_BY = "GGUF"


class GgufStore:
    """A GGUF store for Model.load."""

    end_tokens: frozenset[int] = frozenset()  # all are in what stands for config.json

    def __init__(
        self,
        name: str,
        sources: Sequence[ByteSource],
        must_see: bool = True,
    ) -> None:
        """Take a model's files; if it `must_see`, an mmproj file among them has to be usable."""
        self.name = name  # the model's
        self.sources = sources
        self._must_see = must_see
        self._model: GgufModel | GgufEncoder | None = None
        self._tower: Tower | None = None

    async def opened_sources(self) -> Sequence[ByteSource]:
        return self.sources

    async def model(self) -> GgufModel | GgufEncoder:
        if self._model is None:
            parts, seeing = apart(await self.opened_sources())
            file = await open_gguf(parts)
            if is_encoder(file):
                self._model = read_encoder(file)
            else:
                projector = await self._open_projector(seeing)
                model = await read_model(file, sees=projector is not None)
                if projector is not None:
                    self._tower = read_tower(projector, model.config, model.values["model_type"])
                self._model = model
        return self._model

    async def _open_projector(self, source: ByteSource | None) -> GgufFile | None:
        if source is None:
            return None
        try:
            file = await open_gguf([source])
            check_projector(file)
        except UnsupportedGgufError:
            if self._must_see:
                raise
            return None
        return file

    async def manifest(self) -> Manifest:
        """Return what a manifest would say about the file."""
        model = await self.model()
        sources = await self.opened_sources()
        sizes = {source.name: await source.size() for source in sources}
        metadata = model.file.metadata
        programs = [model.program, *([self._tower.program] if self._tower else [])]
        head = None if isinstance(model, GgufEncoder) else model.head
        head_bytes = held_bytes(head, model.program) if head else 0
        caches = cache_bytes(model.program) + (cache_bytes(head) if head else 0)
        licence = "general.license"
        return Manifest(
            name=self.name,
            parameters=model.parameters,
            context=model.config.context,
            size=sum(sizes.values()),
            gpu_bytes=sum(map(held_bytes, programs)) + head_bytes,
            quantisation=model.quantisation,
            graph=model.file.name,
            weights=(),
            goldens=None,
            files={name: FileFacts(size, "") for name, size in sizes.items()},
            requires=Requirements(
                (), dict.fromkeys(NEEDED_LIMITS, max(map(needed_bytes, programs)))
            ),
            source=Source(
                self.name,
                None,
                metadata.text(licence) if licence in metadata else "unknown",
            ),
            created_by=MADE_BY,
            cache_bytes=caches,
        )

    async def open(self, meter: Meter | None = None) -> ModelFolder:
        model = await self.model()
        manifest = await self.manifest()
        if isinstance(model, GgufEncoder):
            return encoder_folder(manifest, model.program, model.encoding, model.config)
        if self._tower is not None:
            fault = model.head_fault
            return SeeingFolder(manifest, model.program, {}, {}, self._tower, head_fault=fault)
        head, fault = model.head, model.head_fault
        return ModelFolder(manifest, model.program, {}, {}, head=head, head_fault=fault)

    async def read(self, model: ModelFolder, file: str) -> dict[str, Any]:
        """Return a folder's file from metadata, parsed: its text would take as much again."""
        opened = await self.model()
        files: dict[str, dict[str, Any]] = {CONFIG: opened.values, **opened.tokenizer}
        if file not in files:
            raise ModelFileError(f"{opened.file.name} has nothing like {file}")
        return files[file]

    def constants(self, model: ModelFolder) -> GgufConstants:
        assert self._model is not None, "it was opened"
        return self._model.constants

    def token_rows(self, model: ModelFolder) -> GgufTokenRows | None:
        assert self._model is not None, "it was opened"
        return self._model.token_rows
