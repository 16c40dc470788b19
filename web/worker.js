// The worker that owns Python and the GPU. It reports start-up phases, then passes calls to Python. Its messages are
// in calls.d.ts.

import { createBridge, BridgeFault } from "./bridge.js";
import { loadPython } from "./interpreter.js";

const base = new URL(".", import.meta.url);
const bridge = createBridge();
/** @type {(id: number, json: string, done: boolean) => void} */
const tell = (id, json, done) => postMessage({ id, json, done });
/** @type {{ start: (id: number, call: string, args: string) => void, cancel: (id: number) => void }} */
let runtime; // the Python module py_runtime.app.in_page
/** @type {Int32Array | undefined} */
let shared; // a signal for Python, the turn and the call it is for, the turns of the event loop so far
/** @type {string | undefined} */
let outerPage; // by somebody else's page: JSON for Python
const wanted = () => (shared?.[1] === shared?.[3] ? shared?.[2] : -1); // -1: it comes too late

/** @import { Library, Site, Snapshot, Started } from "./calls.d.ts" */

/** Says how long it took. @type {<Result>(name: string, work: () => Result | Promise<Result>) => Promise<Result>} */
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

/** @type {(path: string, options?: RequestInit) => Promise<Response>} */
async function fetchOk(path, options) {
  const url = new URL(path, base);
  const response = await fetch(url, options);
  if (!response.ok) throw new Error(`${url} answered ${response.status} ${response.statusText}`);
  return response;
}

/** @param {string} path */
async function unzipped(path) {
  const { body } = /** @type {Response & { body: {} }} */ (await fetchOk(path));
  return new Response(body.pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
}

/** As tools/snapshot.mjs left it. @type {(indexURL: string, snapshot: Snapshot) => Promise<Started["python"]>} */
async function restorePython(indexURL, { memory, libraries, wheels }) {
  /** @type {Library[]} */
  const compiled = libraries.map(([path, url]) => [path, WebAssembly.compileStreaming(fetchOk(url))]);
  const python = await loadPython(indexURL, compiled, {
    _loadSnapshot: unzipped(memory),
    _snapshotDeserializer: (name) => (name === "bridge" ? bridge : { bridge }),
  });
  python.pyimport("py_runtime.app.snapshot").settle(JSON.stringify(wheels), base.href);
  return python;
}

/**
 * @param {Site} site
 * @returns {Promise<Started>}
 */
async function startPython({ pyodide, packages, snapshot }) {
  const indexURL = new URL(pyodide, base).href;
  const restored = snapshot && await restorePython(indexURL, snapshot).catch((error) => {
    console.warn(`Python starts without its snapshot: ${error.message}`);
  });
  const python = restored ?? await loadPython(indexURL, [], { packages });
  python._api.on_fatal = (/** @type {unknown} */ error) => { // a wasm trap leaves every promise of Python pending
    postMessage({ event: "failed", failure: { kind: "crashed", message: String(error) } });
  };
  if (shared) python.setInterruptBuffer(shared);
  bridge.attachHeap(() => python._module.HEAPU8.buffer);
  return { python, isRestored: python === restored };
}

/**
 * @param {Started} started
 * @param {string} wheel
 */
async function importRuntime({ python, isRestored }, wheel) {
  if (!isRestored) {
    python.registerJsModule("inpage_bridge", { bridge });
    python.unpackArchive(await (await fetchOk(wheel)).arrayBuffer(), "wheel");
  }
  return python.pyimport("py_runtime.app.in_page");
}

/**
 * @param {any} module
 * @param {string} [hub]
 */
async function openGpu(module, hub) {
  const { result, error } = JSON.parse(await module.open_gpu(base.href, tell, wanted, hub, outerPage));
  if (error) throw Object.assign(new Error(error.message), error);
  return result;
}

async function start() {
  // For good: so the page hears of this worker's end, and the next one waits for it.
  await new Promise((held) => { navigator.locks.request(self.name, () => new Promise(() => held(null))); });
  postMessage({ event: "alive" });
  const site = fetchOk("site.json", { cache: "no-cache" }).then((response) => response.json());
  const python = site.then(startPython); // while the adapter is looked for
  python.catch(() => {}); // awaited below
  await phase("adapter", bridge.requestAdapter); // without one the page ends this worker
  const started = await phase("Python", () => python);
  const { runtime: wheel, hub } = await site;
  const module = await phase("runtime", () => importRuntime(started, wheel));
  const report = await phase("GPU", () => openGpu(module, hub));
  runtime = { start: module.start, cancel: module.cancel }; // each look-up makes a proxy: one is enough
  postMessage({ event: "ready", report: { ...report, isRestored: started.isRestored } });
}

/** @param {any} error */
function fail(error, kind = error instanceof BridgeFault ? error.name : error.code ?? "start-failed") {
  postMessage({ event: "failed", failure: { kind, phase: error.phase, message: error.message } });
}

addEventListener("message", ({ data }) => {
  const { id, call, args, files = [], aborted, question } = data;
  if (shared) shared[3]++;
  if (question) return postMessage({ event: "answer", question });
  if (!id) {
    ({ shared, outerPage } = data);
    return start().catch(fail);
  }
  for (const [number, file] of files) bridge.given.set(number, file);
  try {
    if (call) runtime.start(id, call, args);
    if (!call || aborted) runtime.cancel(id);
  } catch (error) { // Python is no more
    fail(error, "crashed");
  }
});
addEventListener("messageerror", () => fail(new Error("a message could not be read"), "crashed"));
