"""Random blocks of every type: raw, as the engine stores them, and as the package gguf has them."""

from dataclasses import dataclass

import numpy as np
from gguf import GGMLQuantizationType, dequantize

from py_runtime.gguf.planes import HALVES_AT
from py_runtime.gguf.stored_weights import KNOWN, kind_of, parts_of_blocks
from py_runtime.gguf.tensor_types import BY_NAME, TensorType
from py_runtime.program.weight_kinds import BLOCK_KINDS, BlockKind

TYPES = tuple(name for name in KNOWN if name != "F32")


@dataclass(frozen=True)
class RandomWeight:
    """[rows, columns], of the size that products of it stay near 1."""

    stored: TensorType
    raw: np.ndarray  # u8 [rows, bytes]
    values: np.ndarray  # f32 [rows, columns]

    @property
    def kind(self) -> BlockKind:
        return BLOCK_KINDS[self.stored.name.lower()]

    def parts(self) -> dict[str, np.ndarray]:
        """Return the constants of an op that takes the weight."""
        rows, columns = self.values.shape
        planes = parts_of_blocks(self.stored, kind_of(self.stored, columns), self.raw.reshape(-1))
        weight = planes["weight"].view(self.kind.dtype.host)
        parts = {"weight": weight.reshape(self.kind.weight_dims(rows, columns))}
        if self.kind.has_scales:
            scales = planes["scales"].view(self.kind.scale_dtype.host)
            parts["scales"] = scales.reshape(self.kind.scale_dims(rows, columns))
        return parts


def random_weight(name: str, rows: int, columns: int, rng: np.random.Generator) -> RandomWeight:
    stored = BY_NAME[name]
    raw = random_blocks(name, rows * columns // stored.values, rng, 2.0 / np.sqrt(columns))
    values = dequantize(raw.reshape(rows, -1), GGMLQuantizationType[name])
    return RandomWeight(stored, raw.reshape(rows, -1), values.astype(np.float32))


def random_blocks(name: str, count: int, rng: np.random.Generator, size: float) -> np.ndarray:
    """u8 [count, bytes]: values of about this size, every small integer among them."""
    stored = BY_NAME[name]
    if name in ("F16", "BF16"):
        values = rng.normal(0, size, count).astype(np.float32)
        halves = values.astype(np.float16).view(np.uint16)
        upper = (values.view(np.uint32) >> 16).astype(np.uint16)
        return (halves if name == "F16" else upper).view(np.uint8).reshape(count, 2)
    raw = rng.integers(0, 256, (count, stored.nbytes), np.uint8)
    if name == "MXFP4":
        raw[:, 0] = 127 + np.floor(np.log2(size / 4)) + rng.integers(-1, 2, count)
        return raw
    largest = np.ones(count, np.float32)
    for place in HALVES_AT[name]:
        put_half(raw, place, largest)
    largest = np.abs(dequantize(raw.reshape(1, -1), GGMLQuantizationType[name])).max()
    for place in HALVES_AT[name]:
        put_half(raw, place, rng.uniform(0.5, 1.5, count) * 2 * size / largest)
    return raw


def put_half(raw: np.ndarray, place: int, values: np.ndarray) -> None:
    raw[:, place : place + 2] = values.astype(np.float16).reshape(-1, 1).view(np.uint8)
