"""Sparse autoencoders: a safetensors file of each layout, with its configuration; .npz files."""

import io
from random import Random
from typing import Any

import numpy as np

from py_runtime.glass.autoencoders.autoencoder import load_autoencoder
from tests.fuzz.damage import damage_bytes
from tests.fuzz.driver import Target
from tests.fuzz.in_line import result_of
from tests.glass.written_autoencoders import LAYOUTS, NAME, autoencoder_files, random_tensors

WIDTH, FEATURES = 4, 8
APART = b"\n\0\n"  # between the configuration and the tensors
HEADER = 700  # bytes of these files that come before their data, nearly


def two_files() -> list[bytes]:
    made = [autoencoder_files(layout, WIDTH, FEATURES) for layout in LAYOUTS]
    return [files.get("cfg.json", b"") + APART + files[NAME] for files in made]


def change(rng: Random, base: bytes) -> bytes:
    if rng.random() < 0.2:
        return damage_bytes(rng, base)
    return damage_bytes(rng, base[:HEADER]) + base[HEADER:]


def npz_files() -> list[bytes]:
    tensors: dict[str, Any] = dict(random_tensors("gemma scope", WIDTH, FEATURES))
    plain = io.BytesIO()
    np.savez(plain, **tensors)
    return [plain.getvalue()]


def change_npz(rng: Random, base: bytes) -> bytes:
    """Damage a file, or one with the same tensors compressed, which is refused as it is."""
    if rng.random() < 0.2:
        packed = io.BytesIO()
        np.savez_compressed(packed, **np.load(io.BytesIO(base)))
        base = packed.getvalue()
    return damage_bytes(rng, base)


def read_npz(data: bytes) -> None:
    compute({"params.npz": data})


def read_and_compute(data: bytes) -> None:
    config, _, weights = data.partition(APART)
    compute({NAME: weights, **({"cfg.json": config} if config else {})})


def compute(files: dict[str, bytes]) -> None:
    found = result_of(load_autoencoder(files))
    x = np.ones((2, found.width), np.float32)
    result_of(found.decode(result_of(found.encode(x)), x))
    result_of(found.direction(0))


TARGETS = [
    Target("sparse autoencoder", two_files, change, read_and_compute, count=750),
    Target("sparse autoencoder, npz", npz_files, change_npz, read_npz, count=500),
]
