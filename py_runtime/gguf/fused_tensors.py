"""Tensors that GGUF files store otherwise than the decoder has them.

Some hold several of the decoder's, one after the other, told apart by their rows. Those of experts
are one matrix to the decoder. Others have a name that only one family uses.
"""

import re
from collections.abc import Mapping
from dataclasses import replace

from py_runtime.base.shapes import Dims, numel
from py_runtime.decoder.config import DecoderConfig
from py_runtime.decoder.family import GgufForm
from py_runtime.decoder.tensors import EXPERTS, expected_shapes
from py_runtime.gguf.names import OF_ITS_OWN_KEYS, gguf_names, gguf_owner
from py_runtime.gguf.reader import GgufFile, StoredTensor

FLAT = tuple(f".mamba.{name}.weight" for name in ("decay", "skip", "norm"))
LAYER_NUMBER = re.compile(r"blk\.(\d{1,6})\.")


def split_fused(file: GgufFile, form: GgufForm, config: DecoderConfig) -> GgufFile:
    """Return the file with each of the decoder's tensors as a tensor of its own.

    Rows lie together, so none moves. The gates of attention are an exception: each head's lie
    behind its queries. There both tensors are all of the stored one, of which they take every other
    run of rows.

    A fused tensor of other rows than the config demands stays as it is, to be reported later.
    """
    tensors = _tensors_of_decoder(file, form, config)
    names, shapes = gguf_names(config), expected_shapes(config)
    experts = config.mlp.experts
    for name, own in names.items():
        if experts and f".{EXPERTS}." in name and (stored := tensors.get(own)):
            tensors[own] = _experts_as_matrix(stored, experts.count, shapes[name])
        if name.endswith(FLAT) and (stored := tensors.get(own)):
            tensors[own] = _flat(stored, shapes[name])
    for number in config.with_head:
        for fused, held in form.fused.items():
            whole = file.tensors.get(f"blk.{number}.{fused}.weight")
            parts = [f"layers.{number}.{inner}.weight" for inner in held]
            dims = [shapes[part] for part in parts]
            if whole is None or whole.info.dims != (sum(rows for rows, _ in dims), dims[0][1]):
                continue
            del tensors[whole.info.name]
            first = 0
            for part, (rows, _) in zip(parts, dims, strict=True):
                tensors[names[part]] = rows_of(whole, first, rows)
                first += rows
        queries, gates = (f"layers.{number}.self_attn.{part}_proj.weight" for part in "qg")
        both = file.tensors.get(f"blk.{number}.attn_q.weight")
        if both is not None and gates in names and both.info.dims == _twice(shapes[queries]):
            half = replace(both.info, dims=shapes[queries])
            tensors[names[queries]] = replace(both, info=half)
            tensors[names[gates]] = replace(both, info=replace(half, name=f"{half.name}, gates"))
    return replace(file, tensors=tensors)


def _tensors_of_decoder(
    file: GgufFile, form: GgufForm, config: DecoderConfig
) -> dict[str, StoredTensor]:
    """Return those that the decoder reads, each by its usual name."""
    unread = {
        f"blk.{number}.{inner}.weight"
        for number in range(config.layers)
        for inner in OF_ITS_OWN_KEYS
        if config.layer_kind(number).shares is not None
    }
    tensors = {
        name: tensor
        for name, tensor in file.tensors.items()
        if not (form.predicts_ahead and _layer(name) not in (-1, *config.with_head))
        and name not in unread
    }
    for name in list(tensors):
        if name.rpartition(".")[2] in form.without_end:
            tensors[f"{name}.weight"] = tensors.pop(name)
    usual_owners = {own: gguf_owner(name, config) for name, own in form.tensors.items()}
    for name in list(tensors):
        usual = _usual_name(name, usual_owners)
        if usual not in tensors:
            tensors[usual] = tensors.pop(name)
    return tensors


def _flat(stored: StoredTensor, wanted: Dims) -> StoredTensor:
    """Turn [heads, 1] or [groups, columns] into one dim, where it has so many numbers."""
    if numel(stored.info.dims) != numel(wanted):
        return stored
    return replace(stored, info=replace(stored.info, dims=wanted))


def _experts_as_matrix(stored: StoredTensor, experts: int, wanted: Dims) -> StoredTensor:
    """Turn [experts, rows, ...] into [experts * rows, ...], where it has so many of them."""
    count, *inner = stored.info.dims
    if count != experts or len(inner) != len(wanted):
        return stored
    return replace(stored, info=replace(stored.info, dims=(count * inner[0], *inner[1:])))


def _layer(name: str) -> int:
    """Return the number of its layer; -1: it is of none."""
    match = LAYER_NUMBER.match(name)
    return int(match[1]) if match else -1


def _twice(dims: Dims) -> Dims:
    return (2 * dims[0], *dims[1:])


def _usual_name(name: str, usual_owners: Mapping[str, str]) -> str:
    """Return the name that other families have for a tensor.

    The names differ in the part before the last: in blk.0.post_attention_norm.weight, it is
    post_attention_norm.
    """
    *before, owner, part = ["", *name.split(".")]
    return ".".join([*before, usual_owners.get(owner, owner), part]).removeprefix(".")


def rows_of(whole: StoredTensor, first: int, rows: int) -> StoredTensor:
    """Return some of a tensor's rows as a tensor of their own."""
    info = whole.info
    row_bytes = info.nbytes // info.dims[0]
    part = replace(
        info,
        name=f"{info.name}, rows {first} to {first + rows - 1}",
        dims=(rows, *info.dims[1:]),
        offset=info.offset + first * row_bytes,
        nbytes=rows * row_bytes,
    )
    return replace(whole, info=part)
