"""The kernels of GPUs that people are likely to have, on a software adapter that poses as each."""

from pathlib import Path

import numpy as np
import pytest

from py_runtime.base.dtypes import F32
from py_runtime.gpu.kernel_target import BYTES, FLOATS
from py_runtime.model import Model
from py_runtime.model.verify import verify
from py_runtime.program import Program
from py_runtime.program.weight_kinds import BLOCK_KINDS
from py_runtime.program.writer import ProgramWriter
from tests.graph.likely_gpus import (
    BETWEEN,
    LIKELY_GPUS,
    PAGE,
    LikelyGpu,
    kernels_of,
    posing_as,
    table,
)
from tests.runners import NativeRunner, wait

by_name = pytest.mark.parametrize("gpu", LIKELY_GPUS, ids=lambda gpu: gpu.name)
# They have each feature, limit and arithmetic with and without another; the toy binds little.
UNLIKE = (
    "AMD RDNA",
    "Apple M1 to M4, Safari before 26",
    "NVIDIA, Pascal",
    "Mali, Valhall and later",
    "the least that WebGPU allows",
)


def small_program() -> Program:
    """Return two products with weights in blocks, as a model has them."""
    kind, rows, columns = BLOCK_KINDS["q8_0"], 512, 256
    writer = ProgramWriter()
    x = writer.input("x", (4, columns), F32, dynamic=(0,))
    for at in range(2):
        weight = np.zeros(kind.weight_dims(rows, columns), kind.dtype.host)
        scales = np.zeros(kind.scale_dims(rows, columns), kind.scale_dtype.host)
        out = writer.tensor((4, rows), F32)
        parts = writer.constant(f"weight {at}", weight), writer.constant(f"scales {at}", scales)
        writer.op(kind.linear, x, *parts, None, out)
        writer.output(out)
    return writer.program()


@by_name
def test_a_gpu_gets_kernels_that_suit_it(gpu: LikelyGpu, native: NativeRunner) -> None:
    target = kernels_of(gpu, native.device, small_program())
    assert target.wide, "a graphics card is not taken for software"
    assert target.lanes == (gpu.lanes[0] if gpu.lanes else 1)
    assert target.kv == ("f16" if gpu.has_halves else "f32")
    by = BYTES if gpu.has_byte_products else FLOATS
    assert (target.one_token, target.many_tokens) == (by, by)


@pytest.mark.thorough
@pytest.mark.parametrize("name", UNLIKE)
def test_its_tokens_are_torchs(name: str, native: NativeRunner, toy_model: Path) -> None:
    (gpu,) = (each for each in LIKELY_GPUS if each.name == name)
    lanes = native.device.adapter.subgroup_min_size if gpu.lanes else None
    with posing_as(gpu, native.device, lanes) as device:
        model = wait(Model.load(device, str(toy_model)))
        try:
            assert model.kernels.target.wide
            report = wait(verify(model))
            assert report.ok, report.summary
        finally:
            model.unload()


def test_the_documents_table_is_this_one(native: NativeRunner) -> None:
    written = BETWEEN.search(PAGE.read_text())
    assert written is not None
    assert written[0] == table(native.device, small_program()), "python -m tests.graph.likely_gpus"
