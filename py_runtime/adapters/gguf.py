"""Adapters in GGUF files, as llama.cpp's convert_lora_to_gguf.py writes them."""

import re

import numpy as np

from py_runtime.adapters.adapter import (
    GATES,
    MAX_ALPHA,
    QUERIES,
    Adapter,
    LowRank,
    check_factors,
)
from py_runtime.adapters.errors import AdapterError
from py_runtime.decoder.config import DELTA_NET
from py_runtime.decoder.families import BY_ARCHITECTURE
from py_runtime.decoder.family import Family
from py_runtime.gguf.dequantise import dequantise
from py_runtime.gguf.errors import shown
from py_runtime.gguf.names import OF_A_LAYER
from py_runtime.gguf.reader import GgufFile
from py_runtime.gguf.stored_weights import in_halves

TYPE, KIND, ALPHA = "general.type", "adapter.type", "adapter.lora.alpha"
ARCHITECTURE = "general.architecture"
ADAPTER, LORA = "adapter", "lora"
TENSOR = re.compile(r"(.+)\.weight\.lora_([ab])")
LAYER = re.compile(r"blk\.(\d{1,6})\.(.+)")
FLOATS = ("F32", "F16", "BF16")
TURNED = ("self_attn.q_proj", "self_attn.k_proj")


def is_adapter(file: GgufFile) -> bool:
    """Return whether a GGUF file is an adapter, and not a model."""
    metadata = file.metadata
    return TYPE in metadata and metadata.text(TYPE) == ADAPTER


async def read_gguf_adapter(file: GgufFile, head_dim: int) -> Adapter:
    """Read an adapter for a model with heads of this width."""
    metadata = file.metadata
    if not is_adapter(file):
        raise AdapterError(f"{file.name} is not an adapter", "load it as a model")
    kind = metadata.text(KIND) if KIND in metadata else LORA
    if kind != LORA:
        raise AdapterError(
            f"{file.name} is an adapter of the type {shown(kind)}; only lora is taken"
        )
    architecture = metadata.text(ARCHITECTURE)
    family = BY_ARCHITECTURE.get(architecture)
    if family is None:
        raise AdapterError(f"{file.name} is for {shown(architecture)}, which no model here is")
    alpha = metadata.number(ALPHA, 0, MAX_ALPHA) if ALPHA in metadata else 0.0
    modules: dict[str, dict[str, str]] = {}
    for name in file.tensors:
        match = TENSOR.fullmatch(name)
        if match is None:
            raise AdapterError(f"{file.name} has {shown(name)}, which is no factor of a linear")
        modules.setdefault(match[1], {})[match[2]] = name
    parts: dict[tuple[str, ...], LowRank] = {}
    for module, factors in modules.items():
        for factor in "ab":
            if factor not in factors:
                raise AdapterError(f"{file.name}: {shown(module)} lacks its lora_{factor}")
        down, up = [await _values(file, factors[factor]) for factor in "ab"]
        check_factors(file.name, module, down, up)
        names = _linears(module, family)
        if family.gguf.pairs_side_by_side and names[0].endswith(TURNED):
            if not head_dim or len(up) % head_dim:
                raise AdapterError(
                    f"{file.name}: {shown(module)} has {len(up)} rows, which are no heads of "
                    f"{head_dim}",
                    "load the model that it was trained for",
                )
            up = in_halves(up, head_dim)
        parts[names] = LowRank(module, down, up, alpha / len(down) if alpha else 1.0)
    return Adapter(file.name, parts, is_gguf=True)


async def _values(file: GgufFile, name: str) -> np.ndarray:
    stored = file.tensors[name]
    info = stored.info
    if info.kind.name not in FLOATS:
        raise AdapterError(
            f"{file.name}: {shown(name)} is {info.kind.name}, not one of {', '.join(FLOATS)}",
            "get the adapter in one of these",
        )
    data = await stored.source.read(info.offset, info.nbytes)
    stored.check_finite(np.frombuffer(data, np.uint8))
    return dequantise(info.kind, data).reshape(info.dims)


def _usual_names(family: Family) -> dict[str, str]:
    """Return the decoder's names by the files'; delta nets and Mamba share some of these."""
    others = "mamba." if DELTA_NET in family.mixers.values() else "linear_attn."
    return {stored: name for name, stored in OF_A_LAYER.items() if not name.startswith(others)}


def _linears(module: str, family: Family) -> tuple[str, ...]:
    """Return the decoder's linears that a tensor of a GGUF file is."""
    match = LAYER.fullmatch(module)
    if match is None:
        return ("lm_head" if module == "output" else module,)
    layer, inner = f"layers.{match[1]}", match[2]
    held = family.gguf.fused.get(inner)
    if held is None:
        own = {stored: name for name, stored in family.gguf.tensors.items()}
        name = own.get(inner) or _usual_names(family).get(inner, inner)
        is_both = family.gated_attention and name == QUERIES
        held = (QUERIES, GATES) if is_both else (name,)
    return tuple(f"{layer}.{name}" for name in held)
