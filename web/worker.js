// The worker that owns Python and the GPU. It reports start-up phases, then passes calls to Python.
// Messages out: {event: "phase" | "ready" | "failed", …} and {id, json, done}; in: {id, call, args, aborted}
// or {id} alone, which cancels. A call's JSON is its events, then {result} or {error}; id 0 tells notices.

import { createBridge, BridgeFault } from "./bridge.js";

const bridge = createBridge();
const tell = (id, json, done) => postMessage({ id, json, done });
let runtime; // the Python module py_runtime.in_page

/** Runs one start-up phase, and says how long it took. */
async function phase(name, work) {
  postMessage({ event: "phase", name });
  const started = performance.now();
  try {
    const result = await work();
    postMessage({ event: "phase", name, seconds: (performance.now() - started) / 1000 });
    return result;
  } catch (error) {
    error.phase = name;
    throw error;
  }
}

/** Fails before anything large is fetched when there is no GPU to compute on. */
async function checkAdapter() {
  if (!navigator.gpu) throw new BridgeFault("no-webgpu", "navigator.gpu is missing in this worker");
  const adapter = await navigator.gpu.requestAdapter({ powerPreference: "high-performance" });
  if (!adapter) throw new BridgeFault("no-adapter", "navigator.gpu.requestAdapter() found no GPU");
}

async function fetchOk(url, options) {
  const response = await fetch(url, options);
  if (!response.ok) throw new Error(`${url} answered ${response.status} ${response.statusText}`);
  return response;
}

/** Pyodide only warns when its own files do not arrive or compile, then waits for ever: this rejects. */
function rejectingLostFiles(work) {
  const { fetch, WebAssembly: { instantiateStreaming } } = self;
  return new Promise((resolve, reject) => {
    self.fetch = (...args) => {
      const response = fetch(...args);
      response.then(
        ({ ok, url, status }) => ok || reject(new Error(`${url} answered ${status}`)),
        (error) => reject(new Error(`${args[0]?.url ?? args[0]} did not arrive: ${error.message}`)),
      );
      return response;
    };
    WebAssembly.instantiateStreaming = (...args) => {
      const instance = instantiateStreaming.apply(WebAssembly, args);
      instance.catch(reject);
      return instance;
    };
    work().then(resolve, reject);
  }).finally(() => {
    self.fetch = fetch;
    WebAssembly.instantiateStreaming = instantiateStreaming;
  });
}

async function startPython(site, base) {
  const indexURL = new URL(site.pyodide, base).href;
  const { loadPyodide } = await import(`${indexURL}pyodide.mjs`);
  const pyodide = await rejectingLostFiles(() => loadPyodide({ indexURL, packages: site.packages }));
  pyodide._api.on_fatal = (error) => { // a wasm trap leaves every promise of Python pending
    postMessage({ event: "failed", failure: { kind: "crashed", message: String(error) } });
  };
  bridge.attachHeap(() => pyodide._module.HEAPU8.buffer);
  pyodide.registerJsModule("inpage_bridge", { bridge });
  return pyodide;
}

async function installRuntime(pyodide, wheel) {
  pyodide.unpackArchive(await wheel, "wheel");
  return pyodide.pyimport("py_runtime.in_page");
}

async function openGpu(module, site) {
  const { result, error } = JSON.parse(await module.open_gpu(site, tell));
  if (error) throw Object.assign(new Error(error.message), error);
  return result;
}

async function start() {
  const base = new URL(".", self.location.href);
  await phase("adapter", checkAdapter);
  const site = await (await fetchOk(new URL("site.json", base), { cache: "no-cache" })).json();
  const wheel = fetchOk(new URL(site.runtime, base)).then((response) => response.arrayBuffer());
  wheel.catch(() => {}); // reported where it is awaited
  const pyodide = await phase("Python", () => startPython(site, base));
  const module = await phase("runtime", () => installRuntime(pyodide, wheel));
  const report = await phase("GPU", () => openGpu(module, base.href));
  runtime = { start: module.start, cancel: module.cancel }; // each look-up makes a proxy: one is enough
  postMessage({ event: "ready", report });
}

self.addEventListener("message", ({ data: { id, call, args, aborted } }) => {
  if (call) runtime.start(id, call, args);
  if (!call || aborted) runtime.cancel(id);
});

start().catch((error) => {
  const kind = error instanceof BridgeFault ? error.name : error.code ?? "start-failed";
  postMessage({ event: "failed", failure: { kind, phase: error.phase, message: error.message } });
});
