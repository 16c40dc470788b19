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
from py_runtime.gguf.model import GgufModel, read_model
from py_runtime.gguf.reader import open_gguf
from py_runtime.gguf.token_rows import GgufTokenRows
from py_runtime.gguf.tower import Tower, read_tower
from py_runtime.model.encoder_folder import encoder_folder
from py_runtime.model.program_sizes import held_bytes, needed_bytes
from py_runtime.model.seeing_folder import SeeingFolder
from py_runtime.weights.byte_source import ByteSource

MADE_BY = "GGUF"


class GgufStore:
    """A GGUF store for Model.load."""

    end_tokens: frozenset[int] = frozenset()  # all are in what stands for config.json

    def __init__(
        self, name: str, sources: Sequence[ByteSource], projector: ByteSource | None = None
    ) -> None:
        self.name = name  # the model's
        self.sources = sources
        self.projector = projector  # the mmproj file, where there is one
        self._model: GgufModel | GgufEncoder | None = None
        self._tower: Tower | None = None

    async def opened_sources(self) -> Sequence[ByteSource]:
        return self.sources

    async def model(self) -> GgufModel | GgufEncoder:
        if self._model is None:
            file = await open_gguf(await self.opened_sources())
            if is_encoder(file):
                self._model = read_encoder(file)
            elif self.projector is None:
                self._model = await read_model(file)
            else:
                projector = await open_gguf([self.projector])
                self._model = await read_model(file, sees=True)
                self._tower = read_tower(projector, self._model.config.width)
        return self._model

    async def manifest(self) -> Manifest:
        """Return what a manifest would say about the file."""
        model = await self.model()
        sources = [*await self.opened_sources(), *filter(None, [self.projector])]
        sizes = {source.name: await source.size() for source in sources}
        metadata = model.file.metadata
        licence = "general.license"
        return Manifest(
            name=self.name,
            parameters=model.parameters,
            context=model.config.context,
            size=sum(sizes.values()),
            gpu_bytes=held_bytes(model.program),
            quantisation=model.quantisation,
            graph=model.file.name,
            weights=(),
            goldens=None,
            files={name: FileFacts(size, "") for name, size in sizes.items()},
            requires=Requirements((), dict.fromkeys(NEEDED_LIMITS, needed_bytes(model.program))),
            source=Source(
                self.name,
                None,
                metadata.text(licence) if licence in metadata else "unknown",
            ),
            created_by=MADE_BY,
        )

    async def open(self, meter: Meter | None = None) -> ModelFolder:
        model = await self.model()
        manifest = await self.manifest()
        if isinstance(model, GgufEncoder):
            return encoder_folder(manifest, model.program, model.encoding, model.config)
        if self._tower is not None:
            return SeeingFolder(manifest, model.program, {}, {}, self._tower)
        return ModelFolder(manifest, model.program, tensors={}, goldens={})

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
