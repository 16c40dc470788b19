// GPU objects by integer handle: created inside error scopes, all or nothing, and released.

import { BridgeFault } from "./fault.js";

/** @import { BindGroupSpec, BufferSpec, Compiling, Creating, ObjectCalls, PipelineSpec } from "../calls.d.ts" */
/** @typedef {ReturnType<typeof createObjects>} Objects */

/** @param {import("./device.js").DeviceHolder} gpu */
export function createObjects(gpu) {
  /** @type {Map<number, any>} */
  const objects = new Map(); // handle → GPUBuffer | GPUComputePipeline | GPUBindGroup | Plan
  let nextHandle = 1;

  /** @param {object} object */
  function keep(object) {
    objects.set(nextHandle, object);
    return nextHandle++;
  }

  /** @param {number} handle */
  function find(handle) {
    const object = objects.get(handle);
    if (!object) throw new BridgeFault("lost", "this object belongs to a device that is gone; load again");
    return object;
  }

  /** @type {Creating} */
  const creating = (create) => async (json) => {
    const outcomes = await Promise.allSettled(JSON.parse(json).map(create));
    const failure = outcomes.find((outcome) => outcome.status === "rejected");
    const made = outcomes.flatMap((outcome) => (outcome.status === "fulfilled" ? [outcome.value] : []));
    if (!failure) return JSON.stringify(made.map(keep));
    for (const object of made) object.destroy?.();
    throw failure.reason;
  };

  const createBuffers = creating((/** @type {BufferSpec} */ { label, size, usage }) =>
    gpu.scoped(`buffer '${label}' (${size} bytes)`, (device) => device.createBuffer({ label, size, usage })));

  const createPipelines = creating(async (/** @type {PipelineSpec} */ { label, source, entryPoint, constants }) => {
    const device = gpu.live();
    const module = await compiled(device, label, source);
    const compute = { module, entryPoint, constants };
    return device.createComputePipelineAsync({ label, layout: "auto", compute }).catch(async (error) => {
      throw await gpu.lossOrFault(() => `pipeline '${label}': ${error.message}`);
    });
  });

  const createBindGroups = creating(async (/** @type {BindGroupSpec} */ { label, pipeline, bindings }) => {
    const made = find(pipeline);
    const entries = bindings.map(([buffer, offset, size], binding) => (
      { binding, resource: { buffer: find(buffer), offset, size } }
    ));
    return gpu.scoped(`bind group '${label}'`, (device) => (
      device.createBindGroup({ label, layout: made.getBindGroupLayout(0), entries })
    ));
  });

  /** @type {ObjectCalls} */
  const calls = {
    createBuffers,
    createPipelines,
    createBindGroups,
    createPlan(label, json) {
      /** @type {[number[], number[]]} */
      const handles = JSON.parse(json);
      const [first, second] = handles.map((column) => column.map(find));
      return keep({ label, first, second, isCopy: first.map((object) => object instanceof GPUBuffer) });
    },
    release(json) {
      for (const handle of JSON.parse(json)) {
        objects.get(handle)?.destroy?.();
        objects.delete(handle);
      }
    },
  };
  return { objects, find, calls };
}

/** @type {Compiling} */
async function compiled(device, label, code) {
  // The module's own faults are read from its compilation info; this scope keeps them off the console.
  device.pushErrorScope("validation");
  const module = device.createShaderModule({ label, code });
  const scopeClosed = device.popErrorScope();
  const { messages } = await module.getCompilationInfo();
  await scopeClosed;
  const errors = messages.filter(({ type }) => type === "error");
  if (!errors.length) return module;
  const rows = errors.map(({ lineNum, linePos, message }) => [lineNum, linePos, message]);
  throw new BridgeFault("shader", JSON.stringify({ label, messages: rows }));
}
