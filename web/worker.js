// The worker that owns Python and the device. It reports start-up phases, then passes calls to Python. Its messages are
// in calls.d.ts.

import { createBridge, BridgeFault } from "./bridge.js";
import { startWorker } from "./bridge/start_worker.js";
import { fetchOk, loadPython } from "./interpreter.js";
import { unzip } from "./unzip.js";

/** @import { DeviceKind } from "./inpage.d.ts" */
/** @import { ImportRuntime, Library, OpenEngine, Phased, Post, RestorePython, Runtime, StartPython, Unzip } from "./calls.d.ts" */

const VECTORS = new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 10, 1, 8, 0, 65, 0, 253, 15, 253, 98, 11]); // a module that uses them
const base = new URL(".", import.meta.url);
const bridge = createBridge();
/** @type {Post} */
const tell = (id, json, done) => postMessage({ id, json, done });
/** @type {Runtime} */
let runtime;
/** @type {Int32Array | undefined} */
let shared; // a signal for Python, the turn and the call it is for, the turns of the event loop so far
/** @type {string | undefined} */
let outerPage; // by somebody else's page: JSON for Python
/** @type {DeviceKind | null | undefined} */
let wantedDevice; // by the page; else by the site, or whichever is faster
const wanted = () => (shared?.[1] === shared?.[3] ? shared?.[2] : -1); // -1: it comes too late

/** Says how long it took. @type {Phased} */
async function phase(name, work) {
  postMessage({ event: "phase", name });
  const started = performance.now();
  try {
    const result = await work();
    postMessage({ event: "phase", name, seconds: (performance.now() - started) / 1000 });
    return result;
  } catch (error) {
    throw Object.assign(/** @type {Error} */ (error), { phase: name });
  }
}

/** Unzips in a worker of its own, while this one makes a Python for what comes of it. @type {Unzip} */
async function unzipped(url, size) {
  const unzipper = startWorker(new URL("./unzip_worker.js", import.meta.url), { type: "module" });
  const bytes = await new Promise((done) => {
    unzipper.addEventListener("message", ({ data }) => done(data));
    unzipper.addEventListener("error", () => done(null)); // a page of somebody else's may forbid it
    unzipper.postMessage({ url, size });
  });
  unzipper.terminate();
  return bytes ?? unzip(url, size);
}

/** As tools/snapshot.mjs left it. @type {RestorePython} */
async function restorePython(indexURL, core, { memory, size, libraries, wheels }) {
  /** @type {Library[]} */
  const compiled = libraries.map(([path, url]) => [path, WebAssembly.compileStreaming(fetchOk(url))]);
  const python = await loadPython(indexURL, core, compiled, {
    _loadSnapshot: unzipped(new URL(memory, base).href, size),
    _snapshotDeserializer: (name) => (name === "bridge" ? bridge : { bridge }),
  });
  python.pyimport("py_runtime.app.snapshot").settle(JSON.stringify(wheels), base.href);
  return python;
}

/** @type {StartPython} */
async function startPython({ pyodide, packages, snapshot }) {
  const indexURL = new URL(pyodide, base).href;
  const core = WebAssembly.compileStreaming(fetchOk(`${pyodide}pyodide.asm.wasm`)); // Pyodide would wait for the snapshot
  const restored = snapshot && await restorePython(indexURL, core, snapshot).catch((error) => {
    console.warn(`Python starts without its snapshot: ${error.message}`);
  });
  const python = restored ?? await loadPython(indexURL, core, [], { packages });
  python._api.on_fatal = (/** @type {unknown} */ error) => { // a wasm trap leaves every promise of Python pending
    postMessage({ event: "failed", failure: { kind: "crashed", message: String(error) } });
  };
  if (shared) python.setInterruptBuffer(shared);
  bridge.attachHeap(() => python._module.HEAPU8.buffer);
  return { python, isRestored: python === restored };
}

/** @type {ImportRuntime} */
async function importRuntime({ python, isRestored }, wheel) {
  if (!isRestored) {
    python.registerJsModule("inpage_bridge", { bridge });
    python.unpackArchive(await (await fetchOk(wheel)).arrayBuffer(), "wheel");
  }
  return python.pyimport("py_runtime.app.in_page");
}

/** The reason why there is none, unless the CPU computes instead. @type {(device?: DeviceKind) => Promise<any>} */
async function lookForAdapter(device) {
  if (device === "cpu") return;
  const fault = await bridge.requestAdapter().then(() => null, (error) => error);
  if (fault && (device === "gpu" || !WebAssembly.validate(VECTORS))) throw fault; // the page ends this worker
  return fault;
}

/** @type {OpenEngine} */
async function openEngine(module, { hub, device }, noAdapter) {
  const { result, error } = JSON.parse(await module.open_engine(base.href, tell, wanted, hub, outerPage, device));
  if (error) throw noAdapter ?? Object.assign(new Error(error.message), error);
  return result;
}

async function start() {
  // For good: so the page hears of this worker's end, and the next one waits for it.
  await new Promise((held) => { navigator.locks.request(self.name, () => new Promise(() => held(null))); });
  postMessage({ event: "alive" });
  const site = fetchOk("site.json", { cache: "no-cache" }).then((response) => response.json())
    .then((described) => ({ ...described, device: wantedDevice ?? described.device }));
  const python = site.then(startPython); // while the adapter is looked for
  python.catch(() => {}); // awaited below
  const noAdapter = await phase("adapter", () => site.then(({ device }) => lookForAdapter(device)));
  const started = await phase("Python", () => python);
  const described = await site;
  const module = await phase("runtime", () => importRuntime(started, described.runtime));
  const report = await phase("GPU", () => openEngine(module, described, noAdapter));
  runtime = { start: module.start, cancel: module.cancel }; // each look-up makes a proxy: one is enough
  postMessage({ event: "ready", report: { ...report, isRestored: started.isRestored } });
}

/** @param {any} error */
function fail(error, kind = error instanceof BridgeFault ? error.name : error.code ?? "start-failed") {
  postMessage({ event: "failed", failure: { kind, phase: error.phase, message: error.message } });
}

addEventListener("message", ({ data }) => {
  const { id, call, fields, files = [], aborted, question } = data;
  if (shared) shared[3]++;
  if (question) return postMessage({ event: "answer", question });
  if (!id) {
    ({ shared, outerPage, device: wantedDevice } = data);
    return start().catch(fail);
  }
  for (const [number, file] of files) bridge.given.set(number, file);
  try {
    if (call) runtime.start(id, call, fields);
    if (!call || aborted) runtime.cancel(id);
  } catch (error) { // Python is no more
    fail(error, "crashed");
  }
});
addEventListener("messageerror", () => fail(new Error("a message could not be read"), "crashed"));
