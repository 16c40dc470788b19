"""A GGUF file opened as a model to chat with; its metadata has all that a folder would say."""

from collections.abc import Iterator, Sequence
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
from py_runtime.gguf.model import GgufModel, open_model
from py_runtime.gguf.token_rows import GgufTokenRows
from py_runtime.gpu.kernel_target import PORTABLE
from py_runtime.graph.carried_states import COPIES, copied_bytes
from py_runtime.ops.registry import REGISTRY
from py_runtime.passes import ring_caches
from py_runtime.program import Program, TensorValue, op_names
from py_runtime.weights.byte_source import ByteSource

MADE_BY = "GGUF"


class GgufStore:
    """A GGUF store for Model.load."""

    end_tokens: frozenset[int] = frozenset()  # all are in what stands for config.json

    def __init__(self, name: str, sources: Sequence[ByteSource]) -> None:
        self.name = name  # the model's
        self.sources = sources
        self._model: GgufModel | None = None

    async def opened_sources(self) -> Sequence[ByteSource]:
        return self.sources

    async def model(self) -> GgufModel:
        if self._model is None:
            self._model = await open_model(await self.opened_sources())
        return self._model

    async def manifest(self) -> Manifest:
        """Return what a manifest would say about the file."""
        model = await self.model()
        sources = await self.opened_sources()
        sizes = {source.name: await source.size() for source in sources}
        metadata = model.file.metadata
        licence = "general.license"
        return Manifest(
            name=self.name,
            parameters=model.parameters,
            context=model.config.context,
            size=model.file.size,
            gpu_bytes=_held_bytes(model.program),
            quantisation=model.quantisation,
            graph=model.file.name,
            weights=(),
            goldens=None,
            files={name: FileFacts(size, "") for name, size in sizes.items()},
            requires=Requirements((), dict.fromkeys(NEEDED_LIMITS, _needed(model.program))),
            source=Source(
                self.name,
                None,
                metadata.text(licence) if licence in metadata else "unknown",
            ),
            created_by=MADE_BY,
        )

    async def open(self, meter: Meter | None = None) -> ModelFolder:
        model = await self.model()
        return ModelFolder(await self.manifest(), model.program, tensors={}, goldens={})

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


def _held_bytes(program: Program) -> int:
    """Return the bytes that stay on the GPU: weights, caches, states and their copies."""
    constants = {name: value for _, value, name in program.constants()}
    ringed = ring_caches.run(program, PORTABLE)
    states = [v for v in ringed.values if isinstance(v, TensorValue) and v.state]
    held = sum(value.gpu_bytes for value in (*constants.values(), *states))
    return held + COPIES * copied_bytes(program)


def _needed(program: Program) -> int:
    """Return the smallest buffer size that the device must allow.

    Larger weights are cut by rows. A table of f32 is not, since only a copy reads it, nor are
    experts, whose rows are looked up.
    """
    largest = max(value.gpu_bytes for _, value, _ in program.constants())
    tables = [
        program.values[call.args[0]]
        for call in program.ops
        if call.name == "aten.embedding.default"
    ]
    uncut = [table.gpu_bytes for table in tables if isinstance(table, TensorValue)]
    return max([min(largest, PORTABLE.binding_bytes), *uncut, *_bytes_of_experts(program)])


def _bytes_of_experts(program: Program) -> Iterator[int]:
    """Yield the bytes of each layer's experts: gate and up in one buffer, down in another."""
    places = [REGISTRY[op_names.EXPERTS].args.index(name) for name in ("gate", "up", "down")]
    for call in program.ops:
        if call.name == op_names.EXPERTS:
            held = [program.values[call.args[place]] for place in places]
            gate, up, down = (each.gpu_bytes for each in held if isinstance(each, TensorValue))
            yield max(gate + up, down)
