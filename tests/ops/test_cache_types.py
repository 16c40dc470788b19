"""Caches of halves and blocks: attention over them, which caches become them, what that saves."""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from py_runtime.base.cached_blocks import as_held, held_values
from py_runtime.base.dtypes import CACHE_DTYPES, F16, F32
from py_runtime.gpu import Device
from py_runtime.gpu.kernel_target import PORTABLE_KERNELS, KernelTarget
from py_runtime.graph.buffers import GUARANTEED_LIMITS, plan_buffers
from py_runtime.graph.builder import Builder
from py_runtime.model import Model
from py_runtime.model.verify import VerifyReport, verify
from py_runtime.passes import DEFAULT_PASSES, run_passes, type_caches
from py_runtime.program import TensorValue
from py_runtime.program.json_format import dump_program
from py_runtime.program.writer import ProgramWriter, Ref
from tests.golden import Case, Tolerance, check
from tests.ops import cases_fused
from tests.ops.cases_attention import CachedAttention, prefills_and_decodes
from tests.ops.cases_attention import as_held as torchs_held
from tests.ops.cases_windows import AROUND, window_case
from tests.ops.new_kernels import TARGETS, parts_of
from tests.runners import CpuRunner, NativeRunner, PageRunner, wait

pytestmark = [pytest.mark.torch]

HALVES = KernelTarget(kv="f16")
KINDS = ("f16", "q8", "q4")
# A decoder's keys are turned before they are rounded, so that there torch knows the floats alone.
CLOSE = {
    "f16": Tolerance(4e-3, 2e-3, of_each=1e-2),
    "q8": Tolerance(2.5e-2, 5e-3, of_each=2.5e-2),
    "q4": Tolerance(1.5, 2e-1, of_each=1.0),
}
# Filled by attention alone: a cache that another op writes keeps its type.
FAR_AROUND = [*((64, at) for at in range(0, 384, 64)), (1, 384), (1, 385), (17, 370), (1, 387)]
# A value between two steps may be rounded to either.
BLOCKS = Tolerance(2e-2, 1e-3)


def attentions(kind: str) -> Iterator[Case]:
    """Torch's own caches are of the type, so that the kernels' results must be torch's."""
    for heads, kv_heads, width, more in (
        (4, 4, 8, {}),
        (9, 3, 64, {}),
        (8, 8, 12, {"batch": (2,)}),  # blocks reach over heads
        (4, 2, 6, {"held": "f32"}),  # such heads cannot be read by fours: they stay
    ):
        name = f"{heads}/{kv_heads} heads of {width}"
        settings: dict[str, Any] = {"tokens": 20, "context": 40, "held": kind, **more}
        graph = CachedAttention(name, heads, kv_heads, width, **settings)
        yield prefills_and_decodes(graph, [(20, 0), (5, 20), (1, 25), (1, 39), (20, 0), (3, 17)])
    settings = {"tokens": 33, "context": 80, "scale": 0.5, "sharpness": 30.0, "held": kind}
    graph = CachedAttention("sharp scores", 4, 1, 32, **settings)
    yield prefills_and_decodes(graph, [(33, 0), (33, 33), (1, 66), (5, 67)])
    yield window_case(4, 2, 16, 160, AROUND, window=9, rows=9 + 40 - 1, held=kind)
    yield window_case(2, 1, 32, 400, FAR_AROUND, window=260, rows=260 + 64 - 1, held=kind)
    if kind == "f16":  # blocks hold numbers alone
        graph = CachedAttention("after NaN", 4, 2, 16, tokens=40, context=64, held=kind)
        graph.call(40, 0, poison=float("nan"))
        yield prefills_and_decodes(graph, [(1, 0), (5, 1), (40, 0)])


def cases_of(kind: str) -> list[Case]:
    found = list(attentions(kind))
    return found if kind == "f16" else [replace(case, tolerance=BLOCKS) for case in found]


