// Drives inpage. This script is added to the product's own page and uses nothing but globalThis.inpage.

import { offer } from "./common.js";

async function api() {
  while (!globalThis.inpage) await new Promise((resolve) => { setTimeout(resolve); });
  return globalThis.inpage;
}

/**
 * @param {import("./common.js").Prompt} prompt
 * @param {number} count
 * @param {(tokens: number[]) => void} onTokens
 * @param {object} [fields] of the request, beside these
 */
async function run({ ids }, count, onTokens, fields) {
  const { inpage } = globalThis;
  const chunks = await inpage.completions.create({
    prompt_token_ids: ids,
    temperature: 0,
    ignore_eos: true,
    speculate: false, // rows of decoding are of one token after the other
    max_tokens: count,
    stream: true,
    stream_options: { include_usage: true },
    ...fields,
  });
  let told;
  for await (const { choices, usage } of chunks) {
    if (choices[0]?.token_ids.length) onTokens(choices[0].token_ids);
    told = usage ?? told;
  }
  return told;
}

const FORGET = `
from py_runtime.folder import notes
from py_runtime.graph.tuning import NOTE

await notes.write_note(NOTE, None)
`;

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

// Milliseconds of the GPU for a call of so many tokens, after 128 others; null where none are verified.
const VERIFICATION = `
import numpy as np
from py_runtime.generation.verifier import Verifier, can_verify
from py_runtime.graph.timed_plan import TimedPlan

found = None
if can_verify(graph):
    verifier = await Verifier.create(graph, (await model.session.decode_loop()).sampler)
    found = {}
    for size in (1, 2, 4, 8, 16):
        chosen = graph if size == 1 else verifier.graph
        await chosen.compute([np.zeros((1, size), np.int64), np.array([128])], [0])
        plan = TimedPlan(device, chosen, 4, 0.05)
        found[size] = 1000 * min([await plan.seconds() for _ in range(4)])
        plan.release()
    verifier.unload()
    model.session.forget()
found
`;
const COUNTED = "[model.session.speculation.proposed, model.session.speculation.accepted]";

/**
 * What calls of several tokens cost, and tokens per second of a text that repeats itself and of another, without proposals
 * and with those that pay, in turns.
 * @param {import("./common.js").Prompt} prompt
 * @param {number} count
 */
async function speculation(prompt, count) {
  const calls_ms = await globalThis.inpage.python(VERIFICATION);
  if (!calls_ms) return null;
  const part = prompt.ids.slice(0, 40);
  const prompts = { repeating: [...part, ...part, ...part], other: prompt.ids };
  /** @type {Record<string, any>} */
  const found = { calls_ms };
  for (const [name, ids] of Object.entries(prompts)) {
    /** @type {{ plain: number[], proposed: number[], alike: boolean }} */
    const both = { plain: [], proposed: [], alike: true };
    for (let turn = 0; turn <= TURNS; turn++) {
      const texts = [];
      for (const speculate of [false, "auto"]) {
        /** @type {[number, number][]} */
        const marks = [];
        /** @type {number[]} */
        const made = [];
        await run({ ...prompt, ids }, count, (more) => {
          made.push(...more);
          marks.push([performance.now(), made.length]);
        }, { speculate });
        const [[firstAt, first], [lastAt, last]] = [marks[0], marks[marks.length - 1]];
        texts.push(made.join());
        // The first turn learns what calls cost.
        if (turn) both[speculate ? "proposed" : "plain"].push((last - first) / (lastAt - firstAt) * 1000);
      }
      both.alike &&= texts[0] === texts[1];
    }
    found[name] = { ...both, counted: await globalThis.inpage.python(COUNTED) };
  }
  return found;
}

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
  async load({ model, kernels, kv, device: kind, threads, anew }) {
    const device = /** @type {import("../../web/inpage.d.ts").DeviceKind} */ (kind);
    if (anew) await globalThis.inpage.python(FORGET);
    await globalThis.inpage.load(model, { kernels, kv, device, threads });
  },
  run,
  gpuBytes: () => globalThis.inpage.python("graph.memory.peak"),
  gpuOps: () => globalThis.inpage.python(OPS),
  submission: async () => (await globalThis.inpage.python(KIND) === "gpu" ? globalThis.inpage.python(SUBMISSION) : null),
  glass,
  speculation,
  async facts() {
    const { versions, phases } = await globalThis.inpage.ready;
    return { version: versions.inpage, phases, kernels: globalThis.inpage.loaded?.kernels };
  },
});
