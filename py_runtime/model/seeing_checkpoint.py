"""A checkpoint of a model that sees, as people publish it: opened without torch, and as it is.

Its weights stay as they are stored, which is more than a GGUF file takes.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from py_runtime.base.file_facts import FileFacts
from py_runtime.base.model_errors import ModelFileError, ModelTensorsError
from py_runtime.base.progress import Meter
from py_runtime.base.shapes import Dims, numel
from py_runtime.base.short_texts import first_of, short
from py_runtime.decoder.config import DecoderConfig
from py_runtime.decoder.config_json import decoder_config, rotary_tables
from py_runtime.decoder.families import BY_MODEL_TYPE
from py_runtime.decoder.program import write_decoder
from py_runtime.decoder.tensors import expected_shapes, weight_names
from py_runtime.folder.file_names import (
    CONFIG,
    INDEX,
    SAFETENSORS,
    TOKENIZER,
    TOKENIZER_CONFIG,
)
from py_runtime.folder.layout import ModelFolder
from py_runtime.folder.manifest import NEEDED_LIMITS, Manifest, Requirements, Source
from py_runtime.gguf.constants import GgufConstants
from py_runtime.gguf.encoder import kinds_of
from py_runtime.gguf.reader import StoredTensor
from py_runtime.gguf.tower import Tower, check_fits, split_fused, tower_of
from py_runtime.gguf.wanted_tensors import wanted_tensors
from py_runtime.model.checkpoint_files import ANOTHER, CheckpointFiles, from_one, tensors_in
from py_runtime.model.program_sizes import cache_bytes, held_bytes, needed_bytes
from py_runtime.model.seeing_folder import SeeingFolder
from py_runtime.model.seeing_text import text_values
from py_runtime.program import Program
from py_runtime.vision.families import read_sight
from py_runtime.vision.sight import fitting
from py_runtime.weights.byte_source import ByteSource

PREPROCESSOR, GENERATION = "preprocessor_config.json", "generation_config.json"
PROCESSOR, OF_IMAGES = "processor_config.json", "image_processor"  # newer: of all that it takes
TEMPLATE, TEMPLATE_JSON = "chat_template.jinja", "chat_template.json"
END = "eos_token_id"
HEAD, EMBEDDING = "lm_head.weight", "embed_tokens.weight"
HEADS = (HEAD, f"language_model.{HEAD}")
SHARD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}\.safetensors")
MAX_SHARDS, MAX_NAMES = 100, 8

Json = dict[str, Any]
Tensors = dict[str, StoredTensor]


class SeeingCheckpointStore:
    """A store of such a checkpoint; `find` gives the source of a file, which need not be there."""

    end_tokens: frozenset[int] = frozenset()

    def __init__(self, name: str, find: Callable[[str], ByteSource]) -> None:
        self.name = name  # the model's
        self._files = CheckpointFiles(find)
        self._opened: tuple[Json, SeeingFolder, GgufConstants] | None = None

    async def manifest(self) -> Manifest:
        """Return what a manifest would say about the checkpoint."""
        return (await self._open())[1].manifest

    async def open(self, meter: Meter | None = None) -> SeeingFolder:
        return (await self._open())[1]

    async def read(self, model: ModelFolder, file: str) -> bytes | Json:
        """Read a file; the template may lie beside the tokenizer's, and end tokens elsewhere."""
        if file == TOKENIZER:
            data = await self._files.read(file)
            if data is None:
                raise ModelFileError(f"{self.name} has no {TOKENIZER}", "add its tokenizer")
            return data
        if file == CONFIG:
            generation = await self._files.read_json(GENERATION)
            ends = generation.get(END) if isinstance(generation, dict) else None
            values = (await self._open())[0]
            return {END: ends if ends is not None else values.get(END)}
        config = await self._files.read_json(file)
        config = config if isinstance(config, dict) else {}
        if file == TOKENIZER_CONFIG and not config.get("chat_template"):
            template = await self._template()
            config = {**config, **({"chat_template": template} if template else {})}
        return config

    async def _template(self) -> Any:
        data = await self._files.read(TEMPLATE)
        if data is not None:
            return data.decode(errors="replace")
        found = await self._files.read_json(TEMPLATE_JSON)
        return found.get("chat_template") if isinstance(found, dict) else None

    def constants(self, model: ModelFolder) -> GgufConstants:
        assert self._opened is not None, "it was opened"
        return self._opened[2]

    def token_rows(self, model: ModelFolder) -> None:
        """Return None: everything lies on the device."""

    async def _open(self) -> tuple[Json, SeeingFolder, GgufConstants]:
        if self._opened is None:
            whole = await self._files.read_json(CONFIG)
            if not isinstance(whole, dict):
                raise ModelFileError(f"{self.name} has no {CONFIG} that is an object", ANOTHER)
            tensors, sizes = await self._tensors()
            values = text_values(whole, is_tied=not {*HEADS} & {*tensors})
            config = decoder_config(values, sees=True)
            tower = await self._tower(whole, config, tensors)
            program, constants = await self._decoder(values, config, tensors)
            manifest = self._manifest(config, [program, tower.program], sizes, tensors)
            folder = SeeingFolder(manifest, program, {}, {}, tower)
            self._opened = (values, folder, constants)
        return self._opened

    async def _tensors(self) -> tuple[Tensors, dict[str, int]]:
        """Return the places of all tensors, and the sizes of the files."""
        index = await self._files.read_json(INDEX)
        names = [SAFETENSORS]
        if isinstance(index, dict):
            shards = index.get("weight_map")
            names = sorted({*map(str, shards.values())}) if isinstance(shards, dict) else []
            if not 1 <= len(names) <= MAX_SHARDS or not all(map(SHARD.fullmatch, names)):
                raise ModelFileError(f"{INDEX} names no files that weights can be in", ANOTHER)
        sources = [self._files.find(name) for name in names]
        sizes = {name: await source.size() for name, source in zip(names, sources, strict=True)}
        tensors: Tensors = {}
        for source in sources:
            tensors |= await tensors_in(source)
        return tensors, sizes

    async def _tower(self, whole: Json, config: DecoderConfig, tensors: Tensors) -> Tower:
        sight = read_sight(whole, await self._processing(), config.width)
        check_fits(sight, config)
        shapes, stored = sight.shapes(), _of_towers(tensors)
        split_fused(sight, stored, sight.checkpoint_name)
        names = {own: sight.checkpoint_name(own) for own in shapes}
        found = _named(self.name, stored, names, shapes)
        given = await from_one({own: found[own] for own in sight.norms_from_one})
        return tower_of(sight, found, self.name, given)

    async def _processing(self) -> Any:
        """Return how images are prepared, which is in one of two places."""
        found = await self._files.read_json(PREPROCESSOR)
        if found is not None:
            return found
        whole = await self._files.read_json(PROCESSOR)
        return whole.get(OF_IMAGES) if isinstance(whole, dict) else None

    async def _decoder(
        self, values: Json, config: DecoderConfig, tensors: Tensors
    ) -> tuple[Program, GgufConstants]:
        shapes = expected_shapes(config)
        owner = next((name for name in tensors if name.endswith(EMBEDDING)), EMBEDDING)
        before = owner.removesuffix(EMBEDDING)
        head = next((name for name in HEADS if name in tensors), HEAD)
        form = BY_MODEL_TYPE[values["model_type"]].checkpoint
        names = {own: head if own == HEAD else before + form.stored_name(own) for own in shapes}
        found = _named(self.name, tensors, names, shapes)
        tables: dict[str, np.ndarray] = {**rotary_tables(values, config)}
        if form.norms_from_one:
            norms = {own: found[own] for own, dims in shapes.items() if len(dims) == 1}
            tables |= await from_one(norms)
        plain = {own: dims for own, dims in shapes.items() if own not in tables}
        kinds, wanted = wanted_tensors(plain, {*weight_names(config)}, found, self.name)
        return write_decoder(config, kinds, self.name), GgufConstants(wanted, tables)

    def _manifest(
        self, config: DecoderConfig, programs: list[Program], sizes: dict[str, int], all_: Tensors
    ) -> Manifest:
        needed = max(map(needed_bytes, programs))
        return Manifest(
            name=self.name,
            parameters=sum(numel(tensor.info.dims) for tensor in all_.values()),
            context=config.context,
            size=sum(sizes.values()),
            gpu_bytes=sum(map(held_bytes, programs)),
            quantisation=kinds_of(all_),
            graph=CONFIG,
            weights=tuple(sizes),
            goldens=None,
            files={name: FileFacts(size, "") for name, size in sizes.items()},
            requires=Requirements((), dict.fromkeys(NEEDED_LIMITS, needed)),
            source=Source(self.name, None, "unknown"),
            created_by="transformers",
            cache_bytes=sum(map(cache_bytes, programs)),
        )


def _named(
    model: str, tensors: Tensors, names: Mapping[str, str], shapes: Mapping[str, Dims]
) -> Tensors:
    """Return the tensors by the engine's names, in their shapes; ModelTensorsError has faults."""
    faults = []
    for own, name in names.items():
        if name not in tensors:
            faults.append(f"{short(name)} is missing")
        elif not fitting(tensors[name].info.dims, shapes[own]):
            dims, wanted = list(tensors[name].info.dims), list(shapes[own])
            faults.append(f"{short(name)} has the shape {dims}, not {wanted}")
    if faults:
        raise ModelTensorsError(f"{model}: {', '.join(first_of(faults, MAX_NAMES))}", ANOTHER)
    return {own: tensors[name] for own, name in names.items()}


def _of_towers(tensors: Tensors) -> Tensors:
    """Return tensors by all the endings of their names: what stands before a tower differs."""
    found: Tensors = {}
    for name, tensor in tensors.items():
        ending = name
        while ending:
            found.setdefault(ending, tensor)
            ending = ending.partition(".")[2]
    return found
