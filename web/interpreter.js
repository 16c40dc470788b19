// Starts Pyodide with native libraries in place before Python runs, at the same addresses everywhere: so a snapshot of
// its memory (tools/snapshot.mjs) can hold native modules.

const TABLE = 16384; // functions: Pyodide's own are fewer, and one of them is there in some browsers only

/** @import { Library, Options, Python } from "./calls.d.ts" */

/** @type {(indexURL: string, libraries: Library[], options: Options) => Promise<Python>} */
export async function loadPython(indexURL, libraries, options) {
  const { loadPyodide } = await import(`${indexURL}pyodide.mjs`);
  const { default: create } = await import(`${indexURL}pyodide.asm.mjs`);

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

  const { fetch, WebAssembly: { instantiateStreaming } } = globalThis;
  return new Promise((resolve, reject) => {
    // Pyodide only warns when its own files do not arrive or compile, then waits for ever.
    globalThis.fetch = (...args) => {
      const response = fetch(...args);
      response.then(
        ({ ok, url, status }) => ok || reject(new Error(`${url} answered ${status}`)),
        (error) => reject(new Error(`${args[0] instanceof Request ? args[0].url : args[0]} did not arrive: ${error.message}`)),
      );
      return response;
    };
    WebAssembly.instantiateStreaming = (...args) => {
      const instance = instantiateStreaming.apply(WebAssembly, args);
      instance.catch(reject);
      return instance;
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
