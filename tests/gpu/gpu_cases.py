"""The duties of a device, natively and in the page alike; test_gpu.py runs them through runners."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np

from py_runtime.base.errors import (
    GpuOutOfMemoryError,
    GpuValidationError,
    InpageError,
    ShaderError,
)
from py_runtime.gpu import (
    UNIFORM_USAGE,
    BindGroupSpec,
    Binding,
    BufferSpec,
    BufferUsage,
    Copy,
    Device,
    Dispatch,
    PipelineSpec,
    Read,
    Write,
    find_adapter,
)

# As Chromium describes what an adapter's matrix units multiply: attributes stand in prototypes.
OFFER_MATRICES = """
() => {
  class Config {
    get componentType() { return "f16"; }
    get resultComponentType() { return "f32"; }
    get M() { return sides[0]; }
    get N() { return sides[1]; }
    get K() { return sides[2]; }
  }
  const listed = { get: () => [new Config()], configurable: true, enumerable: true };
  Object.defineProperty(GPUAdapterInfo.prototype, "subgroupMatrixConfigs", listed);
}
"""
NO_LONGER = "() => { delete GPUAdapterInfo.prototype.subgroupMatrixConfigs; }"
SCALE_AND_ADD = """
struct Params { count: u32, factor: f32 }
override offset: f32 = 0.0;
@group(0) @binding(0) var<storage, read_write> data: array<f32>;
@group(0) @binding(1) var<uniform> params: Params;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x < params.count) { data[id.x] = data[id.x] * params.factor + offset; }
}
"""
PRODUCTS_OF_BYTES = """
@group(0) @binding(0) var<storage, read> a: array<u32>;
@group(0) @binding(1) var<storage, read> b: array<u32>;
@group(0) @binding(2) var<storage, read_write> products: array<i32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x < arrayLength(&products)) { products[id.x] = dot4I8Packed(a[id.x], b[id.x]); }
}
"""
PARAMS = np.dtype([("count", np.uint32), ("factor", np.float32), ("pad", np.uint32, 2)])


async def upload_and_read_back(device: Device) -> dict[str, Any]:
    """Bytes survive the trip: whole, in part, at an offset, and at lengths in odd bytes."""
    (buffer,) = await device.create_buffers([BufferSpec("round trip", 64)])
    data = np.arange(16, dtype=np.float32)
    device.write_buffer(buffer, data)
    whole = (await device.read_buffer(buffer, 64)).view(np.float32)
    device.write_buffer(buffer, np.array([7, 8], np.float32), offset=8)
    part = (await device.read_buffer(buffer, 12, offset=4)).view(np.float32)
    device.write_buffer(buffer, np.array([1, 2, 3, 4, 5], np.uint8))
    odd = await device.read_buffer(buffer, 5)
    device.destroy_buffers([buffer])
    return {"whole": whole, "part": part, "odd": odd, "alive": device.counters.buffers_alive}


async def replay(device: Device, steps: int) -> dict[str, Any]:
    """Replay a plan of dependent dispatches and a copy by one submit."""
    data, copied, params = await device.create_buffers(
        [
            BufferSpec("data", 256),
            BufferSpec("copied", 256),
            BufferSpec("params", PARAMS.itemsize, UNIFORM_USAGE),
        ]
    )
    spec = PipelineSpec("scale and add", SCALE_AND_ADD, (("offset", 1.0),))
    (pipeline,) = await device.create_compute_pipelines([spec])
    bindings = (Binding(data), Binding(params))
    (group,) = await device.create_bind_groups([BindGroupSpec("scale", pipeline, bindings)])
    plan = device.create_plan(
        "replay",
        [*[Dispatch("add one", pipeline, group)] * steps, Copy("keep", data, copied)],
    )
    counts = np.ones((steps + 1, 3), np.uint32)
    counts[-1] = (0, 0, 256)
    skipped = counts.copy()
    skipped[1:-1] = 0  # only the first dispatch and the copy
    writes = [
        Write(data, np.zeros(64, np.float32)),
        Write(params, np.array((64, 1.0, (0, 0)), PARAMS)),
    ]
    device.counters.reset()
    reads = [Read(copied, 256), Read(data, 8)]
    all_steps, first_two = await device.submit_and_read(plan, counts, writes, reads)
    (one_step,) = await device.submit_and_read(plan, skipped, writes[:1], [Read(copied, 256)])
    counters = device.counters
    result = {
        "all steps": all_steps.view(np.float32),
        "first two": first_two.view(np.float32),
        "one step": one_step.view(np.float32),
        "submits": counters.submits,
        "dispatches": counters.dispatches,
        "writes": counters.writes,
        "reads": counters.reads,
    }
    device.release([group, plan])
    device.destroy_buffers([data, copied, params])
    return result


async def products_of_bytes(device: Device, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the products of four bytes in a word each; int32."""
    buffers = await device.create_buffers(
        [BufferSpec(name, a.nbytes) for name in ("a", "b", "products")]
    )
    (pipeline,) = await device.create_compute_pipelines(
        [PipelineSpec("products of bytes", PRODUCTS_OF_BYTES)]
    )
    (group,) = await device.create_bind_groups(
        [BindGroupSpec("products", pipeline, tuple(Binding(buffer) for buffer in buffers))]
    )
    plan = device.create_plan("products", [Dispatch("products", pipeline, group)])
    counts = np.array([[-(-len(a) // 64), 1, 1]], np.uint32)
    writes = [Write(buffers[0], a), Write(buffers[1], b)]
    (read,) = await device.submit_and_read(plan, counts, writes, [Read(buffers[2], a.nbytes)])
    device.release([group, plan])
    device.destroy_buffers(buffers)
    return read.view(np.int32)


async def cancelled_reads(device: Device) -> np.ndarray:
    """Callers who give up while bytes are on their way; whoever reads next is not disturbed."""
    (buffer,) = await device.create_buffers([BufferSpec("impatient", 1 << 20)])
    device.write_buffer(buffer, np.arange(1 << 18, dtype=np.uint32))
    for _ in range(5):
        task = asyncio.ensure_future(device.read_buffer(buffer, 1 << 20))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        bystanders = [np.full(1 << 18, 7, np.uint32) for _ in range(8)]
        await device.read_buffer(buffer, 4)  # by now the bridge has written what was cancelled
        assert all((bystander == 7).all() for bystander in bystanders)
    whole = (await device.read_buffer(buffer, 1 << 20)).view(np.uint32)
    device.destroy_buffers([buffer])
    return whole[-4:]


async def same_spec_same_pipeline(device: Device) -> bool:
    spec = PipelineSpec("scale and add", SCALE_AND_ADD, (("offset", 3.0),))
    first, second = await device.create_compute_pipelines([spec, spec])
    (third,) = await device.create_compute_pipelines([spec])
    return first is second is third


async def error_texts(device: Device) -> dict[str, list[str]]:
    """Each fault, provoked: the class of the error and its text."""
    usage = BufferUsage.MAP_READ | BufferUsage.STORAGE
    broken = "fn helper() {}\n@compute @workgroup_size(1)\nfn main() { let x = missing; }\n"
    (small,) = await device.create_buffers([BufferSpec("small", 16)])
    small_write = [Write(small, np.zeros(8, np.float32))]
    pipeline_spec = PipelineSpec("scale and add", SCALE_AND_ADD)
    (pipeline,) = await device.create_compute_pipelines([pipeline_spec])
    wrong_group = BindGroupSpec("wrong group", pipeline, (Binding(small),))
    huge = device.limits["max_buffer_size"] + 1
    attempts: dict[str, Callable[[], Awaitable[object]]] = {
        "no label": lambda: device.create_buffers([BufferSpec("", 4)]),
        "too large": lambda: device.create_buffers([BufferSpec("huge", huge)]),
        "bad usage": lambda: device.create_buffers([BufferSpec("odd one", 64, usage)]),
        "shader": lambda: device.create_compute_pipelines([PipelineSpec("broken", broken)]),
        "entry point": lambda: device.create_compute_pipelines(
            [PipelineSpec("no main", "fn f() {}", entry_point="absent")]
        ),
        "bind group": lambda: device.create_bind_groups([wrong_group]),
        "overflow": lambda: device.submit_and_read(None, None, small_write, []),
        "read past the end": lambda: device.read_buffer(small, 32),
    }
    texts = {}
    for name, attempt in attempts.items():
        try:
            await attempt()
            texts[name] = ["nothing", ""]
        except InpageError as error:
            texts[name] = [type(error).__name__, str(error)]
    device.destroy_buffers([small])
    return texts


async def out_of_memory(device: Device) -> dict[str, Any]:
    """Far more than the machine has: named, nothing kept, and the device works on."""
    before = device.counters.buffers_alive
    size = device.limits["max_buffer_size"]
    try:
        await device.create_buffers([BufferSpec(f"huge {n}", size) for n in range(100)])
        text = "nothing"
    except GpuOutOfMemoryError as error:
        text = str(error)
    kept = device.counters.buffers_alive - before
    works = await upload_and_read_back(device)
    return {"text": text, "kept": kept, "works": works["whole"]}


async def destroyed_device(device: Device) -> list[str]:
    """Destroy a device of its own: every later call says so. Natively only, as the page has one."""
    from py_runtime.gpu import request_device

    own = await request_device()
    (buffer,) = await own.create_buffers([BufferSpec("doomed", 16)])
    own.destroy()
    texts = []
    for attempt in (
        lambda: own.create_buffers([BufferSpec("late", 16)]),
        lambda: own.read_buffer(buffer, 16),
    ):
        try:
            await attempt()
            texts.append("nothing")
        except InpageError as error:
            texts.append(f"{type(error).__name__}: {error}")
    return texts


async def shader_error_fields(device: Device) -> list[Any]:
    source = "@compute @workgroup_size(1)\nfn main() {\n  let x = missing;\n}\n"
    try:
        await device.create_compute_pipelines([PipelineSpec("fields", source)])
    except ShaderError as error:
        return [error.shader, error.messages[0].line, str(error)]
    raise GpuValidationError("the broken shader compiled")


async def which_matrices_are_seen(device: Device, sides: list[list[int]]) -> list[bool]:
    """Return, for each three sides, whether an adapter with such matrices of halves has units."""
    from pyodide.code import run_js

    seen = []
    try:
        for offered in sides:
            run_js(OFFER_MATRICES.replace("sides[", f"{offered}["))()
            seen.append((await find_adapter()).adapter.has_matrix_units)
    finally:
        run_js(NO_LONGER)()
    return [*seen, (await find_adapter()).adapter.has_matrix_units]
