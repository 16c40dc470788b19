"""Floats as integers of 8 bits, with one scale and one zero point for all of them, and back.

The ops are quantized_decomposed.quantize_per_tensor and dequantize_per_tensor.
"""

import numpy as np

from py_runtime.base.dtypes import F32, I8, U8, DType
from py_runtime.base.shapes import ceil_div, numel
from py_runtime.gpu.shader_figures import figures_of
from py_runtime.live.values import LiveTensor
from py_runtime.ops.registry import Op, register

RANGES = {I8: (-128, 127), U8: (0, 255)}
BYTES_OF_WORD = figures_of("elementwise/quantise")["BYTES"]
SMALLEST = float(np.finfo(np.float32).tiny)
QUANTISATION = "scale zero_point quant_min quant_max dtype"


class PerTensor(Op):
    """The dtypes of the tensors decide; the argument `dtype` is not read."""

    x: LiveTensor
    out: LiveTensor

    def take_quantisation(self, dtype: DType) -> None:
        """Take and check the scale, the zero point and the range of values."""
        self.require(
            self.x.rank == self.out.rank,
            f"the output has rank {self.out.rank}; it must be {self.x.rank}",
        )
        self.scale, self.zero_point = self.number("scale"), self.integer("zero_point")
        self.least, self.most = self.integer("quant_min"), self.integer("quant_max")
        # Both the scale and its reciprocal must be floats that no GPU takes for zero.
        self.require(
            SMALLEST <= self.scale <= 1 / SMALLEST,
            f"the scale {self.scale} is not a positive number that float32 can divide by",
        )
        lowest, highest = RANGES[dtype]
        self.require(
            lowest <= self.least <= self.most <= highest,
            f"values from {self.least} to {self.most} are not a range of {dtype.name}",
        )


@register("quantized_decomposed.quantize_per_tensor.default", args=f"x {QUANTISATION} out")
class QuantisePerTensor(PerTensor):
    """x: f32, any shape; out: i8 or u8, the same shape."""

    def build(self) -> None:
        self.x = self.tensor("x", F32)
        self.out = self.tensor("out", I8, U8)
        self.take_quantisation(self.out.dtype)
        self.quantise = self.launch(
            "elementwise/quantise", bind={"x": self.x, "quantised": self.out}
        )

    def live(self) -> None:
        self.out.resize(self.x.dims)
        count = numel(self.x.dims)
        self.quantise.for_each(
            ceil_div(count, BYTES_OF_WORD),
            count=count,
            inverse_scale=1 / self.scale,  # by the reciprocal, as torch rounds
            zero_point=float(self.zero_point),
            quant_min=float(self.least),
            quant_max=float(self.most),
        )


@register(
    "quantized_decomposed.dequantize_per_tensor.default", args=f"x {QUANTISATION} out_dtype out"
)
class DequantisePerTensor(PerTensor):
    """x: i8 or u8, any shape; out: f32, the same shape."""

    def build(self) -> None:
        self.x = self.tensor("x", I8, U8)
        self.out = self.tensor("out", F32)
        self.take_quantisation(self.x.dtype)
        self.dequantise = self.launch(
            "elementwise/dequantise",
            bind={"quantised": self.x, "out": self.out},
            constants={"IS_SIGNED": float(self.x.dtype is I8)},
        )

    def live(self) -> None:
        self.out.resize(self.x.dims)
        count = numel(self.x.dims)
        zero_point = float(self.zero_point)
        self.dequantise.for_each(count, count=count, scale=self.scale, zero_point=zero_point)
