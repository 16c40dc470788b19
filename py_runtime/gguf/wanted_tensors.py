"""The tensors of an encoder or a tower, each with the constants that it becomes."""

from collections.abc import Container, Mapping

from py_runtime.base.shapes import Dims
from py_runtime.decoder.tensors import WeightKind, weight_parts
from py_runtime.gguf.constants import WantedTensor
from py_runtime.gguf.errors import UnsupportedGgufError, listed
from py_runtime.gguf.reader import StoredTensor
from py_runtime.gguf.stored_weights import FLOATS, KNOWN, kind_of


def wanted_tensors(
    shapes: Mapping[str, Dims],
    matrices: Container[str],
    tensors: Mapping[str, StoredTensor],
    file: str,
) -> tuple[dict[str, WeightKind], dict[str, WantedTensor]]:
    """Return the kind of each matrix, and all tensors by the constants that they give.

    Matrices stay as they are stored, all others become f32. Names are the engine's.
    """
    kinds: dict[str, WeightKind] = {}
    unknown = set()
    wanted: dict[str, WantedTensor] = {}
    for own, dims in shapes.items():
        stored = tensors[own]
        kind = kind_of(stored.info.kind, dims[-1]) if own in matrices else None
        if kind is None and (own in matrices or stored.info.kind.name not in FLOATS):
            unknown.add(stored.info.kind.name)
            continue
        names = {"weight": own}
        if kind is not None:
            kinds[own] = kind
            owner = own.removesuffix(".weight")
            names = {part: f"{owner}.{part}" for part in weight_parts(kind, dims[0], dims[1])}
        tensor = WantedTensor(stored, names, kind)
        wanted |= dict.fromkeys(names.values(), tensor)
    if unknown:
        raise UnsupportedGgufError(
            f"{file} has tensors of {listed(sorted(unknown))} where this engine cannot compute "
            "with them",
            f"get the model as {', '.join(kind for kind in KNOWN if kind != 'F32')}",
        )
    return kinds, wanted
