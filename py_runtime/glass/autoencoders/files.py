"""An autoencoder's files, wherever they lie: a folder, its two files, or their bytes."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from py_runtime.adapters.files import Files, MemorySource
from py_runtime.base.messages import message
from py_runtime.glass.autoencoders.errors import AutoencoderError
from py_runtime.glass.autoencoders.npz import NPZ
from py_runtime.weights.open_source import open_source

SAFETENSORS = ".safetensors"
WEIGHTS = (SAFETENSORS, NPZ)
CONFIGS = ("cfg.json", "config.json")
MAX_CONFIG_BYTES = 1 << 20
BESIDE = ("sparsity", "feature_sparsity", "examples")  # other tensors of such folders
PLAIN_NAMES = ("sae", "sae_weights", "params", "ae", "autoencoder", "model")


def files_of(where: Any) -> Files:
    """Return files by name, from a path, the bytes of a safetensors file, or files by name."""
    if isinstance(where, bytes | bytearray):
        where = {f"autoencoder{SAFETENSORS}": where}
    if isinstance(where, Mapping):
        return {
            name: MemorySource(name, bytes(each)) if isinstance(each, bytes | bytearray) else each
            for name, each in where.items()
        }
    path = Path(str(where))
    folder = path if path.is_dir() else path.parent
    inside = sorted(each for ending in WEIGHTS for each in path.glob(f"*{ending}"))
    found = inside if path.is_dir() else [path]
    found = [each for each in found if each.stem not in BESIDE]
    beside = [folder / name for name in CONFIGS if (folder / name).is_file()]
    return {each.name: open_source(each) for each in (*found, *beside)}


def name_of(where: Any, files: Files) -> str:
    """Return a name for people: the file's own, or its folder's where all files have the same."""
    stem = Path(next((name for name in files if name.endswith(WEIGHTS)), "")).name
    for ending in WEIGHTS:
        stem = stem.removesuffix(ending)
    if isinstance(where, str | Path):
        path = Path(where)
        folder = path.name if path.is_dir() else path.parent.name
        return folder if stem in PLAIN_NAMES and folder else stem
    return stem


async def weights_and_config(files: Files) -> tuple[Any, bytes | None, str]:
    """Return the source of the tensors, the configuration's bytes and its name."""
    weights = [
        source
        for name, source in files.items()
        if name.endswith(WEIGHTS) and Path(name).stem not in BESIDE
    ]
    if len(weights) != 1:
        given = ", ".join(files) or "nothing"
        raise AutoencoderError(message("autoencoder_files", files=given))
    config = next((name for name in CONFIGS if name in files), None)
    if config is None:
        return weights[0], None, ""
    size = await files[config].size()
    if size > MAX_CONFIG_BYTES:
        fault = f"{config}: {size} > {MAX_CONFIG_BYTES}"
        raise AutoencoderError(message("autoencoder_damaged", fault=fault))
    return weights[0], await files[config].read(0, size), config
