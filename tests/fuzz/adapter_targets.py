"""Adapters, steering vectors, safetensors files: up to the graph or the numbers they change."""

import json
from functools import cache
from random import Random
from typing import Any

import numpy as np

from py_runtime.adapters.adapter import Adapter
from py_runtime.adapters.files import MemorySource, read_adapter
from py_runtime.adapters.peft import CONFIG, WEIGHTS
from py_runtime.folder.plain_safetensors import read_safetensors, write_safetensors
from py_runtime.folder.safetensors_header import LENGTH_BYTES
from py_runtime.gguf.model import open_model
from py_runtime.glass.anatomy import Anatomy
from py_runtime.glass.edits import Edit, Place, affine, rows_of
from py_runtime.glass.points import HookPoint, points_of
from py_runtime.glass.steering_vectors import read_vector, stream_hook
from py_runtime.gpu.kernel_target import KernelTarget
from py_runtime.passes import DEFAULT_PASSES, JOINING, run_passes
from py_runtime.passes.add_low_rank import AddLowRank, linears_of
from py_runtime.program import Program
from tests.adapters.written import (
    GGUF_NAMES,
    Factors,
    gguf_adapter,
    peft_config,
    peft_tensors,
    random_factors,
)
from tests.fuzz.damage import damage_bytes
from tests.fuzz.documents import make_lie
from tests.fuzz.driver import Target
from tests.fuzz.in_line import result_of
from tests.gguf.small import HEAD_DIM, HIDDEN, WIDTH, small_file

Q, DOWN = "layers.0.self_attn.q_proj", "layers.0.mlp.down_proj"
FACTORS = random_factors({Q: (WIDTH, WIDTH), DOWN: (WIDTH, HIDDEN)}, 4, 1)
# As checkpoints of other families have them: several linears in a module.
FUSED = {"self_attn.qkv_proj": (64, WIDTH), "self_attn.q_proj": (2 * WIDTH, WIDTH)}
KEYS = ("general.type", "general.architecture", "adapter.type", "adapter.lora.alpha")
PLAIN_VALUES = [8, 2**31, 0.5, True, "", "lora", "adapter", "F32", "\0", "💚", b"\xff"]
NUMBERS_IN_WORDS = [
    "0",
    "-1",
    "1",
    "9" * 4000,
    "9" * 5000,
    "1e999",
    "1e300",
    "nan",
    "-inf",
    "",
    "٣",
]
HEADER = 700  # bytes of these files that come before their data, nearly
APART = b"\n\0\n"  # between the family, PEFT's config and the tensors
SOUND = write_safetensors(peft_tensors(FACTORS), {"format": "pt"})


def change(rng: Random, base: bytes) -> bytes:
    return (
        damage_bytes(rng, base[:HEADER]) + base[HEADER:]
        if rng.random() < 0.8
        else damage_bytes(rng, base)
    )


@cache
def program() -> Program:
    return result_of(open_model([MemorySource("model.gguf", small_file())])).program


@cache
def joined() -> Program:
    return run_passes(program(), KernelTarget(), DEFAULT_PASSES[:JOINING])


def apply(adapter: Adapter) -> None:
    """Do what a model does with it: everything but the GPU's part."""
    updates = adapter.updates(0, linears_of(program()), HEAD_DIM)
    add = AddLowRank({owner: [each] for owner, each in updates.items()})
    add(joined(), KernelTarget())
    for array in add.arrays.values():
        assert np.isfinite(np.asarray(array)).all(), "no text tells of what such numbers give"


# PEFT --------------------------------------------------------------------------------------------


def peft_parts() -> list[tuple[bytes, bytes, bytes]]:
    """Return families, configurations, and tensors."""
    patterns = {"alpha_pattern": {"q_proj": 2}, "rank_pattern": {DOWN: 4, "^x": 8}}
    configs = [
        peft_config(4, 8),
        peft_config(4, 8, **patterns, use_rslora=True, layers_to_transform=[0, 1]),
    ]
    found = [(b"llama", json.dumps(config).encode(), SOUND) for config in configs]
    for family, module in zip((b"phi3", b"qwen3_5_text"), FUSED, strict=True):
        name = f"layers.0.{module}"
        tensors = peft_tensors(random_factors({name: FUSED[module]}, 4, 1))
        found.append((family, json.dumps(configs[0]).encode(), write_safetensors(tensors)))
    return found


def peft_files() -> list[bytes]:
    return [APART.join(parts) for parts in peft_parts() if parts[0] == b"llama"]


def fused_files() -> list[bytes]:
    return [APART.join(parts) for parts in peft_parts() if parts[0] != b"llama"]


def lie_in_json(rng: Random, base: bytes) -> bytes:
    """Have the configuration or the header of the tensors say something else."""
    family, config, weights = base.split(APART, 2)
    if rng.random() < 0.5:
        return APART.join([family, make_lie(rng, config), weights])
    end = LENGTH_BYTES + int.from_bytes(weights[:LENGTH_BYTES], "little")
    header = make_lie(rng, weights[LENGTH_BYTES:end])
    length = len(header).to_bytes(LENGTH_BYTES, "little")
    return APART.join([family, config, length + header + weights[end:]])


