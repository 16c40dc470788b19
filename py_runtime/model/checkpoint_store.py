"""A text encoder's checkpoint as people publish it: config.json, safetensors and a tokenizer.

It is read without torch. Decoders go through `inpage export`, which quantises them.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from py_runtime.base.file_facts import FileFacts
from py_runtime.base.model_errors import ModelError, ModelFileError, ModelTensorsError
from py_runtime.base.progress import Meter
from py_runtime.base.shapes import numel
from py_runtime.base.short_texts import first_of, short
from py_runtime.encoder.config import EncoderConfig, encoder_config
from py_runtime.encoder.encoding import (
    MODULES,
    POOLING_CONFIG,
    SETTINGS,
    Encoding,
    check_dense,
    dense_folders,
    pooling_folder,
    read_encoding,
)
from py_runtime.encoder.family import DENSE, GATE, KEYS, QUERIES, UP, VALUES, WORDS
from py_runtime.encoder.tensors import expected_shapes
from py_runtime.folder.file_names import (
    CONFIG,
    SAFETENSORS,
    TOKENIZER,
    TOKENIZER_CONFIG,
    VOCABULARY,
)
from py_runtime.folder.layout import ModelFolder
from py_runtime.folder.manifest import (
    NEEDED_LIMITS,
    Manifest,
    Requirements,
    Source,
)
from py_runtime.gguf.constants import GgufConstants
from py_runtime.gguf.encoder import encoder_parts, kinds_of, split_rows
from py_runtime.gguf.reader import StoredTensor
from py_runtime.model.checkpoint_files import ANOTHER, CheckpointFiles, from_one, tensors_in
from py_runtime.model.encoder_folder import EncoderFolder, encoder_folder
from py_runtime.model.program_sizes import held_bytes, needed_bytes
from py_runtime.program import Program
from py_runtime.tokens.wordpiece import wordpiece_file
from py_runtime.weights.byte_source import ByteSource

DENSE_WEIGHT = "linear.weight"
MAX_NAMES = 8  # of tensors that are listed
PARTS = ("embeddings.", "encoder.", "transformer.", "layers.")  # that compute vectors
UNUSED = ("position_ids",)  # numbers from 0 on, which old checkpoints keep

Json = dict[str, Any]


class CheckpointStore:
    """A checkpoint's store; `find` gives the source of a file, which need not be there."""

    end_tokens: frozenset[int] = frozenset()

    def __init__(self, name: str, find: Callable[[str], ByteSource]) -> None:
        self.name = name  # the model's
        self._files = CheckpointFiles(find)
        self._opened: tuple[EncoderConfig, Program, GgufConstants, Manifest] | None = None

    async def manifest(self) -> Manifest:
        """Return what a manifest would say about the checkpoint."""
        return (await self._open())[3]

    async def open(self, meter: Meter | None = None) -> EncoderFolder:
        config, program, _, manifest = await self._open()
        return encoder_folder(manifest, program, await self._encoding(), config)

    async def read(self, model: ModelFolder, file: str) -> bytes | Json:
        """Read a file; a tokenizer that is a list of words is brought into its usual form."""
        data = await self._files.read(file)
        if data is not None:
            return data
        if file != TOKENIZER:
            return {}
        words = await self._files.read(VOCABULARY)
        if words is None:
            raise ModelFileError(
                f"{self.name} has neither {TOKENIZER} nor {VOCABULARY}", "add its tokenizer"
            )
        config = await self._files.read_json(TOKENIZER_CONFIG)
        return wordpiece_file(_vocabulary(words), config if isinstance(config, dict) else {})

    def constants(self, model: ModelFolder) -> GgufConstants:
        assert self._opened is not None, "it was opened"
        return self._opened[2]

    def token_rows(self, model: ModelFolder) -> None:
        """Return None: everything lies on the device."""

    async def _open(self) -> tuple[EncoderConfig, Program, GgufConstants, Manifest]:
        if self._opened is None:
            values = await self._files.read_json(CONFIG)
            if not isinstance(values, dict):
                raise ModelFileError(f"{self.name} has no {CONFIG} that is an object", ANOTHER)
            source = self._files.find(SAFETENSORS)
            dense = await self._dense()
            rows = tuple(tensor.info.dims[0] for tensor in dense.values())
            config = replace(encoder_config(values), dense=rows)
            tensors = _tensors_of(source.name, await tensors_in(source), config, dense)
            norms = {own: it for own, it in tensors.items() if len(it.info.dims) == 1}
            given = await from_one(norms) if config.family.norms_from_one else {}
            program, constants = encoder_parts(config, tensors, self.name, given)
            manifest = await self._manifest(source, config, program, kinds_of(tensors))
            self._opened = (config, program, constants, manifest)
        return self._opened

    async def _dense(self) -> dict[str, StoredTensor]:
        """Return the matrices of products behind the pooling, by the engine's names."""
        found = {}
        folders = dense_folders(await self._files.read_json(MODULES))
        for number, folder in enumerate(folders):
            check_dense(await self._files.read_json(f"{folder}/{POOLING_CONFIG}"))
            stored = await tensors_in(self._files.find(f"{folder}/{SAFETENSORS}"))
            matrix = stored.get(DENSE_WEIGHT)
            if matrix is None or len(matrix.info.dims) != 2:
                raise ModelTensorsError(f"{folder}/{SAFETENSORS} has no {DENSE_WEIGHT}", ANOTHER)
            found[f"{DENSE.format(number=number)}.weight"] = matrix
        return found

    async def _manifest(
        self, source: ByteSource, config: EncoderConfig, program: Program, quantisation: str
    ) -> Manifest:
        size = await source.size()
        return Manifest(
            name=self.name,
            parameters=sum(numel(dims) for dims in expected_shapes(config).values()),
            context=config.context,
            size=size,
            gpu_bytes=held_bytes(program),
            quantisation=quantisation,
            graph=CONFIG,
            weights=(SAFETENSORS,),
            goldens=None,
            files={SAFETENSORS: FileFacts(size, "")},
            requires=Requirements((), dict.fromkeys(NEEDED_LIMITS, needed_bytes(program))),
            source=Source(self.name, None, "unknown"),
            created_by="transformers",
        )

    async def _encoding(self) -> Encoding:
        modules = await self._files.read_json(MODULES)
        folder = pooling_folder(modules)
        pooling = None
        if folder is not None:
            pooling = await self._files.read_json(f"{folder}/{POOLING_CONFIG}")
            if pooling is None:
                raise ModelFileError(
                    f"{MODULES} names {folder}/{POOLING_CONFIG}, which is missing", ANOTHER
                )
        return read_encoding(modules, pooling, await self._files.read_json(SETTINGS))


