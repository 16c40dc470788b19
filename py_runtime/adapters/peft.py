"""Adapters of PEFT: adapter_config.json and adapter_model.safetensors."""

import math
import re
from collections.abc import Mapping
from typing import Any

from py_runtime.adapters.adapter import (
    GATES,
    MAX_ALPHA,
    QUERIES,
    Adapter,
    LowRank,
    check_factors,
)
from py_runtime.adapters.errors import AdapterError
from py_runtime.base.short_texts import short
from py_runtime.decoder.family import Family
from py_runtime.folder.plain_safetensors import PlainTensors, read_safetensors
from py_runtime.folder.strict_json import is_count, parse_strict_json

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
TENSOR = re.compile(r"(?:base_model\.model\.)?(.+)\.lora_([AB])(?:\.[^.]+)?\.weight")
LAYER = re.compile(r"(?:.*\.)?(?:layers|h)\.(\d{1,6})\.(.+)")  # each family has one of the two
HEAD = "lm_head"
# Keys that change what an adapter computes, with the only values that are understood.
PLAIN: Mapping[str, tuple[Any, ...]] = {
    "use_dora": (None, False),
    "use_qalora": (None, False),
    "lora_bias": (None, False),
    "fan_in_fan_out": (None, False),
    "bias": (None, "none"),
    "modules_to_save": (None, []),
    "layer_replication": (None, []),
    "trainable_token_indices": (None, [], {}),
    "target_parameters": (None, []),
    "alora_invocation_tokens": (None, []),
    "arrow_config": (None,),
}
# Ways to begin that change the base model's own weights.
CHANGES_BASE = ("pissa", "olora", "corda", "loftq")


def read_peft(config: bytes, weights: bytes, family: Family | None, file: str) -> Adapter:
    """Read an adapter; `family` is the model's, whose checkpoints name its modules."""
    values = _read_config(config, file)
    if family is not None and family.checkpoint.multipliers is not None:
        raise AdapterError(
            f"{file} is for matrices that {family.known_as} multiplies, which this engine cannot "
            "apply",
            "convert it to a GGUF file, or merge it into its model and load that",
        )
    tensors = read_safetensors(file, weights)
    modules: dict[str, dict[str, str]] = {}
    for name in tensors.stored:
        match = TENSOR.fullmatch(name)
        if match is None:
            raise AdapterError(
                f"{file} has {short(name)}, which is no factor of a linear: only lora_A and lora_B "
                "of linears are taken"
            )
        factors = modules.setdefault(match[1], {})
        if match[2] in factors:
            raise AdapterError(f"{file} has the lora_{match[2]} of {short(match[1])} twice")
        factors[match[2]] = name
    if not modules:
        raise AdapterError(f"{file} has no tensors")
    parts: dict[tuple[str, ...], LowRank] = {}
    for module, factors in modules.items():
        names = _linears(module, family)
        if names in parts:
            raise AdapterError(f"{file} has {short(module)} twice")
        parts[names] = _part(file, module, factors, tensors, values)
    return Adapter(file, parts)


def _read_config(config: bytes, file: str) -> dict[str, Any]:
    try:
        values = parse_strict_json(config)
    except ValueError as error:
        raise AdapterError(f"{CONFIG} of {file} is not JSON: {error}") from None
    if not isinstance(values, dict):
        raise AdapterError(f"{CONFIG} of {file} is not an object")
    kind = values.get("peft_type")
    if kind != "LORA":
        raise AdapterError(f"{file} is an adapter of the type {short(kind)}; only LORA is taken")
    for key, plain in PLAIN.items():
        if values.get(key) not in plain:
            raise AdapterError(
                f"{file} has {key} = {short(values[key])}, which this engine cannot apply",
                "merge it into its model and load that, or get an adapter of plain LoRA",
            )
    begun = values.get("init_lora_weights")
    if isinstance(begun, str) and begun.lower().startswith(CHANGES_BASE):
        raise AdapterError(
            f"{file} was begun by {short(begun)}, which changes the model's own weights",
            "convert it to plain LoRA, with path_initial_model_for_weight_conversion of PEFT",
        )
    return values


def _part(
    file: str,
    module: str,
    factors: Mapping[str, str],
    tensors: PlainTensors,
    values: Mapping[str, Any],
) -> LowRank:
    for factor in "AB":
        if factor not in factors:
            raise AdapterError(f"{file}: {short(module)} lacks its lora_{factor}")
    down, up = (tensors.floats(factors[factor]) for factor in "AB")
    check_factors(file, module, down, up)
    rank = _by_pattern(values, "rank_pattern", module, values.get("r"))
    if rank != len(down):
        raise AdapterError(
            f"{file}: {short(module)} has the rank {len(down)}, but {CONFIG} says {short(rank)}"
        )
    alpha = _by_pattern(values, "alpha_pattern", module, values.get("lora_alpha"))
    is_number = isinstance(alpha, int | float) and not isinstance(alpha, bool)
    if not is_number or not abs(alpha) <= MAX_ALPHA:  # nor is NaN
        raise AdapterError(
            f"{file}: lora_alpha is {short(alpha)}, not a number of {MAX_ALPHA:g} at most"
        )
    layers = values.get("layers_to_transform")
    layer = LAYER.fullmatch(module)
    if layers is not None and layer is not None:
        wanted = layers if isinstance(layers, list) else [layers]
        if not all(map(is_count, wanted)) or int(layer[1]) not in wanted:
            raise AdapterError(
                f"{file} has {short(module)}, but layers_to_transform is {short(layers)}"
            )
    scale = alpha / (math.sqrt(rank) if values.get("use_rslora") else rank)
    return LowRank(module, down, up, scale)


def _by_pattern(values: Mapping[str, Any], key: str, module: str, usual: Any) -> Any:
    """Return a module's own value, by the first pattern that is the end of its name."""
    patterns = values.get(key) or {}
    if not isinstance(patterns, dict):
        raise AdapterError(f"{key} is {short(patterns)}, not an object")
    for pattern, value in patterns.items():
        if pattern == module or module.endswith(f".{pattern.removeprefix('^')}"):
            return value
    return usual


def _linears(module: str, family: Family | None) -> tuple[str, ...]:
    """Return the decoder's linears that a module of a checkpoint is."""
    match = LAYER.fullmatch(module)
    if match is None:
        return (module.rpartition(".")[2],)
    inner = match[2]
    layer = f"layers.{match[1]}"
    if family is None:
        return (f"{layer}.{inner}",)
    own = {stored: name for name, stored in family.checkpoint.tensors.items()}
    held = family.checkpoint.fused.get(inner)
    if held is None:
        is_both = family.gated_attention and inner == QUERIES
        held = (QUERIES, GATES) if is_both else (own.get(inner, inner),)
    return tuple(f"{layer}.{name}" for name in held)
