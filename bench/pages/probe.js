// What the adapter is and can do, measured without any engine: the roofline that figures are held against.

import { takeTasksIfRemote } from "./common.js";

const SOFTWARE_BYTES = 64 << 20;
const HARDWARE_BYTES = 1 << 30; // far past any cache
const WORKGROUPS = 2048;
const THREADS = 256;

const READ_ALL = `
@group(0) @binding(0) var<storage, read> source: array<vec4u>;
@group(0) @binding(1) var<storage, read_write> sums: array<vec4u>;

@compute @workgroup_size(${THREADS})
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  var sum = vec4u();
  for (var i = id.x; i < arrayLength(&source); i += groups.x * ${THREADS}u) {
    sum ^= source[i];
  }
  sums[id.x] = sum;
}`;
const ROUNDS = 1024;
const FLOPS_A_ROUND = 32; // four vectors of four, a multiplication and an addition each
const MULTIPLY = `
@group(0) @binding(1) var<storage, read_write> sums: array<vec4u>;

@compute @workgroup_size(${THREADS})
fn main(@builtin(global_invocation_id) id: vec3u) {
  let by = vec4f(1.0 / f32(2u + id.x % 7u));
  var a = vec4f(f32(id.x));
  var b = a + 1.0;
  var c = a + 2.0;
  var d = a + 3.0;
  for (var round = 0u; round < ${ROUNDS}u; round++) {
    a = fma(a, by, b);
    b = fma(b, by, c);
    c = fma(c, by, d);
    d = fma(d, by, a);
  }
  sums[id.x] = bitcast<vec4u>(a + b + c + d);
}`;
const COUNT_UP = `
@group(0) @binding(1) var<storage, read_write> sums: array<vec4u>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
  sums[id.x] += vec4u(1);
}`;

async function openAdapter() {
  const adapter = await navigator.gpu?.requestAdapter({ powerPreference: "high-performance" });
  if (!adapter) throw new Error("this browser offers no WebGPU adapter");
  return adapter;
}

/** @param {GPUAdapter} adapter */
function describe({ info, features, limits }) {
  const { vendor, architecture, device, description, isFallbackAdapter, subgroupMinSize, subgroupMaxSize } = info;
  return {
    vendor, architecture, device, description,
    software: isFallbackAdapter || /swiftshader|llvmpipe/i.test(`${architecture} ${device} ${description}`),
    subgroups: [subgroupMinSize, subgroupMaxSize],
    features: [...features].sort(),
    max_binding_bytes: limits.maxStorageBufferBindingSize,
  };
}

/** Name and full version, which the user agent's text no longer has. */
async function browserName() {
  const { userAgentData } = /** @type {any} */ (navigator); // Chromium's alone
  const { fullVersionList } = await userAgentData.getHighEntropyValues(["fullVersionList"]);
  const isChromium = (/** @type {{ brand: string }} */ { brand }) => /Chrom/.test(brand);
  const { brand, version } = fullVersionList.find(isChromium);
  return `${brand} ${version}`;
}

/**
 * @param {GPUDevice} device
 * @param {string} code
 */
async function pipelineOf(device, code) {
  const module = device.createShaderModule({ code });
  return device.createComputePipelineAsync({ layout: "auto", compute: { module, entryPoint: "main" } });
}

/**
 * Seconds that `count` dispatches take, from the submit until the GPU is done.
 * @param {GPUDevice} device
 * @param {GPUComputePipeline} pipeline
 * @param {[number, GPUBuffer][]} bindings
 * @param {number} workgroups
 * @param {number} count
 */
async function secondsOf(device, pipeline, bindings, workgroups, count) {
  const entries = bindings.map(([binding, buffer]) => ({ binding, resource: { buffer } }));
  const group = device.createBindGroup({ layout: pipeline.getBindGroupLayout(0), entries });
  const encoder = device.createCommandEncoder();
  const pass = encoder.beginComputePass();
  pass.setPipeline(pipeline);
  pass.setBindGroup(0, group);
  for (let i = 0; i < count; i++) pass.dispatchWorkgroups(workgroups);
  pass.end();
  const started = performance.now();
  device.queue.submit([encoder.finish()]);
  await device.queue.onSubmittedWorkDone();
  return (performance.now() - started) / 1000;
}

/**
 * @param {number} times
 * @param {() => Promise<number>} measure
 */
async function best(times, measure) {
  let least = Infinity;
  for (let i = 0; i < times; i++) least = Math.min(least, await measure());
  return least;
}

Object.assign(globalThis, { bench: {
  async open() {
    const adapter = await openAdapter();
    const about = describe(adapter);
    const bytes = about.software ? SOFTWARE_BYTES : HARDWARE_BYTES;
    const { maxStorageBufferBindingSize, maxBufferSize } = adapter.limits;
    const device = await adapter.requestDevice({ requiredLimits: { maxStorageBufferBindingSize, maxBufferSize } });
    const source = device.createBuffer({ size: bytes, usage: GPUBufferUsage.STORAGE });
    const sums = device.createBuffer({ size: WORKGROUPS * THREADS * 16, usage: GPUBufferUsage.STORAGE });
    const read = await pipelineOf(device, READ_ALL);
    const count = await pipelineOf(device, COUNT_UP);
    const passes = about.software ? 1 : 20;
    const readSeconds = await best(5, () => secondsOf(device, read, [[0, source], [1, sums]], WORKGROUPS, passes));
    const chain = await best(5, () => secondsOf(device, count, [[1, sums]], 9, 450));
    const multiply = await pipelineOf(device, MULTIPLY);
    const workgroups = about.software ? 16 : WORKGROUPS;
    const multiplySeconds = await best(3, () => secondsOf(device, multiply, [[1, sums]], workgroups, passes));
    device.destroy();
    return {
      ...about,
      browser: await browserName(),
      read_bytes_per_s: (passes * bytes) / readSeconds,
      dispatch_s: chain / 450,
      arithmetic_per_s: (passes * workgroups * THREADS * ROUNDS * FLOPS_A_ROUND) / multiplySeconds,
    };
  },
} });
takeTasksIfRemote();
