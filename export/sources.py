"""Sources of a model: its config, its tokenizer, and its tensors one at a time."""

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open

from export import architectures
from export.checkpoint_words import HEAD, stored_names
from export.errors import ExportError
from export.interleaved_experts import MXFP4, InterleavedExperts
from export.quantisers import Parts, quantise
from export.stacked_experts import StackedExperts
from py_runtime.base.short_texts import first_of
from py_runtime.decoder.config import DecoderConfig
from py_runtime.decoder.families import BY_MODEL_TYPE
from py_runtime.decoder.family import Family, Runs
from py_runtime.decoder.rotary import Floats
from py_runtime.decoder.tensors import (
    EXPERTS,
    PER_LAYER_TABLE,
    ROUTER,
    WeightKind,
    bias_rows,
    expected_shapes,
    weight_names,
)
from py_runtime.program.weight_kinds import Q4GSW

AT_EIGHT_BITS = ("embed_tokens.weight", "lm_head.weight", f"{PER_LAYER_TABLE}.weight")
TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json")
MAX_FAULTS = 5  # that are told at once
LAYER = re.compile(r"^layers\.\d+\.")


@dataclass(frozen=True)
class Quantisation:
    """The quantisation that was asked for; only float weights are quantised."""

    name: str = "q4gsw"
    group_size: int = 32

    def kind_of(self, weight: str) -> WeightKind:
        """Return the kind of a weight.

        Embedding and head keep 8 bits: they are one matrix in most small models, and every token's
        error passes through it.
        """
        if self.name == "none" or weight.endswith(f"{ROUTER}.weight"):  # small, and all hangs on it
            return WeightKind("f32")
        if self.name == "q8" or weight in AT_EIGHT_BITS:
            return WeightKind("q8_0")
        return WeightKind("q4_1") if self.name == "q4" else WeightKind(Q4GSW, self.group_size)


@dataclass
class Source(ABC):
    """A checkpoint: tensors are asked for by the names that the decoder has for them."""

    name: str
    licence: str
    hf_config: dict[str, Any]  # as in config.json
    tokenizer: dict[str, Any]  # file name → JSON
    quantisation: Quantisation
    warnings: list[str] = field(default_factory=list)
    _cached: tuple[str, Parts] | None = None  # the weight whose parts were asked for last

    def __post_init__(self) -> None:
        self.values = architectures.read_config(self.hf_config)

    # What a kind of source writes --------------------------------------------------------------

    @abstractmethod
    def dense(self, name: str) -> np.ndarray:
        """Return a tensor as float32, exactly as the file defines it."""

    @abstractmethod
    def shape(self, name: str) -> tuple[int, ...] | None:
        """None when the source has no such tensor."""

    def kind(self, weight: str) -> WeightKind:
        return self.quantisation.kind_of(weight)

    def parts(self, weight: str) -> Parts:
        """Return a weight as it will be stored."""
        return quantise(self.kind(weight), self.dense(weight), weight)

    def rotary_tables(self, context: int) -> dict[str, Floats]:
        """Return the tables by name, [context, rotated dims]."""
        return architectures.rotary_tables(self.values, context)

    # What the exporter asks for ----------------------------------------------------------------

    def decoder_config(self, context: int | None) -> DecoderConfig:
        return architectures.decoder_config(self.values, context)

    def kinds(self, config: DecoderConfig) -> dict[str, WeightKind]:
        return {name: self.kind(name) for name in weight_names(config)}

    def check(self, expected: Mapping[str, tuple[int, ...]]) -> None:
        """Report all faults of all tensors at once, before any work."""
        faults = []
        for name, shape in expected.items():
            found = self.shape(name)
            if found is None:
                faults.append(f"'{name}' is missing")
            elif found != shape:
                faults.append(f"'{name}' has the shape {list(found)}, not {list(shape)}")
        if faults:
            raise ExportError(f"{self.name}: {'; '.join(first_of(faults, MAX_FAULTS))}")

    def constants(self, config: DecoderConfig, names: list[str]) -> dict[str, Callable[[], Any]]:
        """Return, for each constant of the graph, a function that returns its data."""
        weights = set(weight_names(config))
        tables = self.rotary_tables(config.context)

        def give(name: str) -> np.ndarray:
            if name in tables:
                return tables[name]
            owner, _, part = name.rpartition(".")
            weight = f"{owner}.weight"
            if weight not in weights:
                return self.dense(name)  # a norm
            if part == "bias":
                return _padded_bias(self.dense(name), self.kind(weight))
            return self._parts_of(weight)[part]

        return {name: lambda name=name: give(name) for name in names}  # type: ignore[misc]

    def _parts_of(self, weight: str) -> Parts:
        if self._cached is None or self._cached[0] != weight:
            self._cached = (weight, self.parts(weight))
        return self._cached[1]