def read_peft_files(data: bytes) -> None:
    apply(_adapter_in(data))


def read_fused(data: bytes) -> None:
    """Read for a model with gates in its attention, as FUSED has it."""
    rows = {"q": WIDTH, "g": WIDTH, "k": HEAD_DIM, "v": HEAD_DIM}
    linears = {f"layers.0.self_attn.{one}_proj": (count, WIDTH) for one, count in rows.items()}
    _adapter_in(data).updates(0, linears, HEAD_DIM)


def _adapter_in(data: bytes) -> Adapter:
    family, config, weights = [*data.split(APART, 2), b"", b""][:3]
    files = {CONFIG: MemorySource(CONFIG, config), WEIGHTS: MemorySource(WEIGHTS, weights)}
    return result_of(read_adapter(files, family.decode("latin-1"), HEAD_DIM))


# GGUF --------------------------------------------------------------------------------------------


def gguf_files() -> list[bytes]:
    return [gguf_adapter(FACTORS, 8, HEAD_DIM), gguf_adapter(FACTORS, 0, 0, "qwen2")]


def lie_in_gguf(rng: Random, base: bytes) -> bytes:
    """Write another file, whose form is sound: types of values, shapes and names of linears lie."""
    metadata: dict[str, Any] = {}
    if rng.random() < 0.4:
        metadata[rng.choice(KEYS)] = rng.choice(PLAIN_VALUES)
    factors: Factors = {}
    for name, (down, up) in FACTORS.items():
        if rng.random() < 0.2:
            name = f"layers.{rng.choice([0, 1, 999999])}.{rng.choice(list(GGUF_NAMES))}"
        if rng.random() < 0.2:
            rows, rank, columns = (rng.choice([0, 1, 4, 32, 64, 1025]) for _ in range(3))
            down, up = (np.ones(dims, np.float32) for dims in ((rank, columns), (rows, rank)))
        factors[name] = (down, up)
    architecture = rng.choice(["llama", "llama", "qwen2", "phi3", "qwen35", "mamba", ""])
    alpha = rng.choice([8.0, 0.0, -1.0, 1e30, float("nan"), float("inf")])
    return gguf_adapter(factors, alpha, 0, architecture, **metadata)


def read_gguf(data: bytes) -> None:
    files = {"adapter.gguf": MemorySource("adapter.gguf", data)}
    apply(result_of(read_adapter(files, "llama", HEAD_DIM)))


# Steering vectors --------------------------------------------------------------------------------


def vector_files() -> list[bytes]:
    facts = {"format": "inpage-steering", "name": "tone", "layer": "0", "strength": "-2"}
    vector = np.linspace(-1, 1, WIDTH, dtype=np.float32)
    return [write_safetensors({"vector": vector}, {**facts, "model": "a", "model_hash": "b"})]


def lie_in_header(rng: Random, base: bytes) -> bytes:
    if rng.random() < 0.4:
        return change(rng, base)
    end = LENGTH_BYTES + int.from_bytes(base[:LENGTH_BYTES], "little")
    header = json.loads(base[LENGTH_BYTES:end])
    facts, data = header["__metadata__"], base[end:]
    facts[rng.choice(["layer", "strength"])] = rng.choice(NUMBERS_IN_WORDS)
    if rng.random() < 0.5:  # a sound header of another shape
        shape = rng.choice([[], [0], [1], [0, WIDTH], [2, WIDTH], [WIDTH, 1], [1, 1, WIDTH]])
        data = bytes(4 * int(np.prod(shape)))
        header["vector"] |= {"shape": shape, "data_offsets": [0, len(data)]}
    text = json.dumps(header).encode()
    return len(text).to_bytes(LENGTH_BYTES, "little") + text + data


@cache
def points() -> dict[str, HookPoint]:
    return points_of(Anatomy.of(program()))


def read_steering(data: bytes) -> None:
    """Do what steering by the vector does with it, up to the numbers on the device."""
    stored = read_vector(data, "x.safetensors")
    given = {"vector": stored.values, "strength": stored.strength, "name": stored.name}
    edit = Edit.parse({"hook": stream_hook(stored.layer), **given})
    place = Place.of(points(), edit.hook)
    assert rows_of(edit, place) > 0
    assert all(np.isfinite(numbers).all() for numbers in affine(edit, place))


# Safetensors -------------------------------------------------------------------------------------


def read_tensors(data: bytes) -> None:
    tensors = read_safetensors("x.safetensors", data)
    for name in tensors.stored:
        tensors.floats(name)


TARGETS = [
    Target("adapter of peft", peft_files, change, read_peft_files, count=500),
    Target("adapter of peft that lies", peft_files, lie_in_json, read_peft_files, count=750),
    Target("adapter of fused modules", fused_files, lie_in_json, read_fused, count=400),
    Target("adapter in gguf", gguf_files, change, read_gguf, count=500),
    Target("adapter in gguf that lies", gguf_files, lie_in_gguf, read_gguf, count=500),
    Target("steering vector", vector_files, lie_in_header, read_steering, count=750),
    Target("plain safetensors", lambda: [SOUND], change, read_tensors, count=750),
]