ATTENTIONS = [(kind, case) for kind in KINDS for case in cases_of(kind)]
DECODERS = [
    (kind, replace(case, tolerance=CLOSE[kind]))
    for kind in KINDS
    for case in cases_fused.cases()
    if case.name.startswith("qkv") and any(weights in case.name for weights in ("q4gsw", "q4_0"))
]


def each(cases: list[tuple[str, Case]]) -> pytest.MarkDecorator:
    ids = [f"{kind} {case.name}" for kind, case in cases]
    return pytest.mark.parametrize(("kind", "case"), cases, ids=ids)


@each([*ATTENTIONS, *DECODERS])
def test_attention_over_each_type_is_torchs_on_the_cpu(
    kind: str, case: Case, cpu: CpuRunner
) -> None:
    check(case, cpu, kv=kind)


def with_kernels() -> list[tuple[str, Case, str]]:
    """Return all cases for portable kernels, and for others those that bring a part of a kernel."""
    known: set[Hashable] = set()
    found = []
    for kernels, target in TARGETS.items():
        for kind, case in [*ATTENTIONS, *DECODERS]:
            parts = parts_of(case, replace(target, kv=kind))
            if kernels == PORTABLE_KERNELS or not parts <= known:
                found.append((kind, case, kernels))
            known |= parts
    return found


WITH_KERNELS = with_kernels()


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("kind", "case", "kernels"),
    WITH_KERNELS,
    ids=[f"{kind} {case.name}-{kernels}" for kind, case, kernels in WITH_KERNELS],
)
def test_attention_over_each_type_is_torchs(
    kind: str, case: Case, kernels: str, native: NativeRunner
) -> None:
    check(case, native, kernels=kernels, kv=kind)


@each([*ATTENTIONS[1::8], *DECODERS[1::3]])
def test_some_of_them_by_the_portable_kernels(kind: str, case: Case, native: NativeRunner) -> None:
    check(case, native, kv=kind)


@pytest.mark.thorough
@pytest.mark.browser
@each([*ATTENTIONS[1::8], DECODERS[0]])
def test_some_of_them_in_the_page(kind: str, case: Case, in_page: PageRunner) -> None:
    check(case, in_page, kv=kind)


@pytest.mark.parametrize("kind", KINDS)
def test_the_host_holds_values_as_kernels_do(kind: str) -> None:
    values = torch.randn((3, 4, 64), generator=torch.Generator().manual_seed(5)) * 3
    dtype = CACHE_DTYPES[kind]
    held = as_held(dtype, values.numpy())
    assert held.nbytes == dtype.bytes_of(values.numel())
    found = held_values(dtype, held).reshape(values.shape)
    np.testing.assert_allclose(found, torchs_held(values, kind), atol=1e-6)


def test_numbers_too_large_for_a_half_stay_finite(native: NativeRunner) -> None:
    attention = CachedAttention("huge values", 2, 2, 8, tokens=4, context=8)
    inputs = [np.zeros((1, 4, 2, 8), np.float32) for _ in range(2)]
    values = np.full((1, 4, 2, 8), 1e6, np.float32)
    ((out,),) = native.run(
        "tests.in_runtime",
        "run_graph",
        program=dump_program(attention.writer.program()),
        constants={},
        calls=[[*inputs, values, 0]],
        kv="f16",
    )
    np.testing.assert_allclose(out, 65504.0)


# Which caches ------------------------------------------------------------------------------------


