"""Ops that are built alike repeat what one of them does: never anything else than each would do."""

import random
from pathlib import Path

import numpy as np
import pytest

from py_runtime.base.dtypes import F32, I64
from py_runtime.base.errors import InputError
from py_runtime.gpu import Device
from py_runtime.gpu.kernel_target import PORTABLE, KernelTarget
from py_runtime.graph.builder import Builder, LaunchSpec
from py_runtime.graph.resize import LiveGraph
from py_runtime.passes import DEFAULT_PASSES, run_passes
from py_runtime.program import Program
from py_runtime.program.json_format import load_program
from py_runtime.program.writer import ProgramWriter
from tests.graph.engine_graphs import WIDTH, load, rows, run
from tests.runners import NativeRunner

WIDE = KernelTarget(wide=True, lanes=32, storage_buffers=10, kv="f16")


@pytest.fixture(scope="module")
def device(native: NativeRunner) -> Device:
    return native.device


class Planned:
    """A graph's live side, without a GPU."""

    def __init__(
        self, program: Program, device: Device, target: KernelTarget, passes: bool
    ) -> None:
        fused = run_passes(program, target, DEFAULT_PASSES if passes else ())
        self.builder = Builder(fused, device.limits, target)
        self.builder.build_ops()
        self.counts = np.zeros((len(self.builder.steps), 3), np.uint32)
        for row, step in zip(self.counts, self.builder.steps, strict=True):
            (step.launch if isinstance(step, LaunchSpec) else step).row = row.data
        self.live = LiveGraph(self.builder, self.counts)
        self.live.settle()

    def call(self, tokens: int, position: int) -> str:
        """Return what was wrong with the call."""
        try:
            self.live.resize([np.zeros((1, tokens), np.int64), np.array([position])])
        except InputError as error:
            return str(error)
        return ""

    def state(self) -> list[object]:
        dims = [tensor.dims for tensor in self.builder.tensors.values()]
        scalars = [symint.value for symint in self.builder.symints.values()]
        return [dims, scalars, self.counts.tolist(), self.builder.arena.mirror.tolist()]


@pytest.mark.parametrize("target", [PORTABLE, WIDE], ids=["portable", "wide"])
@pytest.mark.parametrize("passes", [True, False], ids=["fused", "as exported"])
def test_a_decoder_with_repeated_ops_plans_as_one_without(
    toy_model: Path, device: Device, target: KernelTarget, passes: bool
) -> None:
    program = load_program((toy_model / "graph.json").read_bytes())
    repeating = Planned(program, device, target, passes)
    assert (
        sum(op is not None for op in repeating.live.repeated_ops) > len(repeating.builder.ops) // 2
    )
    alone = Planned(program, device, target, passes)
    alone.live.repeated_ops = [None] * len(alone.builder.ops)
    most = repeating.builder.tensors[program.inputs[0].value].max_dims[1]
    draw, refused = random.Random(0), 0
    for _ in range(60):
        tokens = draw.choice([1, 1, draw.randint(1, most), most])
        position = draw.choice([0, draw.randint(0, 2 * most)])
        fault = repeating.call(tokens, position)
        assert alone.call(tokens, position) == fault
        assert repeating.state() == alone.state(), (tokens, position)
        refused += bool(fault)
    assert 0 < refused < 50, "some calls go beyond the cache, and leave everything as it was"


def test_alike_but_for(device: Device) -> None:
    """A live shape of their own, a fixed argument, a largest shape, a tensor that comes twice."""
    writer = ProgramWriter()
    x = writer.input("x", (1, 16, WIDTH), F32, dynamic=(1,))
    y = writer.input("y", (1, 16, WIDTH), F32, dynamic=(1,))
    z = writer.input("z", (1, 9, WIDTH), F32, dynamic=(1,))
    ids = writer.input("ids", (1, 16), I64, dynamic=(1,))
    calls = [(x, x, 1), (y, y, 1), (z, z, 1), (x, x, 3), (y, y, 3), (x, y, 1), (ids, ids, 1)]
    for a, b, alpha in calls:
        of = {z: ((1, 9, WIDTH), F32), ids: ((1, 16), I64)}.get(a, ((1, 16, WIDTH), F32))
        out = writer.tensor(*of)
        writer.op("aten.add.Tensor", a, b, alpha, out)
        writer.output(out)
    graph = load(device, writer)
    assert sum(op is not None for op in graph._live.repeated_ops) == 4
    for sizes in ((5, 5, 5), (2, 1, 9), (1, 16, 1), (16, 1, 3), (5, 5, 5)):
        given = [rows(size, seed=size) for size in sizes]
        numbers = np.arange(sizes[0])[None]
        by_ref = dict(zip((x, y, z, ids), (*given, numbers), strict=True))
        found = run(graph, *given, numbers)
        for (a, b, alpha), answer in zip(calls, found, strict=True):
            np.testing.assert_allclose(answer, by_ref[a] + alpha * by_ref[b], rtol=1e-6)
    graph.unload()
