// Writes a snapshot of the memory of a Python that has the page's packages imported (see tools/snapshot.py).
// node tools/snapshot.mjs '{"pyodide": folder, "wheels": [file], "libraries": [[path in Python's files, file]],
//   "site_packages": path in Python's files, "out": file}'

import { readFileSync, writeFileSync } from "node:fs";

import { createBridge } from "../web/bridge.js";
import { loadPython } from "../web/interpreter.js";

/**
 * @typedef {object} Given
 * @property {string} pyodide a folder
 * @property {string[]} wheels
 * @property {[path: string, file: string][]} libraries
 * @property {string} site_packages
 * @property {string} out
 */

/** @param {Given} given */
async function takeSnapshot({ pyodide: folder, wheels, libraries, site_packages: extractDir, out }) {
  const bridge = createBridge();
  Object.assign(globalThis, { location: { href: "" } }); // a page's own takes its place
  /** @type {import("../web/calls.d.ts").Library[]} */
  const compiled = libraries.map(([path, file]) => [path, WebAssembly.compile(readFileSync(file))]);
  pretendToSuspend();
  const env = { PYTHONHASHSEED: "0" }; // equal inputs give nearly equal snapshots
  const pyodide = await loadPython(folder, null, compiled, { _makeSnapshot: true, env });

  // Not by loadPackage(): it loads every native library of a package, used or not.
  for (const wheel of wheels) {
    pyodide.unpackArchive(new Uint8Array(readFileSync(wheel)), "wheel", { extractDir });
  }
  pyodide.registerJsModule("inpage_bridge", { bridge });
  pyodide.pyimport("py_runtime.app.snapshot").fill();

  const placed = ["__main__", ...libraries.map(([path]) => path)];
  const others = Object.keys(pyodide._module.LDSO.loadedLibsByName).filter((path) => !placed.includes(path));
  if (others.length) throw new Error(`LIBRARIES in tools/snapshot.py lacks ${others}`);

  eraseFreeMemory(pyodide._module);
  const serializer = (/** @type {any} */ object) => {
    if (object === bridge) return "bridge";
    if (object.bridge === bridge) return "module";
    throw new Error(`no page could restore the object ${object}`);
  };
  writeFileSync(out, pyodide.makeMemorySnapshot({ serializer }));
}

/**
 * Python's memory says whether the browser can suspend WebAssembly, for `time.sleep` and `input`. A page's Python asks its own browser
 * before it does; one that this Node had found unable would never ask.
 */
function pretendToSuspend() {
  Object.assign(WebAssembly, { Suspending: function given(/** @type {any} */ own) { return own; }, promising: (/** @type {any} */ own) => own });
}

/**
 * What was freed is still in memory, and would be sent: it is taken once more, as zeros.
 * @param {any} module
 */
function eraseFreeMemory(module) {
  const end = module._sbrk(0);
  /** @type {number[]} */
  const taken = [];
  for (const bytes of [1 << 20, 1 << 16, 1 << 12, 1 << 8, 1 << 5]) {
    let address;
    do taken.push(address = module._calloc(bytes, 1)); while (address + bytes <= end);
  }
  for (const address of taken) module._free(address);
}

try {
  await takeSnapshot(JSON.parse(process.argv[2]));
} catch (error) {
  console.error(/** @type {Error} */ (error).message); // without the source line: Pyodide has a megabyte in one
  process.exitCode = 1;
}
