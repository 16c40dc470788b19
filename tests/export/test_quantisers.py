"""Scale search against plain absmax, and the packing of every kind."""

import numpy as np
import pytest

from export.errors import ExportError
from export.quantisers import quantise
from export.reference import dequantise
from py_runtime.decoder.tensors import WeightKind, weight_parts

pytestmark = pytest.mark.torch

KINDS = [WeightKind("q4gsw", size) for size in (32, 64, 128)]
KINDS += [WeightKind(name) for name in ("q4_1", "q8_0", "f32")]


def bell_curves(rows: int, columns: int) -> np.ndarray:
    return np.random.default_rng(rows).standard_normal((rows, columns)).astype(np.float32)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind.name}-{kind.group_size}")
def test_parts_are_as_the_decoder_declares_them(kind: WeightKind) -> None:
    dense = bell_curves(37, 256)
    parts = quantise(kind, dense, "w")
    declared = weight_parts(kind, 37, 256)
    assert {name: part.shape for name, part in parts.items()} == {
        name: dims for name, (dims, _) in declared.items()
    }
    for name, (_, dtype) in declared.items():
        assert parts[name].dtype == dtype.host
    error = np.abs(dequantise(kind, parts, 37) - dense).max()
    assert error <= {"f32": 0, "q8_0": 0.03, "q4_1": 0.5, "q4gsw": 1.0}[kind.name]


@pytest.mark.parametrize("size", [32, 64, 128])
def test_the_scale_search_beats_absmax(size: int) -> None:
    dense = bell_curves(64, 512)
    groups = dense.reshape(64, -1, size)
    absmax = np.abs(groups).max(-1, keepdims=True) / 7
    plain = np.clip(np.rint(groups / absmax), -8, 7) * absmax
    plain_error = ((plain - groups) ** 2).mean()
    kind = WeightKind("q4gsw", size)
    found = dequantise(kind, quantise(kind, dense, "w"), 64)
    assert ((found - dense) ** 2).mean() < 0.9 * plain_error


def test_minima_beat_symmetry_on_lopsided_weights() -> None:
    dense = bell_curves(16, 128) + 3
    errors = {}
    for kind in (WeightKind("q4gsw"), WeightKind("q4_1")):
        found = dequantise(kind, quantise(kind, dense, "w"), 16)
        errors[kind.name] = float(((found - dense) ** 2).mean())
    assert errors["q4_1"] < 0.5 * errors["q4gsw"]


@pytest.mark.parametrize("kind", KINDS[:-1], ids=lambda kind: f"{kind.name}-{kind.group_size}")
def test_zeros_and_constants_survive(kind: WeightKind) -> None:
    zeros = np.zeros((4, 128), np.float32)
    np.testing.assert_array_equal(dequantise(kind, quantise(kind, zeros, "w"), 4), zeros)
    halves = np.full((4, 128), 0.5, np.float32)
    np.testing.assert_allclose(dequantise(kind, quantise(kind, halves, "w"), 4), halves, rtol=0.01)


def test_columns_that_do_not_divide_are_named() -> None:
    with pytest.raises(ExportError) as caught:
        quantise(WeightKind("q4gsw", 64), bell_curves(4, 96), "layers.0.mlp.up_proj.weight")
    assert str(caught.value) == (
        "'layers.0.mlp.up_proj.weight' has 96 columns, which is not a multiple of the group size "
        "64; choose another --group-size or --quant"
    )