def _vocabulary(words: bytes) -> dict[str, int]:
    """Return ids by tokens: each has a line."""
    try:
        lines = words.decode().removesuffix("\n").split("\n")
    except UnicodeDecodeError as error:
        raise ModelError(f"{VOCABULARY}: byte {error.start} is not UTF-8", ANOTHER) from None
    return {line.removesuffix("\r"): number for number, line in enumerate(lines)}


def _tensors_of(
    file: str,
    stored: dict[str, StoredTensor],
    config: EncoderConfig,
    dense: dict[str, StoredTensor],
) -> dict[str, StoredTensor]:
    """Return the tensors by the engine's names; others that vectors would depend on are refused."""
    usual = {_usual(name): tensor for name, tensor in stored.items()}
    words = config.family.checkpoint_name(WORDS)
    starts = [name.removesuffix(words) for name in usual if name.endswith(words)]
    if len(starts) != 1:
        raise ModelTensorsError(f"{file} has {len(starts)} tables of words", ANOTHER)
    start = starts[0]
    shapes = expected_shapes(config)
    family = config.family
    for number in range(config.layers if family.fused else 0):
        path = f"{start}{family.layers}.{number}."
        parts = [f"{path}{family.parts[part]}.weight" for part in (QUERIES, KEYS, VALUES)]
        split_rows(usual, f"{path}{family.fused}.weight", parts, config.width)
        if family.fused_mlp:
            parts = [f"{path}{family.parts[part]}.weight" for part in (GATE, UP)]
            split_rows(usual, f"{path}{family.fused_mlp}.weight", parts, config.hidden)
    usual |= {start + own: matrix for own, matrix in dense.items()}
    names = {own: start + family.checkpoint_name(own) for own in shapes}
    for own, name in names.items():  # what scores stands beside the model, not in it
        if own.startswith("score.") and name not in usual:
            names[own] = name.removeprefix(start)
    faults = []
    for own, name in names.items():
        found = usual.get(name)
        if found is None:
            faults.append(f"{short(name)} is missing")
        elif found.info.dims != shapes[own]:
            dims, wanted = list(found.info.dims), list(shapes[own])
            faults.append(f"{short(name)} has the shape {dims}, not {wanted}")
    needed = set(names.values())
    computed = tuple(start + part for part in PARTS)
    faults += [
        f"{short(name)} is not supported"
        for name in usual
        if name.startswith(computed) and name not in needed and not name.endswith(UNUSED)
    ]
    if faults:
        raise ModelTensorsError(f"{file}: {', '.join(first_of(faults, MAX_NAMES))}", ANOTHER)
    return {own: usual[name] for own, name in names.items()}


def _usual(name: str) -> str:
    """Return a tensor's name as it is today; norms of old checkpoints have a gamma and a beta."""
    for old, new in ((".gamma", ".weight"), (".beta", ".bias")):
        name = name.removesuffix(old) + new if name.endswith(old) else name
    return name