class Attention:
    """An attention over two caches, and what a test adds to it."""

    def __init__(self, width: int = 8, k: str = "state", v: str = "state") -> None:
        self.writer = writer = ProgramWriter()
        dims = (1, 16, 2, width)
        q = writer.input("q", (1, 4, 2, width), F32, dynamic=(1,))
        self.caches = [self._cache(name, kind, dims) for name, kind in (("k", k), ("v", v))]
        out = writer.tensor((1, 4, 2, width), F32)
        start_pos = writer.symint_input("start_pos")
        rest = (1, None, 0, True, None, out)
        writer.op("sdpa_with_kv_cache.default", q, q, q, *self.caches, start_pos, *rest)
        writer.output(out)

    def _cache(self, name: str, kind: str, dims: tuple[int, ...]) -> Ref:
        if kind == "input":
            return self.writer.input(name, dims, F32)
        if kind == "constant":
            return self.writer.constant(name, np.zeros(dims, np.float32))
        return self.writer.state(name, dims, F32)

    def kinds(self, target: KernelTarget = HALVES) -> list[str]:
        program = type_caches.run(self.writer.program(), target)
        values = [program.values[cache.id] for cache in self.caches]
        return [value.dtype.name for value in values if isinstance(value, TensorValue)]


def test_caches_become_halves_only_where_that_is_asked_for() -> None:
    assert Attention().kinds() == [F16.name] * 2
    assert Attention().kinds(KernelTarget()) == [F32.name] * 2


@pytest.mark.parametrize(
    "settings",
    [{"width": 6}, {"v": "input"}, {"k": "constant"}, {"k": "input", "v": "input"}],
    ids=str,
)
def test_other_caches_stay(settings: dict[str, Any]) -> None:
    assert Attention(**settings).kinds() == [F32.name] * 2


@pytest.mark.parametrize(("width", "kind"), [(8, "f32"), (12, "f32"), (16, "q8"), (32, "q8")])
def test_rows_that_are_no_whole_blocks_stay(width: int, kind: str) -> None:
    assert Attention(width).kinds(KernelTarget(kv="q8")) == [kind] * 2


def test_a_cache_that_something_else_reads_stays_and_its_partner_with_it() -> None:
    attention = Attention()
    twice = attention.writer.tensor((1, 16, 2, 8), F32)
    attention.writer.op("aten.add.Tensor", attention.caches[1], attention.caches[1], 1, twice)
    attention.writer.output(twice)
    assert attention.kinds() == [F32.name] * 2


def test_a_cache_that_is_an_output_stays() -> None:
    attention = Attention()
    attention.writer.output(attention.caches[0])
    assert attention.kinds() == [F32.name] * 2


def test_what_each_type_takes() -> None:
    state = {}
    for kind in CACHE_DTYPES:
        target = KernelTarget(kv=kind)
        program = run_passes(Attention(16).writer.program(), target, DEFAULT_PASSES)
        builder = Builder(program, GUARANTEED_LIMITS, target)
        builder.build_ops()
        state[kind] = plan_buffers(builder).report.state
    rows, values = 2 * 16, 2 * 16
    each = {"f32": 4 * values, "f16": 2 * values, "q8": 12 + values, "q4": 4 + values // 2}
    assert state == {kind: rows * nbytes for kind, nbytes in each.items()}


# A whole decoder ---------------------------------------------------------------------------------


def test_a_decoder_where_the_adapter_knows_halves(native: NativeRunner, toy_model: Path) -> None:
    """The adapter says so by the feature; the kernels themselves need none."""
    device = native.device
    floats = wait(verified(device, toy_model))
    device.features |= {"shader-f16"}
    try:
        halves = wait(verified(device, toy_model))
    finally:
        device.features -= {"shader-f16"}
    assert floats.report.ok, floats.report.summary
    assert halves.report.ok, halves.report.summary
    assert halves.state_bytes * 2 == floats.state_bytes
    compared = [sum(text.tokens for text in each.report.texts) for each in (floats, halves)]
    assert compared[1] > 0.5 * compared[0], "torch's words, as far as its margins are clear"
    wrongs = [max(layer.relative_rms for layer in each.report.layers) for each in (floats, halves)]
    assert wrongs[0] < 1e-5 < wrongs[1], "rounding shows, so halves were there"


@dataclass(frozen=True)
class Verified:
    report: VerifyReport
    state_bytes: int


async def verified(device: Device, folder: Path) -> Verified:
    model = await Model.load(device, str(folder))
    try:
        report = await verify(model)
        return Verified(report, model.graph.memory.state)
    finally:
        model.unload()
