"""Experts of gpt-oss checkpoints: all of a layer in one tensor, rows of gate and up in turns.

They are floats, or MXFP4 blocks, which are taken as they are.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from export.quantisers import Parts
from py_runtime.decoder.tensors import WeightKind, weight_parts
from py_runtime.gguf.plane_values import dense
from py_runtime.gguf.stored_weights import parts_of_blocks
from py_runtime.gguf.tensor_types import BY_NAME

BOTH = {"gate_proj": 0, "up_proj": 1}  # whose rows take turns
MXFP4 = WeightKind("mxfp4")
BLOCK_BYTES = 16  # of 32 columns


class InterleavedExperts:
    """The experts by the decoder's names: layers.0.mlp.experts.up_proj.weight."""

    def __init__(self, files: Mapping[str, Any], stored_name: Callable[[str], str]) -> None:
        self._files = files  # tensor → the file that has it
        self._stored_name = stored_name

    def shape(self, name: str) -> tuple[int, ...] | None:
        stored, part = self._place(name)
        halves = 1 if part is None else 2
        if self.has_blocks(name):
            experts, rows, groups, _ = self._slice(f"{stored}_blocks").get_shape()
            return (experts * rows // halves, groups * 2 * BLOCK_BYTES)
        if stored not in self._files:
            return None
        experts, *columns, rows = self._slice(stored).get_shape()
        return (experts * rows // halves, *columns)

    def dense(self, name: str) -> np.ndarray:
        """Floats are stored as [experts, columns, rows], biases as [experts, rows]."""
        if self.has_blocks(name):
            parts = self.parts(name)
            return dense(MXFP4.name, parts["weight"], parts["scales"])
        stored, part = self._place(name)
        array: np.ndarray = self._files[stored].get_tensor(stored).float().numpy()
        array = array if part is None else array[..., part::2]
        rows_first = array.swapaxes(1, 2) if array.ndim == 3 else array
        return np.ascontiguousarray(rows_first).reshape(-1, *rows_first.shape[2:])

    def has_blocks(self, name: str) -> bool:
        return f"{self._place(name)[0]}_blocks" in self._files

    def parts(self, name: str) -> Parts:
        """Blocks as kernels read them: [experts, rows, groups, 16] in bytes of two neighbours."""
        stored, part = self._place(name)
        rows = slice(None) if part is None else slice(part, None, 2)
        pairs = self._bytes(f"{stored}_blocks")[:, rows]
        scales = self._bytes(f"{stored}_scales")[:, rows]
        columns = np.stack((pairs & 15, pairs >> 4), -1).reshape(*pairs.shape[:3], 2, BLOCK_BYTES)
        halves = columns[..., 0, :] | columns[..., 1, :] << 4  # as GGUF files have them
        blocks = np.concatenate((scales[..., None], halves), -1)
        experts, count, groups = scales.shape
        declared = weight_parts(MXFP4, experts * count, groups * 2 * BLOCK_BYTES)
        found = parts_of_blocks(BY_NAME["MXFP4"], MXFP4, blocks.reshape(-1))
        return {
            own: found[own].view(dtype.host).reshape(dims)
            for own, (dims, dtype) in declared.items()
        }

    def _place(self, name: str) -> tuple[str, int | None]:
        """Return the tensor that holds it, and which of the two that take turns there it is."""
        owner, _, part = name.rpartition(".")
        path, _, own = owner.rpartition(".")
        whole = "gate_up_proj" if own in BOTH else own
        ending = "_bias" if part == "bias" else ""
        stored = f"{path}.{whole}{ending}"
        blocks = self._stored_name(f"{stored}_blocks")
        is_found = blocks in self._files
        found = blocks.removesuffix("_blocks") if is_found else self._stored_name(stored)
        return found, BOTH.get(own)

    def _slice(self, stored: str) -> Any:
        return self._files[stored].get_slice(stored)

    def _bytes(self, stored: str) -> np.ndarray:
        array: np.ndarray = self._files[stored].get_tensor(stored).numpy()
        return array
