// Drives inpage. This script is added to the product's own page and uses nothing but globalThis.inpage.

import { offer } from "./common.js";

async function api() {
  while (!globalThis.inpage) await new Promise((resolve) => { setTimeout(resolve); });
  return globalThis.inpage;
}

/** @type {import("./common.js").Engine["run"]} */
async function run({ ids }, count, onTokens) {
  const { inpage } = globalThis;
  const chunks = await inpage.completions.create({
    prompt_token_ids: ids,
    temperature: 0,
    ignore_eos: true,
    max_tokens: count,
    stream: true,
    stream_options: { include_usage: true },
  });
  let told;
  for await (const { choices, usage } of chunks) {
    if (choices[0]?.token_ids.length) onTokens(choices[0].token_ids);
    told = usage ?? told;
  }
  return told;
}

// GPU milliseconds of decoding one token, by kind of op.
const OPS = `
[{"op": t.kind, "count": t.count, "ms": t.microseconds / 1000, "share": t.share}
 for t in (await model.profile(128)).kinds] if "timestamp-query" in device.features else None
`;

// Milliseconds until 300 dispatches are submitted: replayed in one call, and each issued from Python.
const SUBMISSION = `
import time
import numpy as np
from py_runtime.gpu import Binding, BindGroupSpec, BufferSpec, Dispatch, PipelineSpec
from py_runtime.gpu.page import bridge

STEPS = 300
SHADER = """
@group(0) @binding(0) var<storage, read_write> data: array<u32>;
@compute @workgroup_size(1) fn main() { data[0] += 1u; }
"""
(data,) = await device.create_buffers([BufferSpec("bench data", 16)])
(pipeline,) = await device.create_compute_pipelines([PipelineSpec("bench", SHADER)])
(group,) = await device.create_bind_groups([BindGroupSpec("bench", pipeline, (Binding(data),))])
plan = device.create_plan("bench", [Dispatch("bench", pipeline, group)] * STEPS)
counts = np.ones((STEPS, 3), np.uint32)
raw_pipeline, raw_group = (bridge.objects.get(item.handle) for item in (pipeline, group))
raw_device = bridge.device()

def one_by_one():
    encoder = raw_device.createCommandEncoder()
    compute = encoder.beginComputePass()
    for _ in range(STEPS):
        compute.setPipeline(raw_pipeline)
        compute.setBindGroup(0, raw_group)
        compute.dispatchWorkgroups(1, 1, 1)
    compute.end()
    raw_device.queue.submit([encoder.finish()])

async def least_ms(work):
    taken = []
    for _ in range(15):
        started = time.perf_counter()
        work()
        taken.append((time.perf_counter() - started) * 1000)
        await device.read_buffer(data, 4)
    return min(taken)

found = {
    "dispatches": STEPS,
    "replayed_ms": await least_ms(lambda: device.submit(plan, counts)),
    "one_by_one_ms": await least_ms(one_by_one),
}
device.release([group, plan])
device.destroy_buffers([data])
found
`;
const KIND = "device.kind";

// Five turns each, so that a machine that slows down is slow for both.
const TURNS = 5;
const VECTOR = { name: "bench", positive: ["Good day to you, sir."], negative: ["Hey, what's up?"], strength: 0.5 };

/**
 * Tokens per second of decoding with one steering vector and without, in turns; and the seconds that views of the prompt take.
 * @param {import("./common.js").Prompt} prompt
 * @param {number} count
 */
async function glass(prompt, count) {
  const { inpage } = globalThis;
  const { layers } = await inpage.glass("steering", {});
  const decode = async () => {
    /** @type {[number, number][]} */
    const marks = [];
    let tokens = 0;
    await run(prompt, count, (more) => marks.push([performance.now(), tokens += more.length]));
    const [[firstAt, first], [lastAt, last]] = [marks[0], marks[marks.length - 1]];
    return (last - first) / (lastAt - firstAt) * 1000;
  };
  /** @type {{ plain: number[], steered: number[], views_s: Record<string, number> }} */
  const found = { plain: [], steered: [], views_s: {} };
  for (let turn = 0; turn <= TURNS; turn++) {
    const plain = await decode();
    await inpage.glass("steering_vector", { ...VECTOR, layer: layers >> 1 });
    await run(prompt, 4, () => {}); // the steered graph is built
    const steered = await decode();
    await inpage.glass("steering", { remove: [VECTOR.name] });
    if (turn === 0) continue; // all is warm from now on
    found.plain.push(plain);
    found.steered.push(steered);
  }
  const tokens = prompt.ids.slice(0, 24);
  const views = { lens: { tokens }, attention: { tokens }, norms: { tokens }, score: { tokens }, timeline: { tokens: 1, context: 128 } };
  for (const [view, fields] of Object.entries(views)) {
    const started = performance.now();
    await inpage.glass(view, fields);
    found.views_s[view] = (performance.now() - started) / 1000;
  }
  return found;
}

offer({
  ready: api().then((inpage) => inpage.ready),
  load: ({ model, kernels, device, threads }) => globalThis.inpage.load(model, { kernels, device: /** @type {import("../../web/inpage.d.ts").DeviceKind} */ (device), threads }),
  run,
  gpuBytes: () => globalThis.inpage.python("graph.memory.peak"),
  gpuOps: () => globalThis.inpage.python(OPS),
  submission: async () => (await globalThis.inpage.python(KIND) === "gpu" ? globalThis.inpage.python(SUBMISSION) : null),
  glass,
  async facts() {
    const { versions, phases } = await globalThis.inpage.ready;
    return { version: versions.inpage, phases, kernels: globalThis.inpage.loaded?.kernels };
  },
});
