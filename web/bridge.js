// The bridge between Python in Pyodide and navigator.gpu: it holds GPU objects by integer handle,
// creates them inside error scopes, and replays recorded plans. It decides nothing: every size,
// label, workgroup count and byte range comes from Python (py_runtime/gpu/page.py).

import { BridgeFault } from "./fault.js";
import { createFiles } from "./files.js";

export { BridgeFault };

const SCOPES = ["out-of-memory", "internal", "validation"];
const PLAN_COLUMNS = 3; // workgroups x, y, z of a dispatch; source offset, target offset, bytes of a copy
const WRITE_COLUMNS = 4; // buffer handle, buffer offset, heap address, bytes
const READ_COLUMNS = 4; // the same, the other way round
const NO_PLAN = 0;

/** WebGPU's objects keep their attributes in the prototype, where JSON does not look. */
function plain(attributes) {
  const own = {};
  for (const name in attributes) own[name] = attributes[name];
  return own;
}

export function createBridge() {
  const objects = new Map(); // handle → GPUBuffer | GPUComputePipeline | GPUBindGroup | plan
  const stagingPool = new Map(); // bytes → idle staging buffers
  const uncaptured = []; // texts of errors that no scope caught
  let device = null;
  let lost = null; // why the device is gone
  let heap = () => { throw new BridgeFault("internal", "the Python heap is not attached"); };
  let nextHandle = 1;

  const keep = (object) => {
    objects.set(nextHandle, object);
    return nextHandle++;
  };

  const mustLive = () => {
    if (!device) throw new BridgeFault("unavailable", "no GPU device was opened");
    if (lost) throw new BridgeFault("lost", lost);
  };

  /** What fails may hear of a lost device before we do: the news follows within a moment. */
  const newsOfLoss = () => Promise.race([device.lost, new Promise((resolve) => { setTimeout(resolve, 1000); })]);

  /** A handle of an earlier device, or of something released, names nothing any more. */
  const find = (handle) => {
    const object = objects.get(handle);
    if (!object) throw new BridgeFault("lost", "this object belongs to a device that is gone; load again");
    return object;
  };

  // Opening ------------------------------------------------------------------------------------

  async function requestAdapter() {
    const { gpu } = navigator;
    if (!gpu) throw new BridgeFault("no-webgpu", "navigator.gpu is missing in this browser");
    const adapter = await gpu.requestAdapter({ powerPreference: "high-performance" });
    return adapter ?? Promise.reject(new BridgeFault("no-adapter", "navigator.gpu.requestAdapter() found no GPU"));
  }

  async function openDevice(featuresJson) {
    if (device && !lost) device.destroy(); // one device at a time
    const adapter = await requestAdapter();
    const requiredFeatures = JSON.parse(featuresJson).filter((name) => adapter.features.has(name));
    try {
      device = await adapter.requestDevice({ label: "inpage", requiredFeatures, requiredLimits: plain(adapter.limits) });
    } catch (error) {
      throw new BridgeFault("no-device", error.message);
    }
    lost = null;
    objects.clear();
    stagingPool.clear();
    uncaptured.length = 0;
    const opened = device;
    opened.addEventListener("uncapturederror", ({ error }) => uncaptured.push(error.message));
    opened.lost.then(({ reason, message }) => {
      if (opened === device) lost = `the GPU device was lost (${reason}): ${message}`;
    });
    return JSON.stringify({ adapter: plain(adapter.info), features: requiredFeatures, limits: plain(device.limits) });
  }

  // Creation -----------------------------------------------------------------------------------

  /** Runs `create` inside one scope of each kind; resolves to its result or rejects with a fault. */
  async function scoped(what, create) {
    mustLive();
    for (const scope of SCOPES) device.pushErrorScope(scope);
    const creating = new Promise((resolve) => { resolve(create()); });
    const pops = SCOPES.map(() => device.popErrorScope());
    const refused = await creating.then(() => null, (error) => error); // a descriptor, by the browser
    const errors = [...await Promise.all(pops), refused];
    if (lost) throw new BridgeFault("lost", lost);
    const caught = errors.findIndex(Boolean);
    if (caught >= 0) throw new BridgeFault(SCOPES.at(-1 - caught) ?? "validation", `${what}: ${errors[caught].message}`);
    return creating;
  }

  /** All or nothing: resolves to handles, or undoes what was created and rejects with the first fault. */
  const creating = (create) => async (json) => {
    const outcomes = await Promise.allSettled(JSON.parse(json).map(create));
    const failure = outcomes.find(({ reason }) => reason);
    if (!failure) return JSON.stringify(outcomes.map(({ value }) => keep(value)));
    for (const { value } of outcomes) value?.destroy?.();
    throw failure.reason;
  };

  const createBuffers = creating(({ label, size, usage }) =>
    scoped(`buffer '${label}' (${size} bytes)`, () => device.createBuffer({ label, size, usage })));

  const createPipelines = creating(async ({ label, source, entryPoint, constants }) => {
    mustLive();
    // The module's own faults are read from its compilation info; this scope keeps them off the console.
    device.pushErrorScope("validation");
    const module = device.createShaderModule({ label, code: source });
    const scopeClosed = device.popErrorScope();
    const { messages } = await module.getCompilationInfo();
    await scopeClosed;
    const errors = messages.filter(({ type }) => type === "error");
    if (errors.length) {
      const rows = errors.map(({ lineNum, linePos, message }) => [lineNum, linePos, message]);
      throw new BridgeFault("shader", JSON.stringify({ label, messages: rows }));
    }
    try {
      return await device.createComputePipelineAsync({
        label, layout: "auto", compute: { module, entryPoint, constants },
      });
    } catch (error) {
      await newsOfLoss();
      throw new BridgeFault(lost ? "lost" : "validation", lost ?? `pipeline '${label}': ${error.message}`);
    }
  });

  const createBindGroups = creating(({ label, pipeline, bindings }) =>
    scoped(`bind group '${label}'`, () => device.createBindGroup({
      label,
      layout: objects.get(pipeline).getBindGroupLayout(0),
      entries: bindings.map(([buffer, offset, size], binding) => (
        { binding, resource: { buffer: objects.get(buffer), offset, size } }
      )),
    })));

  /** A step is [pipeline, bind group] or [source buffer, target buffer]. */
  function createPlan(label, json) {
    const [first, second] = JSON.parse(json).map((handles) => handles.map((handle) => objects.get(handle)));
    return keep({ label, first, second, isCopy: first.map((object) => object instanceof GPUBuffer) });
  }

  const wholeWords = (bytes) => Math.max(4, (bytes + 3) & ~3);

  // The hot path -------------------------------------------------------------------------------

  function write(writesAt, writeCount) {
    const memory = heap(); // taken anew each time: a heap that grew has a new ArrayBuffer
    const rows = new Uint32Array(memory, writesAt, writeCount * WRITE_COLUMNS);
    for (let at = 0; at < rows.length; at += WRITE_COLUMNS) {
      device.queue.writeBuffer(find(rows[at]), rows[at + 1], memory, rows[at + 2], rows[at + 3]);
    }
  }

  /** With `querySet` each dispatch has a pass of its own, which notes when it began and ended. */
  function encodePlan(encoder, { label, isCopy, first, second }, countsAt, repeat, querySet) {
    const counts = new Uint32Array(heap(), countsAt, isCopy.length * PLAN_COLUMNS);
    let pass = null;
    let timed = 0;
    for (let round = 0; round < repeat; round++) {
      for (let step = 0, at = 0; step < isCopy.length; step++, at += PLAN_COLUMNS) {
        if (isCopy[step]) {
          if (!counts[at + 2]) continue;
          pass?.end();
          pass = null;
          encoder.copyBufferToBuffer(first[step], counts[at], second[step], counts[at + 1], counts[at + 2]);
        } else if (counts[at]) {
          pass ??= encoder.beginComputePass({
            label,
            timestampWrites: querySet
              && { querySet, beginningOfPassWriteIndex: timed++, endOfPassWriteIndex: timed++ },
          });
          pass.setPipeline(first[step]);
          pass.setBindGroup(0, second[step]);
          pass.dispatchWorkgroups(counts[at], counts[at + 1], counts[at + 2]);
          if (querySet) {
            pass.end();
            pass = null;
          }
        }
      }
    }
    pass?.end();
  }

  function submit(plan, countsAt, writesAt, writeCount) {
    mustLive();
    write(writesAt, writeCount);
    if (plan === NO_PLAN) return;
    const encoder = device.createCommandEncoder({ label: find(plan).label });
    encodePlan(encoder, find(plan), countsAt, 1);
    device.queue.submit([encoder.finish()]);
  }

  /** So many dispatches, each one's begin and end in nanoseconds left in the buffer `ticks`. */
  function submitTimed(plan, countsAt, dispatches, ticks) {
    mustLive();
    const encoder = device.createCommandEncoder();
    const querySet = device.createQuerySet({ type: "timestamp", count: 2 * dispatches });
    encodePlan(encoder, find(plan), countsAt, 1, querySet);
    encoder.resolveQuerySet(querySet, 0, 2 * dispatches, find(ticks), 0);
    device.queue.submit([encoder.finish()]);
    querySet.destroy();
  }

  function takeStaging(bytes) {
    const size = 2 ** Math.ceil(Math.log2(Math.max(bytes, 256)));
    return stagingPool.get(size)?.pop() ?? device.createBuffer({
      label: `staging of ${size} bytes`, size, usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST,
    });
  }

  function giveStaging(buffer) {
    if (!stagingPool.has(buffer.size)) stagingPool.set(buffer.size, []);
    stagingPool.get(buffer.size).push(buffer);
  }

  /** Everything a read-back needs is copied into one staging buffer: one map, one await. */
  async function submitAndRead(plan, countsAt, writesAt, writeCount, readsAt, readCount, repeat) {
    mustLive();
    write(writesAt, writeCount);
    const reads = new Uint32Array(heap(), readsAt, readCount * READ_COLUMNS).slice();
    let total = 0;
    for (let at = 0; at < reads.length; at += READ_COLUMNS) total += wholeWords(reads[at + 3]);
    const staging = takeStaging(total);
    const encoder = device.createCommandEncoder({ label: "submit and read" });
    if (plan !== NO_PLAN) encodePlan(encoder, find(plan), countsAt, repeat);
    for (let at = 0, offset = 0; at < reads.length; at += READ_COLUMNS) {
      const bytes = wholeWords(reads[at + 3]);
      encoder.copyBufferToBuffer(find(reads[at]), reads[at + 1], staging, offset, bytes);
      offset += bytes;
    }
    device.queue.submit([encoder.finish()]);
    try {
      await staging.mapAsync(GPUMapMode.READ, 0, total);
    } catch (error) {
      staging.destroy();
      await newsOfLoss();
      throw new BridgeFault(lost ? "lost" : "validation", lost ?? uncaptured.splice(0).join("\n") + error.message);
    }
    const mapped = new Uint8Array(staging.getMappedRange(0, total));
    const target = new Uint8Array(heap());
    for (let at = 0, offset = 0; at < reads.length; at += READ_COLUMNS) {
      target.set(mapped.subarray(offset, offset + reads[at + 3]), reads[at + 2]);
      offset += wholeWords(reads[at + 3]);
    }
    staging.unmap();
    giveStaging(staging);
    if (uncaptured.length) throw new BridgeFault("validation", uncaptured.splice(0).join("\n"));
  }

  /** Resolves once the GPU has taken every upload; a device that was lost on the way says so. */
  async function finishWrites() {
    mustLive();
    await device.queue.onSubmittedWorkDone();
    if (lost) throw new BridgeFault("lost", lost);
  }

  // Release ------------------------------------------------------------------------------------

  /** A buffer's memory comes back at once. */
  function release(json) {
    for (const handle of JSON.parse(json)) {
      objects.get(handle)?.destroy?.();
      objects.delete(handle);
    }
  }

  function destroyDevice() {
    device?.destroy();
    lost ??= "the GPU device was destroyed; request a new one";
  }

  const { given, calls } = createFiles(() => heap());

  // Every call from Python is counted, so that tests can hold the bridge to O(1) calls a token.
  const api = {
    openDevice, createBuffers, createPipelines, createBindGroups, createPlan,
    submit, submitAndRead, submitTimed, finishWrites, release, destroyDevice,
    ...calls,
  };
  const bridge = {
    calls: 0,
    requestAdapter,
    attachHeap: (getter) => { heap = getter; },
    given,
    // For tests and the curious: the objects behind the handles, the device, the heap's size.
    objects,
    device: () => device,
    heapBytes: () => heap().byteLength,
  };
  for (const [name, call] of Object.entries(api)) {
    bridge[name] = (...args) => {
      bridge.calls++;
      return call(...args);
    };
  }
  return bridge;
}
