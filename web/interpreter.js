// Starts Pyodide with native libraries in place before Python runs, at the same addresses everywhere: so a snapshot of
// its memory (tools/snapshot.mjs) can hold native modules.

const TABLE = 16384; // functions: Pyodide's own are fewer, and one of them is there in some browsers only

/** @import { Compiled, FetchOk, LoadPython, Python } from "./calls.d.ts" */

const { fetch } = globalThis;

/** @type {FetchOk} */
export async function fetchOk(path, options) {
  const url = new URL(path, import.meta.url);
  const response = await fetch(url, options).catch(({ message }) => {
    throw new Error(`${url} did not arrive: ${message}`);
  });
  if (!response.ok) throw new Error(`${url} answered ${response.status} ${response.statusText}`);
  return response;
}

/** @type {LoadPython} */
export async function loadPython(indexURL, core, libraries, options) {
  const scripts = ["pyodide.mjs", "pyodide.asm.mjs"].map((name) => import(`${indexURL}${name}`));
  const [{ loadPyodide }, { default: create }] = await Promise.all(scripts);

  async function place(/** @type {any} */ module) {
    module.addRunDependency("libraries");
    module.wasmTable.grow(TABLE - module.wasmTable.length);
    for (const [path, library] of libraries) {
      module.newDSO(path, undefined, module.loadWebAssemblyModule(await library, {}, path, {}));
    }
    if (options._loadSnapshot) {
      const snapshot = new Int32Array(await options._loadSnapshot);
      const offset = module.HEAP32[module.__PyEM_EMSCRIPTEN_TRAMPOLINE_OFFSET / 4];
      const trampoline = (module.__PyRuntime + offset) / 4; // what is in this place is the browser's own
      snapshot[snapshot[1] / 4 + trampoline] = module.HEAP32[trampoline];
      module.growMemory(snapshot.byteLength);
    }
    module.removeRunDependency("libraries");
  }

  const { instantiateStreaming } = WebAssembly;
  return new Promise((resolve, reject) => {
    // Pyodide only warns when its own files do not arrive or compile, then waits for ever.
    core?.catch(reject);
    globalThis.fetch = async (file, how) => {
      if (core && `${file}`.endsWith(".wasm")) return new Response(); // that is on its way
      const response = fetchOk(`${file}`, how);
      response.catch(reject);
      return response;
    };
    WebAssembly.instantiateStreaming = async (_, imports) => {
      const module = await /** @type {Compiled} */ (core);
      const instance = WebAssembly.instantiate(module, imports);
      instance.catch(reject);
      return { module, instance: await instance };
    };
    const createPyodideModule = (/** @type {any} */ settings) => {
      settings.preRun.push((/** @type {any} */ module) => { place(module).catch(reject); });
      return create(settings);
    };
    loadPyodide({ indexURL, createPyodideModule, ...options }).then((/** @type {Python} */ python) => {
      delete options._loadSnapshot; // or its memory would stay
      delete python._api.config._loadSnapshot;
      resolve(python);
    }, reject);
  }).finally(() => {
    globalThis.fetch = fetch;
    WebAssembly.instantiateStreaming = instantiateStreaming;
  });
}
