"""Helpers of the engine room's tests: models loaded natively, and an op of one's own."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

from py_runtime.base.dtypes import F32
from py_runtime.base.shapes import numel
from py_runtime.glass.own_ops import kernel_of, own_op
from py_runtime.gpu import Device
from py_runtime.model import Model
from py_runtime.ops.registry import Op
from tests.runners import CpuRunner, NativeRunner, wait

T = TypeVar("T")
PROMPT, STEPS = [1, 2, 3, 4, 5], 6
NORM = "et_vk.rms_norm.default"
OWN_NORM = """
struct Params { rows: u32, width: u32, eps: f32 }

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> weight: array<f32>;
@group(0) @binding(2) var<storage, read_write> out: array<f32>;
@group(0) @binding(3) var<uniform> params: Params;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x >= params.rows) { return; }
  let first = id.x * params.width;
  var squares = 0.0;
  for (var c = 0u; c < params.width; c++) { squares += x[first + c] * x[first + c]; }
  let scale = FACTOR * inverseSqrt(squares / f32(params.width) + params.eps);
  for (var c = 0u; c < params.width; c++) { out[first + c] = x[first + c] * scale * weight[c]; }
}
"""


def own_norm(factor: float = 1.0) -> type[Op]:
    """Declare an RMSNorm of one's own, which computes this multiple of it."""

    @own_op(args="x weight eps out", wgsl=OWN_NORM.replace("FACTOR", str(factor)))
    class OwnNorm(Op):
        """Out = factor · rms_norm(x) · weight."""

        def build(self) -> None:
            self.x, self.out = self.tensor("x", F32), self.tensor("out", F32)
            bind = {"x": self.x, "weight": self.tensor("weight", F32), "out": self.out}
            self.kernel = self.launch(kernel_of(self), bind=bind)

        def live(self) -> None:
            *rows, width = self.x.dims
            self.out.resize(self.x.dims)
            self.kernel.for_each(numel(rows), rows=numel(rows), width=width, eps=self.number("eps"))

    return OwnNorm


@asynccontextmanager
async def loaded(device: Device, where: Path) -> AsyncIterator[Model]:
    model = await Model.load(device, str(where))
    try:
        yield model
    finally:
        model.unload()


def with_model(
    runner: CpuRunner | NativeRunner, where: Path, look: Callable[[Model], Awaitable[T]]
) -> T:
    """Return what a look at a model gives; the model writes the same tokens after it."""

    async def all_of_it() -> T:
        async with loaded(runner.device, where) as model:
            before = await greedy(model)
            found = await look(model)
            assert await greedy(model) == before, "a view changes no token"
            return found

    return wait(all_of_it())


async def greedy(model: Model) -> list[int]:
    return [token async for token in model.greedy(PROMPT, STEPS)]
