"""A .pte file beside its tokenizer, opened as a model to chat with."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePosixPath

from py_runtime.base.file_facts import FileFacts
from py_runtime.base.model_errors import ModelFileError
from py_runtime.base.progress import Meter
from py_runtime.base.sizes import in_words
from py_runtime.folder.file_names import TOKENIZER
from py_runtime.folder.layout import ModelFolder
from py_runtime.folder.manifest import (
    MAX_WHOLE_BYTES,
    Manifest,
    Requirements,
    Source,
)
from py_runtime.program import Program
from py_runtime.program.decoder_form import as_decoder, decoder_sizes
from py_runtime.pte import PteError, PteProgram, open_pte
from py_runtime.pte.methods import FORWARD, DelegateStep
from py_runtime.weights.byte_source import ABSENT, ByteSource, is_there
from py_runtime.weights.ranges import RangeConstants

LIMITS = ("get_max_context_len", "get_max_seq_len")  # constant methods: most positions
END_TOKENS = ("get_eos_ids", "get_eos_id")


@dataclass(frozen=True)
class PteFiles:
    """A program and the files beside it."""

    name: str  # the model's
    program: ByteSource
    beside: Callable[[str], ByteSource | None]  # a file by its name; it need not be there
    data: tuple[ByteSource, ...] = ()  # .ptd files, where it is known which they are

    async def read(self, name: str) -> bytes | None:
        source = self.beside(name)
        try:
            size = 0 if source is None else await source.size()
            if size > MAX_WHOLE_BYTES:
                raise ModelFileError(
                    f"{name} has {in_words(size)}; at most {in_words(MAX_WHOLE_BYTES)} are read"
                )
            return None if source is None else await source.read(0, size)
        except ABSENT:
            return None


class PteStore:
    """A .pte store for Model.load."""

    def __init__(self, files: PteFiles) -> None:
        self.files = files
        self._program: PteProgram | None = None

    async def program(self) -> PteProgram:
        if self._program is None:
            self._program = await self._open()
        return self._program

    async def manifest(self) -> Manifest:
        """Return what a manifest would say about the file."""
        return _manifest(self.files.name, await self.program())

    async def open(self, meter: Meter | None = None) -> ModelFolder:
        program = decoder_of(await self.program())
        return ModelFolder(await self.manifest(), program, tensors={}, goldens={})

    async def read(self, model: ModelFolder, file: str) -> bytes:
        """Read a file; only the tokenizer must exist."""
        data = await self.files.read(file)
        if data is None and file == TOKENIZER:
            raise ModelFileError(
                f"there is no {TOKENIZER} beside {self.files.program.name}",
                "put the tokenizer's files into the same place",
            )
        return b"{}" if data is None else data

    def constants(self, model: ModelFolder) -> RangeConstants:
        assert self._program is not None, "it was opened"
        return RangeConstants(_forward(self._program).ranges)

    def token_rows(self, model: ModelFolder) -> None:
        """Return None: everything lies on the GPU."""

    @property
    def end_tokens(self) -> frozenset[int]:
        """Return the end tokens that the program itself names."""
        constants = {} if self._program is None else self._program.constants
        named = [constants.get(name) for name in END_TOKENS]
        ids = [
            token for value in named for token in (value if isinstance(value, list) else [value])
        ]
        return frozenset(token for token in ids if type(token) is int)

    async def _open(self) -> PteProgram:
        """Open the program, with its data from another file if it needs that."""
        source, data = self.files.program, self.files.data
        try:
            return await open_pte(source, data)
        except PteError:
            beside = self.files.beside(f"{PurePosixPath(source.name).stem}.ptd")
            if data or beside is None or not await is_there(beside):
                raise
            return await open_pte(source, [beside])


def decoder_of(program: PteProgram) -> Program:
    """Return the graph that computes logits, in a session's form; or raise ModelError."""
    decoder = as_decoder(_forward(program).program)
    decoder_sizes(decoder)
    return decoder


def _forward(program: PteProgram) -> DelegateStep:
    return program.method(FORWARD).delegate


def _manifest(name: str, program: PteProgram) -> Manifest:
    max_tokens, _ = decoder_sizes(decoder_of(program))
    limits = [program.constants.get(limit) for limit in LIMITS]
    positions = next((limit for limit in limits if type(limit) is int), max_tokens + 1)
    return Manifest(
        name=name,
        parameters=0,  # packed, so that nobody counted them
        context=positions - 1,  # the exporter rules out the last position
        size=program.size,
        gpu_bytes=0,
        quantisation="ExecuTorch",
        graph=program.name,
        weights=(),
        goldens=None,
        files={program.name: FileFacts(program.size, "")},
        requires=Requirements((), {}),
        source=Source(program.name, None, "unknown"),
        created_by="ExecuTorch",
    )
