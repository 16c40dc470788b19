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

export function createBridge() {
  const objects = new Map(); // handle → GPUBuffer | GPUComputePipeline | GPUBindGroup | plan
  const layouts = new Map(); // pipeline handle → GPUBindGroupLayout of group 0
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

  async function openDevice(featuresJson) {
    if (device && !lost) device.destroy(); // one device at a time
    const gpu = globalThis.navigator?.gpu;
    if (!gpu) throw new BridgeFault("no-webgpu", "navigator.gpu is missing in this browser");
    const adapter = await gpu.requestAdapter({ powerPreference: "high-performance" });
    if (!adapter) throw new BridgeFault("no-adapter", "navigator.gpu.requestAdapter() found no GPU");
    const requiredFeatures = JSON.parse(featuresJson).filter((name) => adapter.features.has(name));
    const requiredLimits = {};
    for (const name in adapter.limits) requiredLimits[name] = adapter.limits[name];
    try {
      device = await adapter.requestDevice({ label: "inpage", requiredFeatures, requiredLimits });
    } catch (error) {
      throw new BridgeFault("no-device", error.message);
    }
    lost = null;
    objects.clear();
    layouts.clear();
    stagingPool.clear();
    uncaptured.length = 0;
    const opened = device;
    opened.addEventListener("uncapturederror", ({ error }) => uncaptured.push(error.message));
    opened.lost.then(({ reason, message }) => {
      if (opened === device) lost = `the GPU device was lost (${reason}): ${message}`;
    });
    const { vendor, architecture, device: name, description, subgroupMinSize, subgroupMaxSize } = adapter.info;
    const limits = {};
    for (const limit in device.limits) limits[limit] = device.limits[limit];
    return JSON.stringify({
      adapter: {
        vendor, architecture, device: name, description,
        isFallback: Boolean(adapter.info.isFallbackAdapter),
        subgroupMinSize: subgroupMinSize ?? 0, subgroupMaxSize: subgroupMaxSize ?? 0,
      },
      features: requiredFeatures,
      limits,
    });
  }

  // Creation -----------------------------------------------------------------------------------

  /** Runs `create` inside one scope of each kind; resolves to its result or rejects with a fault. */
  async function scoped(what, create) {
    mustLive();
    for (const scope of SCOPES) device.pushErrorScope(scope);
    let result;
    let thrown = null;
    try {
      result = create();
    } catch (error) {
      thrown = error; // a descriptor the browser refuses outright
    }
    const pops = SCOPES.map(() => device.popErrorScope());
    const errors = await Promise.all(pops);
    if (lost) throw new BridgeFault("lost", lost);
    if (thrown) throw new BridgeFault("validation", `${what}: ${thrown.message}`);
    const caught = errors.findIndex(Boolean);
    if (caught >= 0) throw new BridgeFault(SCOPES.at(-1 - caught), `${what}: ${errors[caught].message}`);
    return result;
  }

  /** All or nothing: resolves to handles, or undoes what was created and rejects with the first fault. */
  async function createAll(specs, create, undo) {
    const outcomes = await Promise.allSettled(specs.map(create));
    const failure = outcomes.find(({ status }) => status === "rejected");
    if (!failure) return JSON.stringify(outcomes.map(({ value }) => keep(value)));
    for (const { status, value } of outcomes) if (status === "fulfilled") undo(value);
    throw failure.reason;
  }

  const createBuffers = (json) => createAll(
    JSON.parse(json),
    ({ label, size, usage }) =>
      scoped(`buffer '${label}' (${size} bytes)`, () => device.createBuffer({ label, size, usage })),
    (buffer) => buffer.destroy(),
  );

  async function createPipeline({ label, source, entryPoint, constants }) {
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
  }

  const createPipelines = (json) => createAll(JSON.parse(json), createPipeline, () => {});

  const layoutOf = (pipeline) => {
    if (!layouts.has(pipeline)) layouts.set(pipeline, objects.get(pipeline).getBindGroupLayout(0));
    return layouts.get(pipeline);
  };

  const createBindGroups = (json) => createAll(
    JSON.parse(json),
    ({ label, pipeline, bindings }) => scoped(`bind group '${label}'`, () => device.createBindGroup({
      label,
      layout: layoutOf(pipeline),
      entries: bindings.map(([buffer, offset, size], binding) => (
        { binding, resource: { buffer: objects.get(buffer), offset, size } }
      )),
    })),
    () => {},
  );

  /** A step is [pipeline, bind group] or [source buffer, target buffer]; `copies` lists the latter's indices. */
  function createPlan(json) {
    const { label, steps, copies } = JSON.parse(json);
    const isCopy = new Uint8Array(steps.length);
    for (const index of copies) isCopy[index] = 1;
    return keep({
      label, isCopy,
      first: steps.map(([handle]) => objects.get(handle)),
      second: steps.map(([, handle]) => objects.get(handle)),
    });
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

  function encodePlan(encoder, { label, isCopy, first, second }, countsAt, repeat) {
    const counts = new Uint32Array(heap(), countsAt, isCopy.length * PLAN_COLUMNS);
    let pass = null;
    for (let round = 0; round < repeat; round++) {
      for (let step = 0, at = 0; step < isCopy.length; step++, at += PLAN_COLUMNS) {
        if (isCopy[step]) {
          if (!counts[at + 2]) continue;
          pass?.end();
          pass = null;
          encoder.copyBufferToBuffer(first[step], counts[at], second[step], counts[at + 1], counts[at + 2]);
        } else if (counts[at]) {
          pass ??= encoder.beginComputePass({ label });
          pass.setPipeline(first[step]);
          pass.setBindGroup(0, second[step]);
          pass.dispatchWorkgroups(counts[at], counts[at + 1], counts[at + 2]);
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

  function takeStaging(bytes) {
    const size = 2 ** Math.ceil(Math.log2(Math.max(bytes, 256)));
    const idle = stagingPool.get(size)?.pop();
    return idle ?? device.createBuffer({
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

  function destroyBuffers(json) {
    for (const handle of JSON.parse(json)) {
      objects.get(handle)?.destroy();
      objects.delete(handle);
    }
  }

  function release(json) {
    for (const handle of JSON.parse(json)) objects.delete(handle);
  }

  function destroyDevice() {
    device?.destroy();
    lost ??= "the GPU device was destroyed; request a new one";
  }

  // Every call from Python is counted, so that tests can hold the bridge to O(1) calls a token.
  const api = {
    openDevice, createBuffers, createPipelines, createBindGroups, createPlan,
    submit, submitAndRead, finishWrites, destroyBuffers, release, destroyDevice,
    ...createFiles(() => heap()),
  };
  const bridge = {
    calls: 0,
    attachHeap: (getter) => { heap = getter; },
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
