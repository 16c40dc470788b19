"""An mmproj file: the part of a model that sees images, which llama.cpp keeps in a file of its own.

It is checked before a byte of its data is used.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from py_runtime.base.model_errors import ModelError
from py_runtime.base.shapes import Dims
from py_runtime.decoder.config import DecoderConfig
from py_runtime.gguf.constants import GgufConstants
from py_runtime.gguf.encoder import split_rows
from py_runtime.gguf.errors import GgufError, UnsupportedGgufError, listed, shown
from py_runtime.gguf.keys import Keys
from py_runtime.gguf.reader import GgufFile, StoredTensor
from py_runtime.gguf.wanted_tensors import wanted_tensors
from py_runtime.program import Program
from py_runtime.vision.families import BY_PROJECTOR, FAMILIES, SeeingFamily
from py_runtime.vision.sight import Colours, Sight, fault, fitting
from py_runtime.vision.siglip import DOWN, UP

CLIP = "clip"
ARCHITECTURE, PROJECTOR_TYPE = "general.architecture", "projector_type"
WITHOUT = "load the model without this file, to chat in words"
Tensors = Mapping[str, StoredTensor]  # by the engine's names


@dataclass(frozen=True)
class Tower:
    """The part of a model that sees, all of it but the weights."""

    sight: Sight
    program: Program
    constants: GgufConstants


def is_tower(file: GgufFile) -> bool:
    """Return whether the file has the part of a model that sees."""
    return ARCHITECTURE in file.metadata and file.metadata.text(ARCHITECTURE) == CLIP


def read_tower(file: GgufFile, decoder: DecoderConfig, model_type: str) -> Tower:
    """Read the tower of a decoder; GgufError says what is wrong with the file."""
    family = check_projector(file)
    keys = Keys(file.metadata, CLIP)
    if model_type not in family.decoders:
        raise GgufError(
            f"{file.name} belongs to another model: it is {family.known_as}'s",
            f"give the mmproj file of the same model, or {WITHOUT}",
        )
    try:
        found = family.read_gguf(keys, _columns(file, family), _colours(file, family.colours))
        sight = found.completed({name: each.info.dims for name, each in file.tensors.items()})
        sight.check()
        check_fits(sight, decoder)
    except ModelError as error:
        raise GgufError(f"{file.name}: {error}") from None
    if sight.out != decoder.width:
        raise GgufError(
            f"{file.name} makes rows of {sight.out} columns, but the model takes {decoder.width}: "
            "it belongs to another model",
            f"give the mmproj file of the same model, or {WITHOUT}",
        )
    return tower_of(sight, _tensors(file, sight), file.name)


def check_fits(sight: Sight, decoder: DecoderConfig) -> None:
    """Check that a decoder does what the tower's images need of it."""
    seen = decoder.sees
    found = None if seen is None else (seen.whole, seen.deep, bool(seen.axes))
    if found != (sight.whole > 0, sight.deep_layers, sight.has_places):
        raise fault("its images need another decoder")
    if sight.whole > decoder.max_chunk:
        rows, most = sight.whole, decoder.max_chunk
        raise fault(f"an image has {rows} rows, but its decoder takes {most} tokens at once")


def check_projector(file: GgufFile) -> SeeingFamily:
    """Return the family; GgufError for a file of something else or a projector not computed."""
    if not is_tower(file):
        raise UnsupportedGgufError(
            f"{file.name} is not the part of a model that sees images", "give an mmproj file"
        )
    keys = Keys(file.metadata, CLIP)
    projector = keys.text(PROJECTOR_TYPE, keys.text(f"vision.{PROJECTOR_TYPE}", ""))
    if projector not in BY_PROJECTOR:
        known = ", ".join(f"{each.projector} ({each.known_as})" for each in FAMILIES)
        raise UnsupportedGgufError(
            f"{file.name}: images through a projector of the type {shown(projector)} are not "
            f"supported; these are: {known}",
            WITHOUT,
        )
    return BY_PROJECTOR[projector]


def tower_of(
    sight: Sight, tensors: Tensors, name: str, given: Mapping[str, np.ndarray] | None = None
) -> Tower:
    """Return the tower of tensors that have the shapes they must have; some are `given`."""
    given = given or {}
    shapes = {own: dims for own, dims in sight.shapes().items() if own not in given}
    matrices = {own for own in shapes if sight.is_matrix(own)}
    kinds, wanted = wanted_tensors(shapes, matrices, tensors, name)
    return Tower(sight, sight.write(kinds, name), GgufConstants(wanted, given))


def _colours(file: GgufFile, usual: Colours) -> Colours:
    """Return the mean and deviation that a file says."""
    keys = (f"{CLIP}.vision.image_{name}" for name in ("mean", "std"))
    mean, std = (
        tuple(float(number) for number in file.metadata.numbers(key)[:4])
        if key in file.metadata
        else usually
        for key, usually in zip(keys, (usual.mean, usual.std), strict=True)
    )
    return Colours(mean, std)


def _columns(file: GgufFile, family: SeeingFamily) -> int:
    """Return the columns that the projector gives."""
    name = family.projection
    if name not in file.tensors:
        raise GgufError(f"{file.name}: {shown(name)} is missing")
    return file.tensors[name].info.dims[-1 if family.is_turned else 0]


def _tensors(file: GgufFile, sight: Sight) -> Tensors:
    """Return all tensors that the tower needs, in their shapes; GgufError lists the faults."""
    found: dict[str, StoredTensor] = {}
    faults = []
    shapes = sight.shapes()
    tensors = dict(file.tensors)
    split_fused(sight, tensors, sight.gguf_name)
    used = set()
    for own, dims in shapes.items():
        name = _stored_name(tensors, own, sight, shapes)
        if name not in tensors:
            faults.append(f"{shown(name)} is missing")
        elif not fitting(tensors[name].info.dims, dims):
            stored = list(tensors[name].info.dims)
            faults.append(f"{shown(name)} has the shape {stored}, not {list(dims)}")
        else:
            found[own] = tensors[name]
            used.add(name)
    if faults:
        raise GgufError(f"{file.name}: {listed(faults)}")
    others = sorted(name for name in {*tensors} - used if not name.startswith((*sight.ignored,)))
    if others:
        raise UnsupportedGgufError(
            f"{file.name} has tensors that this engine does not compute with: "
            f"{listed(map(shown, others))}",
            WITHOUT,
        )
    return found


def split_fused(
    sight: Sight, tensors: dict[str, StoredTensor], name_of: Callable[[str], str]
) -> None:
    """Put the parts of fused tensors in their place; one of another shape stays, to be reported."""
    shapes = sight.shapes()
    for owner, parts in sight.fused():
        for ending in ("weight", "bias"):
            names = [name_of(f"{part}.{ending}") for part in parts]
            rows = shapes[f"{parts[0]}.{ending}"][0]
            split_rows(tensors, name_of(f"{owner}.{ending}"), names, rows)


def _stored_name(tensors: Tensors, own: str, sight: Sight, shapes: Mapping[str, Dims]) -> str:
    """Return a tensor's name; older files have the two products of an MLP the other way round."""
    owner, _, ending = own.rpartition(".")
    for part, other in ((UP, DOWN), (DOWN, UP)):
        if owner.endswith(part):
            path = owner.removesuffix(part)
            up = tensors.get(sight.gguf_name(f"{path}{UP}.weight"))
            wanted = shapes[f"{path}{UP}.weight"]
            if up is not None and up.info.dims == wanted[::-1] != wanted:
                return sight.gguf_name(f"{path}{other}.{ending}")
    return sight.gguf_name(own)
