"""Every type's values, bit for bit those of the package `gguf`."""

import numpy as np
import pytest
from gguf import GGMLQuantizationType, dequantize

from py_runtime.gguf.dequantise import DEQUANTISERS, dequantise
from py_runtime.gguf.tensor_types import BY_NAME

ISSUE = "F32 F16 BF16 Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q2_K Q3_K Q4_K Q5_K Q6_K IQ4_NL IQ4_XS MXFP4"
BLOCKS = 97  # prime: what is grouped wrongly does not come out even
HALVES = {  # where the float16 of a block lie
    "F16": [0],
    "Q4_0": [0],
    "Q4_1": [0, 2],
    "Q5_0": [0],
    "Q5_1": [0, 2],
    "Q8_0": [0],
    "Q2_K": [80, 82],
    "Q3_K": [108],
    "Q4_K": [0, 2],
    "Q5_K": [0, 2],
    "Q6_K": [208],
    "IQ4_NL": [0],
    "IQ4_XS": [0],
}


def test_these_are_the_types() -> None:
    assert list(DEQUANTISERS) == ISSUE.split()


@pytest.mark.parametrize("name", DEQUANTISERS)
def test_bit_for_bit(name: str) -> None:
    kind = BY_NAME[name]
    rng = np.random.default_rng(kind.number)
    raw = rng.integers(0, 256, (BLOCKS, kind.nbytes), np.uint8)
    raw[0], raw[1] = 0, 255  # each small integer at its ends
    scales = (rng.normal(0, 1, BLOCKS) * 2.0 ** rng.integers(-20, 10, BLOCKS)).astype(np.float16)
    scales[2:5] = np.float16(6e-8), np.float16(-65504), np.float16(-0.0)  # subnormal, largest
    for place in HALVES.get(name, ()):
        raw[:, place : place + 2] = scales[:, None].view(np.uint8)
        scales = scales[::-1].copy()
    if name == "MXFP4":
        raw[:, 0] = np.linspace(0, 250, BLOCKS)  # powers of two, subnormal ones too
    if name in ("F32", "BF16"):
        raw[1] = 0x7F  # finite
    flat = raw.reshape(-1)
    wanted = dequantize(flat, GGMLQuantizationType[name])
    got = dequantise(kind, flat.tobytes())
    assert got.dtype == np.float32
    assert got.size == BLOCKS * kind.values
    np.testing.assert_array_equal(got.view(np.uint32), wanted.reshape(-1).view(np.uint32))
