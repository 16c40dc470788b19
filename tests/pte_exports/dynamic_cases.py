"""The toy models of ExecuTorch's dynamic-shape exporter, and what it calls their arrays.

The exporter writes NAME.pte and, for a call with S live rows, NAME.S<S>.<array>.bin with the
inputs and torch's answers, raw and little-endian.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

# The exporter's tolerances, absolute, by the kind of op.
ELEMENTWISE = 1e-3
Q4_LINEAR = 5e-3
BLOCKS_OF_64 = 5e-2
BLOCKS_OF_64_DOWN = 8e-2
ATTENTION = 2e-3
ATTENTION_OF_F16 = 1e-2  # torch's keys and values were rounded to half floats

IDS = "idx"  # the one array of integers
QKV = ("q", "k", "v")
CACHES = ("kc", "vc")


@dataclass(frozen=True)
class DynamicCase:
    name: str
    most: int  # rows the graph was built for
    live: tuple[int, ...]
    tolerance: float
    inputs: tuple[str, ...] = ("input",)
    outputs: tuple[str, ...] = ("golden",)  # the last ones; inputs that it changes come before
    first: tuple[tuple[str, int], ...] = ()  # calls that fill the caches, with their rows

    def calls(self) -> list[tuple[str, int]]:
        """Return the calls on one loaded graph: down to the smallest, and all the way back."""
        live = [(f"S{rows}", rows) for rows in (*self.live, *reversed(self.live))]
        return [*self.first, *live]

    def read(
        self,
        folder: Path,
        label: str,
        rows: int,
        arrays: Sequence[str],
        specs: list[dict[str, Any]],
    ) -> list[np.ndarray]:
        """Read the arrays of one call, in the shapes that the module's ends have."""
        stem = f"{self.name}.{label}"
        flat = [np.fromfile(folder / f"{stem}.{array}.bin", dtype(array)) for array in arrays]
        return [self._shaped(x, spec, rows) for x, spec in zip(flat, specs, strict=True)]

    def _shaped(self, flat: np.ndarray, spec: dict[str, Any], rows: int) -> np.ndarray:
        shape = list(spec["dims"])
        if not spec["dynamic"]:
            return flat.reshape(shape)
        # The rows come first where another dim is as large; where none is as large as the rows,
        # the array is one that holds a position as its width.
        place = shape.index(self.most) if self.most in shape else -1
        shape[place] = rows if self.most in shape else flat.size // prod(shape[:-1])
        return flat.reshape(shape)


def dtype(array: str) -> str:
    return "<i8" if array == IDS else "<f4"


def _rows_of_64(name: str, *live: int) -> DynamicCase:
    return DynamicCase(name, 128, live, ELEMENTWISE)


def _linear(name: str, tolerance: float = Q4_LINEAR) -> DynamicCase:
    return DynamicCase(name, 128, (128, 32, 1), tolerance)


def _blocks_of_64(suffix: str, *live: int, tolerance: float = BLOCKS_OF_64) -> DynamicCase:
    return DynamicCase(f"dyn_linear_bk64{suffix}", 512, live, tolerance)


def _qkv_of_64(suffix: str, *live: int, inputs: tuple[str, ...] = ("input",)) -> DynamicCase:
    return DynamicCase(f"dyn_qkv_bk64{suffix}", 512, live, BLOCKS_OF_64, inputs, QKV)


def _swiglu(
    suffix: str,
    *live: int,
    inputs: tuple[str, ...] = ("input",),
    outputs: tuple[str, ...] = ("golden",),
) -> DynamicCase:
    return DynamicCase(f"dyn_swiglu{suffix}", 512, live, Q4_LINEAR, inputs, outputs)


def _embedding(name: str) -> DynamicCase:
    return DynamicCase(name, 16, (16, 8, 1), ELEMENTWISE, (IDS,))


def _attention(name: str, most: int, *live: int) -> DynamicCase:
    return DynamicCase(name, most, live, ATTENTION, (*QKV, *CACHES))


def _attention_at_13(
    suffix: str,
    *live: int,
    tolerance: float = ATTENTION,
    first: tuple[tuple[str, int], ...] = (("prime", 12),),
) -> DynamicCase:
    """Make a case with caches inside the graph; rows 1 to 12 of them come from the call before."""
    inputs = (*QKV, "control")
    return DynamicCase(f"sdpa_k16_{suffix}", 512, live, tolerance, inputs, first=first)


