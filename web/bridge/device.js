// The one GPU device: opened, asked for, lost. Nothing else in JavaScript knows whether it lives.

import { BridgeFault } from "./fault.js";

const SCOPES = /** @type {const} */ (["out-of-memory", "internal", "validation"]);
const NEWS_MILLISECONDS = 1000;

/** @typedef {ReturnType<typeof createDevice>} DeviceHolder */

/** For JSON, which looks into no prototype. @type {(attributes: object) => Record<string, any>} */
function plain(attributes) {
  /** @type {Record<string, any>} */
  const own = {};
  for (const name in attributes) own[name] = Reflect.get(attributes, name);
  return own;
}

/** What JSON would make of it has no attributes of prototypes, nor have those in its lists. @param {GPUAdapter} adapter */
function describe({ info }) {
  const described = plain(info);
  const matrices = described.subgroupMatrixConfigs ?? []; // of Chromium alone
  return { ...described, subgroupMatrixConfigs: Array.from(matrices, plain) };
}

/** @param {() => void} onReplaced whatever was made of a device before is dead */
export function createDevice(onReplaced) {
  /** @type {string[]} */
  const uncaptured = []; // texts of errors that no scope caught
  /** @type {GPUDevice | null} */
  let device = null;
  /** @type {string | null} */
  let lost = null; // why the device is gone

  async function requestAdapter() {
    const { gpu } = navigator;
    if (!gpu) throw new BridgeFault("no-webgpu", "navigator.gpu is missing in this browser");
    for (const featureLevel of ["core", "compatibility"]) {
      const adapter = await gpu.requestAdapter({ featureLevel, powerPreference: "high-performance" });
      if (adapter) return adapter;
    }
    throw new BridgeFault("no-adapter", "requestAdapter found no GPU");
  }

  /** @type {(adapter: GPUAdapter, featuresJson: string) => GPUFeatureName[]} */
  const featuresOf = ({ features }, featuresJson) => JSON.parse(featuresJson).filter((/** @type {string} */ name) => features.has(name));

  /** Only looks at it. @param {string} featuresJson those that are asked for */
  async function findAdapter(featuresJson) {
    const adapter = await requestAdapter();
    return JSON.stringify({ adapter: describe(adapter), features: featuresOf(adapter, featuresJson) });
  }

  /** @param {string} featuresJson those that are wanted where the adapter has them */
  async function openDevice(featuresJson) {
    if (device && !lost) device.destroy(); // one device at a time
    const adapter = await requestAdapter();
    const requiredFeatures = featuresOf(adapter, featuresJson);
    const requiredLimits = plain(adapter.limits);
    const opened = await adapter.requestDevice({ label: "inpage", requiredFeatures, requiredLimits }).catch((error) => {
      throw new BridgeFault("no-device", error.message);
    });
    device = opened;
    lost = null;
    uncaptured.length = 0;
    onReplaced();
    opened.addEventListener("uncapturederror", ({ error }) => uncaptured.push(error.message));
    opened.lost.then(({ reason, message }) => {
      if (opened === device) lost = `the GPU device was lost (${reason}): ${message}`;
    });
    return JSON.stringify({ adapter: describe(adapter), features: requiredFeatures, limits: plain(opened.limits) });
  }

  function destroyDevice() {
    device?.destroy();
    lost ??= "the GPU device was destroyed; request a new one";
  }

  /** The device, or a fault where there is none to use. */
  function live() {
    if (!device) throw new BridgeFault("unavailable", "no GPU device was opened");
    mustNotBeLost();
    return device;
  }

  function mustNotBeLost() {
    if (lost) throw new BridgeFault("lost", lost);
  }

  /** What fails may hear of a lost device before we do. @param {() => string} otherwise the fault in words */
  async function lossOrFault(otherwise) {
    await Promise.race([device?.lost, new Promise((resolve) => { setTimeout(resolve, NEWS_MILLISECONDS); })]);
    return lost ? new BridgeFault("lost", lost) : new BridgeFault("validation", otherwise());
  }

  /** @type {import("../calls.d.ts").Scoped} */
  async function scoped(what, create) {
    const scoping = live();
    for (const scope of SCOPES) scoping.pushErrorScope(scope);
    /** @type {Promise<any>} */
    const creating = new Promise((resolve) => { resolve(create(scoping)); });
    const pops = SCOPES.map(() => scoping.popErrorScope());
    const refused = await creating.then(() => null, (error) => error); // a descriptor, by the browser
    const errors = [...await Promise.all(pops), refused];
    mustNotBeLost();
    const caught = errors.findIndex(Boolean);
    if (caught >= 0) throw new BridgeFault(SCOPES.at(-1 - caught) ?? "validation", `${what}: ${errors[caught].message}`);
    return creating;
  }

  return {
    requestAdapter,
    calls: { findAdapter, openDevice, destroyDevice },
    device: () => device,
    uncaptured,
    live,
    mustNotBeLost,
    lossOrFault,
    scoped,
  };
}
