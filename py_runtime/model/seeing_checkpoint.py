"""A checkpoint of a model that sees, as people publish it: opened without torch, and as it is.

Its weights stay as they are stored, which is more than a GGUF file takes.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from py_runtime.base.file_facts import FileFacts
from py_runtime.base.model_errors import ModelError, ModelFileError, ModelTensorsError
from py_runtime.base.progress import Meter
from py_runtime.base.shapes import Dims, numel
from py_runtime.base.short_texts import first_of, short
from py_runtime.decoder import limits
from py_runtime.decoder.config import DecoderConfig
from py_runtime.decoder.config_json import ROPE_TYPES, decoder_config, rotary_tables
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
from py_runtime.gguf.tower import tower_of
from py_runtime.gguf.wanted_tensors import wanted_tensors
from py_runtime.model.checkpoint_files import ANOTHER, CheckpointFiles, tensors_in
from py_runtime.model.program_sizes import held_bytes, needed_bytes
from py_runtime.model.seeing_folder import SeeingFolder
from py_runtime.program import Program
from py_runtime.vision.config import tower_config
from py_runtime.vision.tensors import checkpoint_name, fitting
from py_runtime.vision.tensors import expected_shapes as tower_shapes
from py_runtime.weights.byte_source import ByteSource

PREPROCESSOR, GENERATION = "preprocessor_config.json", "generation_config.json"
TEMPLATE, TEMPLATE_JSON = "chat_template.jinja", "chat_template.json"
END = "eos_token_id"
LLAMA, TEXT, HEAD = "llama", "model.text_model.", "lm_head.weight"
SHARD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}\.safetensors")
MAX_SHARDS, MAX_NAMES = 100, 8
# What transformers takes for a Llama where a config.json is silent; and the most that is taken.
COUNTS = {
    "vocab_size": (32_000, 1 << 22),
    "hidden_size": (4096, limits.MAX_WIDTH),
    "intermediate_size": (11_008, limits.MAX_HIDDEN),
    "num_hidden_layers": (32, limits.MAX_LAYERS),
    "num_attention_heads": (32, limits.MAX_HEADS),
    "max_position_embeddings": (2048, limits.MAX_CONTEXT),
}
EPS, THETA = 1e-5, 10_000.0
EPSILONS = (1e-12, 1e-1)

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
            values = text_values(whole, is_tied=HEAD not in tensors)
            config = decoder_config(values, sees=True)
            processing = await self._files.read_json(PREPROCESSOR)
            seeing = tower_config(whole, processing, config.width)
            names = {own: checkpoint_name(own) for own in tower_shapes(seeing)}
            tower = tower_of(
                seeing, _named(self.name, tensors, names, tower_shapes(seeing)), self.name
            )
            program, constants = self._decoder(values, config, tensors)
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

    def _decoder(
        self, values: Json, config: DecoderConfig, tensors: Tensors
    ) -> tuple[Program, GgufConstants]:
        shapes = expected_shapes(config)
        names = {own: own if own == HEAD else TEXT + own for own in shapes}
        found = _named(self.name, tensors, names, shapes)
        kinds, wanted = wanted_tensors(shapes, {*weight_names(config)}, found, self.name)
        program = write_decoder(config, kinds, self.name)
        return program, GgufConstants(wanted, rotary_tables(values, config))

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
        )


def text_values(whole: Json, is_tied: bool) -> Json:
    """Return what the decoder's own config.json would say, whole."""
    given = whole.get("text_config")
    given = given if isinstance(given, dict) else {}
    if given.get("model_type", LLAMA) != LLAMA:
        raise _fault(f"text_config.model_type is {short(given['model_type'])}")
    if given.get("hidden_act", "silu") != "silu":
        raise _fault(f"text_config.hidden_act is {short(given['hidden_act'])}")
    values = {**given, "model_type": LLAMA, "tie_word_embeddings": is_tied}
    for key, (default, most) in COUNTS.items():
        values[key] = _count(given, key, default, most)
    heads, width = values["num_attention_heads"], values["hidden_size"]
    values["num_key_value_heads"] = _count(given, "num_key_value_heads", heads, heads)
    values["head_dim"] = _count(given, "head_dim", max(1, width // heads), limits.MAX_HEAD_DIM)
    if heads % values["num_key_value_heads"]:
        raise _fault(f"{heads} heads do not share {values['num_key_value_heads']} keys evenly")
    values["rms_norm_eps"] = _number(given, "rms_norm_eps", EPS, EPSILONS)
    values["rope_parameters"] = _rope(given)
    return values


def _rope(given: Mapping[str, Any]) -> Json:
    found = given.get("rope_parameters") or given.get("rope_scaling") or {}
    if not isinstance(found, dict):
        raise _fault(f"rope_parameters is {short(found)}")
    kind = found.get("rope_type", found.get("type", "default"))
    if kind not in ROPE_TYPES:
        raise _fault(f"rope_type is {short(kind)}")
    theta = _number(found if "rope_theta" in found else given, "rope_theta", THETA, limits.THETAS)
    return {**found, "rope_type": kind, "rope_theta": theta}


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


def _count(given: Mapping[str, Any], key: str, default: int, most: int) -> int:
    found = given.get(key)
    found = default if found is None else found
    if type(found) is not int or not 1 <= found <= most:
        raise _fault(f"text_config.{key} is {short(found)}, not an integer from 1 to {most}")
    return found


def _number(
    given: Mapping[str, Any], key: str, default: float, bounds: tuple[float, float]
) -> float:
    found = given.get(key, default)
    if type(found) not in (int, float) or not bounds[0] <= found <= bounds[1]:
        raise _fault(f"text_config.{key} is {short(found)}")
    return float(found)


def _fault(text: str) -> ModelError:
    return ModelError(f"{CONFIG}: {text}, which is not supported", "get a GGUF file of this model")