CASES = [
    _rows_of_64("dyn_rms", 128, 64, 8, 1),
    _rows_of_64("dyn_rms_chain", 128, 16, 1),
    _rows_of_64("dyn_residual", 128, 32, 1),
    _rows_of_64("dyn_rmsmul", 128, 32, 1),
    _rows_of_64("dyn_sigmoid", 128, 32, 1),
    _rows_of_64("dyn_select", 128, 32, 1),
    DynamicCase("static_rms", 8, (8,), ELEMENTWISE),
    _linear("dyn_linear_fp32_vec4_bias", ELEMENTWISE),
    _linear("dyn_linear_fp32_vec4_no_bias", ELEMENTWISE),
    _linear("dyn_linear_fp32_tiled_bias", ELEMENTWISE),
    _linear("dyn_linear_fp32_tiled_no_bias", ELEMENTWISE),
    _linear("dyn_linear"),
    _linear("dyn_linear_shmem"),
    _linear("dyn_linear_tiled"),
    DynamicCase("static_linear_m1", 1, (1,), Q4_LINEAR),
    DynamicCase("static_linear_m32", 32, (32,), Q4_LINEAR),
    _blocks_of_64("", 512, 511, 508, 128, 127, 1),
    _blocks_of_64("_gate", 512, 508, 128),
    _blocks_of_64("_down", 512, 508, 128, tolerance=BLOCKS_OF_64_DOWN),
    _blocks_of_64("_group32", 128),
    _blocks_of_64("_bias", 128),
    _blocks_of_64("_kv_shape", 128),
    _qkv_of_64("", 512, 511, 508, 128, 127, 16, 2, 1),
    _qkv_of_64("_group32", 128),
    _qkv_of_64("_bias", 128),
    _qkv_of_64("_wrong_width", 128),
    _qkv_of_64("_different_input", 128, inputs=("input", "v_input")),
    DynamicCase("qkv_routes", 16, (16, 1), Q4_LINEAR, outputs=QKV),
    _attention("sdpa_dyn", 64, 64, 16, 1),
    _attention("sdpa_wide", 16, 16, 1),
    _attention("static_sdpa_s1", 1, 1),
    _attention("static_sdpa_s16", 16, 16),
    _attention_at_13("llama", 512, 508, 128, 127, 16, 1),
    _attention_at_13(
        "qwen3",
        *(128, 17, 1),
        tolerance=ATTENTION_OF_F16,
        first=(("initial", 17), ("prime", 12)),
    ),
    _attention_at_13("qwen3_near_scale", 128, 1, tolerance=ATTENTION_OF_F16),
    _attention_at_13("wrong_geometry", 128, 1),
    _attention_at_13("wrong_d", 128, 1),
    _attention_at_13("wrong_scale", 128, 1),
    DynamicCase("combined_routes", 64, (64, 16, 1), Q4_LINEAR, ("x", *QKV, *CACHES)),
    _embedding("emb_dyn"),
    _embedding("emb_dyn_linear"),
    _embedding("emb_dyn_nonlinear"),
    DynamicCase("rope_dyn", 16, (16, 8, 1), ELEMENTWISE, ("xq", "xk", "fc", "fs"), ("gq", "gk")),
    _swiglu("", 512, 128, 1),
    _swiglu("_inner_reversed", 128),
    _swiglu("_outer_reversed", 128),
    _swiglu("_extra_gate_consumer", 128),
    _swiglu("_extra_sigmoid_consumer", 128),
    _swiglu("_extra_silu_consumer", 128),
    _swiglu("_gate_graph_output", 128, outputs=("golden0", "golden1")),
    _swiglu("_sigmoid_graph_output", 128, outputs=("golden0", "golden1")),
    _swiglu("_silu_graph_output", 128, outputs=("golden0", "golden1")),
    _swiglu("_graph_outputs", 128, outputs=("golden0", "golden1", "golden2", "golden3")),
    _swiglu("_different_inputs", 128, inputs=("input", "up_input")),
    _swiglu("_interleaved_q4", 128),
    _swiglu("_qkv_overlap", 128, outputs=("golden0", "golden1")),
]