def _padded_bias(bias: np.ndarray, kind: WeightKind) -> np.ndarray:
    return np.pad(bias, (0, bias_rows(kind, len(bias)) - len(bias)))


def _without_groups(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Drop the middle dim of a depthwise convolution, which is stored as [channels, 1, taps]."""
    return (shape[0], shape[2]) if len(shape) == 3 and shape[1] == 1 else shape


def read_json(path: Path) -> dict[str, Any]:
    """Read an object from a file; ExportError says why not."""
    try:
        loaded = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ExportError(f"{path.parent} has no {path.name}") from None
    except (ValueError, OSError) as error:
        raise ExportError(f"{path} cannot be read: {error}") from None
    except RecursionError:
        raise ExportError(f"{path} cannot be read: it is nested too deeply") from None
    if not isinstance(loaded, dict):
        raise ExportError(f"{path} is not a JSON object")
    return loaded


def all_ends(*configs: Mapping[str, Any]) -> list[int]:
    """Return every token that one of the configs ends an answer with.

    generation_config.json often has more, and where a model has parts, the one that writes may name
    its own.
    """
    found: list[Any] = []
    for config in configs:
        for part in (config, config.get("text_config")):
            ends = part.get("eos_token_id") if isinstance(part, Mapping) else None
            found += ends if isinstance(ends, list) else [ends]
    return sorted({token for token in found if type(token) is int})


class HuggingFaceSource(Source):
    """A folder with config.json, safetensors files and a tokenizer."""

    family: Family
    _multipliers: Mapping[str, Runs]
    _expected: dict[str, tuple[int, ...]]
    _in_one: InterleavedExperts | StackedExperts | None = None  # where experts are one tensor

    @classmethod
    def open(cls, folder: Path, quantisation: Quantisation) -> "HuggingFaceSource":
        hf_config = read_json(folder / "config.json")
        generation = folder / "generation_config.json"
        further = [read_json(generation)] if generation.is_file() else []
        hf_config["eos_token_id"] = all_ends(hf_config, *further)
        tokenizer = {name: read_json(folder / name) for name in TOKENIZER_FILES}
        template = folder / "chat_template.jinja"
        if template.is_file() and "chat_template" not in tokenizer["tokenizer_config.json"]:
            text = template.read_text(encoding="utf-8")
            tokenizer["tokenizer_config.json"]["chat_template"] = text
        source = cls(
            folder.resolve().name, "see the checkpoint", hf_config, tokenizer, quantisation
        )
        source.family = BY_MODEL_TYPE[source.values["model_type"]]
        multipliers = source.family.checkpoint.multipliers
        source._multipliers = multipliers(source.values) if multipliers else {}
        source._expected = expected_shapes(source.decoder_config(None))
        source._open_files(folder)
        if "text_config" in hf_config:  # either part may say it, or none
            head = source._stored_name(f"{HEAD}.weight")
            source.values["tie_word_embeddings"] = head not in source._file_of
        return source

    def _open_files(self, folder: Path) -> None:
        paths = sorted(folder.glob("*.safetensors"))
        if not paths:
            raise ExportError(
                f"{folder} has no .safetensors file (pickled checkpoints are never opened: convert "
                "them with transformers' save_pretrained)"
            )
        self._file_of: dict[str, Any] = {}
        for path in paths:
            try:
                opened = safe_open(path, framework="pt")
            except (SafetensorError, OSError) as error:
                raise ExportError(f"{path} is not a safetensors file: {error}") from None
            for stored in opened.keys():  # noqa: SIM118  (safe_open is not a mapping)
                self._file_of[stored] = opened

        mixture = self.family.mixture
        if mixture is not None and mixture.interleaved:
            self._in_one = InterleavedExperts(self._file_of, self._stored_name)
        elif mixture is not None and mixture.stacked:
            self._in_one = StackedExperts(self._file_of, self._stored_name)

    def kind(self, weight: str) -> WeightKind:
        return super().kind(weight) if self._with_blocks(weight) is None else MXFP4

    def parts(self, weight: str) -> Parts:
        experts = self._with_blocks(weight)
        return super().parts(weight) if experts is None else experts.parts(weight)

    def _with_blocks(self, weight: str) -> InterleavedExperts | None:
        experts = self._in_one
        if f".{EXPERTS}." not in weight or not isinstance(experts, InterleavedExperts):
            return None
        return experts if experts.has_blocks(weight) else None

    def shape(self, name: str) -> tuple[int, ...] | None:
        if f".{EXPERTS}." in name and self._in_one is not None:
            return self._in_one.shape(name)
        if f".{EXPERTS}." in name:
            first, *others = [self._shape_of_one(each) for each in self._of_experts(name)]
            if first is None or any(other != first for other in others):
                return None
            return (first[0] * (1 + len(others)), *first[1:])
        return self._shape_of_one(name)

    def _shape_of_one(self, name: str) -> tuple[int, ...] | None:
        stored, rows = self._place(name)
        if stored not in self._file_of:
            return None
        found = _without_groups(tuple(self._file_of[stored].get_slice(stored).get_shape()))
        if self._half(name) is not None:
            return (found[0] // 2, *found[1:])
        if rows is None:
            return found
        return (max(min(rows.stop, found[0]) - rows.start, 0), *found[1:])

    def dense(self, name: str) -> np.ndarray:
        if f".{EXPERTS}." in name and self._in_one is not None:
            return self._in_one.dense(name)
        if f".{EXPERTS}." in name:
            return np.concatenate([self._dense_of_one(each) for each in self._of_experts(name)])
        return self._dense_of_one(name)

    def _of_experts(self, name: str) -> list[str]:
        """layers.0.mlp.experts.up_proj.weight: of each its own."""
        sizes = self.decoder_config(None).mlp.experts
        assert sizes is not None, "a tensor of experts is asked for where there are some"
        count = sizes.count
        return [name.replace(f".{EXPERTS}.", f".{EXPERTS}.{each}.") for each in range(count)]

    def _dense_of_one(self, name: str) -> np.ndarray:
        stored, rows = self._place(name)
        tensor = self._file_of[stored].get_slice(stored)
        array: np.ndarray = (tensor[:] if rows is None else tensor[rows]).float().numpy()
        array = array.reshape(_without_groups(array.shape))
        if name.endswith(".decay.weight"):  # stored as its logarithm
            return -np.exp(array)
        if self._half(name) is not None:
            head_dim = self.decoder_config(None).attention.head_dim
            runs = array.reshape(-1, 2, head_dim, *array.shape[1:])[:, self._half(name)]
            return np.ascontiguousarray(runs).reshape(-1, *array.shape[1:])
        multiplied = self._multipliers.get(LAYER.sub("", name).removesuffix(".weight"))
        if multiplied is not None:
            counts, factors = zip(*multiplied, strict=True)
            return array * np.repeat(np.array(factors, np.float32), counts)[:, np.newaxis]
        from_one = self.family.checkpoint.norms_from_one and name.endswith("norm.weight")
        return array + 1 if from_one and "linear_attn" not in name else array

    def _half(self, name: str) -> int | None:
        """Return which half it is of a matrix that has a head's query and then its gate."""
        if not self.family.gated_attention:
            return None
        return next((at for at, part in enumerate("qg") if f".{part}_proj." in name), None)

    def _place(self, name: str) -> tuple[str, slice | None]:
        """Return the stored tensor that has it, and which of its rows, if not all."""
        owner, _, part = name.rpartition(".")
        for fused, held in self.family.checkpoint.fused.items():
            for place, inner in enumerate(held):
                if owner.endswith(f".{inner}"):
                    stored = f"{owner.removesuffix(inner)}{fused}.{part}"
                    return self._stored_name(stored), self._rows(owner, held, place)
        return self._stored_name(name), None

    def _rows(self, owner: str, held: tuple[str, ...], place: int) -> slice:
        prefix = owner.removesuffix(held[place])
        counts = [self._expected[f"{prefix}{inner}.weight"][0] for inner in held]
        return slice(sum(counts[:place]), sum(counts[: place + 1]))

    def _stored_name(self, name: str) -> str:
        names = stored_names(self.family.checkpoint, name)
        return next((stored for stored in names if stored in self._file_of), names[0])
