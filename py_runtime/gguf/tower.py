"""An mmproj file: the part of a model that sees images, which llama.cpp keeps in a file of its own.

It is checked before a byte of its data is used.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from py_runtime.base.model_errors import ModelError
from py_runtime.base.shapes import Dims
from py_runtime.decoder.limits import MAX_HEADS, MAX_HIDDEN, MAX_LAYERS, MAX_WIDTH
from py_runtime.gguf.constants import GgufConstants
from py_runtime.gguf.errors import GgufError, UnsupportedGgufError, listed, shown
from py_runtime.gguf.keys import Keys
from py_runtime.gguf.reader import GgufFile, StoredTensor
from py_runtime.gguf.wanted_tensors import wanted_tensors
from py_runtime.program import Program
from py_runtime.vision.config import (
    EDGES,
    EPSILONS,
    GELU,
    GELU_TANH,
    MAX_EDGE,
    MAX_FACTOR,
    MAX_SIDE,
    MEAN,
    Preprocessing,
    TowerConfig,
    checked,
)
from py_runtime.vision.program import write_tower
from py_runtime.vision.tensors import DOWN, UP, expected_shapes, fitting, gguf_name, is_matrix

CLIP = "clip"
ARCHITECTURE, PROJECTOR_TYPE = "general.architecture", "projector_type"
PROJECTORS = {"idefics3": "SmolVLM"}  # those that are computed, and who has them
Tensors = Mapping[str, StoredTensor]  # by the engine's names


@dataclass(frozen=True)
class Tower:
    """The part of a model that sees, all of it but the weights."""

    config: TowerConfig
    program: Program
    constants: GgufConstants


def is_tower(file: GgufFile) -> bool:
    """Return whether the file has the part of a model that sees."""
    return ARCHITECTURE in file.metadata and file.metadata.text(ARCHITECTURE) == CLIP


def read_tower(file: GgufFile, width: int) -> Tower:
    """Read the tower of a decoder of this width; GgufError says what is wrong with the file."""
    keys = Keys(file.metadata, CLIP)
    projector = keys.text(PROJECTOR_TYPE, keys.text(f"vision.{PROJECTOR_TYPE}", ""))
    if projector not in PROJECTORS:
        known = ", ".join(f"{name} ({who})" for name, who in PROJECTORS.items())
        raise UnsupportedGgufError(
            f"{file.name}: images through a projector of the type {shown(projector)} are not "
            f"supported; these are: {known}",
            "load the model without this file, to chat in words",
        )
    try:
        config = checked(_config(file, keys))
    except ModelError as error:
        raise GgufError(f"{file.name}: {error}") from None
    if config.out != width:
        raise GgufError(
            f"{file.name} makes rows of {config.out} columns, but the model takes {width}: it "
            "belongs to another model",
            "give the mmproj file of the same model",
        )
    return tower_of(config, _tensors(file, config), file.name)


def tower_of(config: TowerConfig, tensors: Tensors, name: str) -> Tower:
    """Return the tower of tensors that have the shapes they must have."""
    shapes = expected_shapes(config)
    matrices = {own for own, dims in shapes.items() if is_matrix(own, dims)}
    kinds, wanted = wanted_tensors(shapes, matrices, tensors, name)
    return Tower(config, write_tower(config, kinds, name), GgufConstants(wanted, {}))


def _config(file: GgufFile, keys: Keys) -> TowerConfig:
    side = keys.integer("vision.image_size", 1, MAX_SIDE)
    edge = keys.integer("vision.preproc_image_size", 1, MAX_EDGE, default=EDGES * side)
    mean, std = (_numbers(file, f"{CLIP}.vision.image_{name}") for name in ("mean", "std"))
    return TowerConfig(
        side=side,
        patch=keys.integer("vision.patch_size", 1, MAX_SIDE),
        width=keys.integer("vision.embedding_length", 1, MAX_WIDTH),
        hidden=keys.integer("vision.feed_forward_length", 1, MAX_HIDDEN),
        layers=keys.integer("vision.block_count", 1, MAX_LAYERS),
        heads=keys.integer("vision.attention.head_count", 1, MAX_HEADS),
        factor=keys.integer("vision.projector.scale_factor", 1, MAX_FACTOR),
        out=_columns(file),
        preprocessing=Preprocessing(edge, mean=mean, std=std),
        # llama.cpp's gelu is the one with a tanh.
        activation=GELU_TANH if keys.flag("use_gelu", True) else GELU,
        eps=keys.number("vision.attention.layer_norm_epsilon", *EPSILONS),
    )


def _numbers(file: GgufFile, key: str) -> tuple[float, ...]:
    if key not in file.metadata:
        return MEAN
    return tuple(float(number) for number in file.metadata.numbers(key)[:4])


def _columns(file: GgufFile) -> int:
    """Return the columns that the projector gives."""
    name = gguf_name("projector.weight")
    if name not in file.tensors:
        raise GgufError(f"{file.name}: {shown(name)} is missing")
    return file.tensors[name].info.dims[0]


def _tensors(file: GgufFile, config: TowerConfig) -> Tensors:
    """Return all tensors that the tower needs, in their shapes; GgufError lists the faults."""
    found: dict[str, StoredTensor] = {}
    faults = []
    shapes = expected_shapes(config)
    for own, dims in shapes.items():
        name = _stored_name(file, own, shapes)
        if name not in file.tensors:
            faults.append(f"{shown(name)} is missing")
        elif not fitting(file.tensors[name].info.dims, dims):
            stored = list(file.tensors[name].info.dims)
            faults.append(f"{shown(name)} has the shape {stored}, not {list(dims)}")
        else:
            found[own] = file.tensors[name]
    if faults:
        raise GgufError(f"{file.name}: {listed(faults)}")
    others = sorted({*file.tensors} - {tensor.info.name for tensor in found.values()})
    if others:
        raise UnsupportedGgufError(
            f"{file.name} has tensors that this engine does not compute with: "
            f"{listed(map(shown, others))}",
            "load the model without this file, to chat in words",
        )
    return found


def _stored_name(file: GgufFile, own: str, shapes: Mapping[str, Dims]) -> str:
    """Return a tensor's name; older files have the two products of an MLP the other way round."""
    owner, _, ending = own.rpartition(".")
    for part, other in ((UP, DOWN), (DOWN, UP)):
        if owner.endswith(part):
            path = owner.removesuffix(part)
            up = file.tensors.get(gguf_name(f"{path}{UP}.weight"))
            wanted = shapes[f"{path}{UP}.weight"]
            if up is not None and up.info.dims == wanted[::-1] != wanted:
                return gguf_name(f"{path}{other}.{ending}")
    return gguf_name(own)
