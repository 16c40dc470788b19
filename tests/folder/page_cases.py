"""A model folder read from bytes, and its graph run: the same code natively and in the page."""

from typing import Any

import numpy as np

from py_runtime.folder.layout import combine_model
from py_runtime.folder.manifest import parse_manifest
from py_runtime.folder.safetensors_header import header_end, parse_safetensors_header
from py_runtime.gpu import Device
from py_runtime.graph import Graph


async def run_from_bytes(device: Device, files: dict[str, np.ndarray], x: np.ndarray) -> Any:
    """Ranges of the files go straight into arrays, as they would into buffers."""
    manifest = parse_manifest(files["manifest.json"].tobytes())
    headers = {}
    for name in manifest.weights:
        end = header_end(name, files[name][:8].tobytes(), len(files[name]))
        start = files[name][:end].tobytes()
        headers[name] = parse_safetensors_header(name, start, len(files[name]))
    model = combine_model(manifest, files[manifest.graph].tobytes(), headers)
    constants = {}
    for name, place in model.tensors.items():
        pieces = [files[p.file][p.offset : p.offset + p.nbytes] for p in place.pieces]
        constants[name] = np.concatenate(pieces).view(place.dtype.host).reshape(place.dims)
    graph = await Graph.load(device, model.program, constants)
    (out,) = await graph.run([x])
    graph.unload()
    return out
