"""The head that foresees tokens in a GGUF file, where this engine can compute with it.

A file without one, or with one of another form, is the same model, a little slower.
"""

from dataclasses import replace

from py_runtime.decoder.config import DecoderConfig
from py_runtime.decoder.family import GgufForm
from py_runtime.decoder.tensors import expected_shapes, weight_names
from py_runtime.gguf.config import heads_of, tensor_faults
from py_runtime.gguf.errors import listed, shown
from py_runtime.gguf.fused_tensors import split_fused
from py_runtime.gguf.names import gguf_names
from py_runtime.gguf.reader import GgufFile
from py_runtime.gguf.stored_weights import FLOATS, kind_of


def with_head(
    file: GgufFile, form: GgufForm, config: DecoderConfig
) -> tuple[DecoderConfig, str | None]:
    """Return the config with the file's head, or why the model goes without the head it has."""
    heads = heads_of(file)
    if not heads:
        return config, None
    if heads > 1:
        return config, f"there are {heads} of them, one behind the other"
    if config.sees:
        return config, "models that see images write token by token"
    foreseeing = replace(config, foresees=True)
    faults = _faults(split_fused(file, form, foreseeing), foreseeing, config)
    return (config, listed(faults)) if faults else (foreseeing, None)


def _faults(file: GgufFile, config: DecoderConfig, without: DecoderConfig) -> list[str]:
    names, shapes = gguf_names(config), expected_shapes(config)
    own = {name: names[name] for name in shapes.keys() - expected_shapes(without).keys()}
    faults = tensor_faults(file, {stored: shapes[name] for name, stored in own.items()})
    before = f"blk.{config.layers}."
    others = sorted(name for name in file.tensors if name.startswith(before))
    faults += [f"{shown(name)} is not known" for name in others if name not in own.values()]
    matrices = set(weight_names(config))
    for name, stored in own.items():
        if stored not in file.tensors:
            continue
        info = file.tensors[stored].info
        is_read = (
            kind_of(info.kind, info.dims[-1]) if name in matrices else info.kind.name in FLOATS
        )
        faults += [] if is_read else [f"{shown(stored)} is {info.kind.name}"]
    return faults
