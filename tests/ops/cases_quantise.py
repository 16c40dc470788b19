"""Floats as integers of 8 bits and back, with one scale: torch's own rounding, bit for bit."""

from collections.abc import Iterator

import torch
from torch.ao.quantization.fx import _decomposed

from tests.golden import EXACT, Case
from tests.ops.op_cases import Row, case_of

# Of 35, 6, 1 and 60 elements: most leave a last word half empty.
SHAPES = [(5, 7), (2, 3), (1, 1), (5, 12), (5, 7)]
# dtype, scale, zero point, least, most. By the reciprocal 0.1 rounds otherwise than by itself.
QUANTISATIONS = (
    (torch.int8, 0.1, 3, -128, 127),
    (torch.int8, 0.5, -128, -9, 100),
    (torch.uint8, 0.0371, 128, 0, 255),
    (torch.uint8, 2.5e-30, 0, 1, 254),
)
EXTREMES = [float("inf"), -float("inf"), float("nan"), 3e38, -3e38, 0.0, -0.0, 1e-45]


def quantise(dtype: torch.dtype, *how: float) -> Row:
    return Row(
        "quantized_decomposed.quantize_per_tensor.default",
        lambda x: [x, *how, 1],
        lambda x: _decomposed.quantize_per_tensor(x.float(), *how, dtype),
    )


def dequantise(dtype: torch.dtype, *how: float) -> Row:
    return Row(
        "quantized_decomposed.dequantize_per_tensor.default",
        lambda x: [x, *how, 1, None],
        lambda x: _decomposed.dequantize_per_tensor(x, *how, dtype),
    )


def halves(shape: tuple[int, ...]) -> torch.Tensor:
    """Multiples of 0.05: every second one lies between two integers at the scales above."""
    return torch.randint(-300, 300, shape).float() * torch.tensor(0.05)


def cases() -> Iterator[Case]:
    rows = [quantise(*quantisation) for quantisation in QUANTISATIONS]
    yield case_of("quantize_per_tensor", rows, [[halves(shape)] for shape in SHAPES], EXACT)
    extremes = torch.tensor(EXTREMES)
    yield case_of("quantize_per_tensor of extremes", rows, [[extremes]], EXACT)
    for dtype in (torch.int8, torch.uint8):
        rows = [dequantise(*each) for each in QUANTISATIONS if each[0] == dtype]
        ends = torch.iinfo(dtype)
        calls = [[torch.randint(ends.min, ends.max + 1, shape, dtype=dtype)] for shape in SHAPES]
        name = str(dtype).removeprefix("torch.")
        yield case_of(f"dequantize_per_tensor of {name}", rows, calls, EXACT)
        every = torch.arange(ends.min, ends.max + 1).to(dtype).reshape(2, 2, 64)
        yield case_of(f"dequantize_per_tensor of every {name}", rows, [[every]], EXACT)
