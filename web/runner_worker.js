// The worker that runs code of answers, with a Python of its own. It is started by runner.html, whose policy lets it connect to nothing:
// Pyodide's files come from the page, by name, through a port.

/** @type {MessagePort} */
let port;
/** @type {Map<number, (content: ArrayBuffer | null) => void>} */
const wanted = new Map();
let count = 0;

/** A file of Pyodide's, or the runtime's wheel, if there is one of that name. @type {(name: string) => Promise<ArrayBuffer | null>} */
const file = (name) => new Promise((resolve) => {
  wanted.set(++count, resolve);
  port.postMessage({ wants: name, number: count });
});

const TYPES = { wasm: "application/wasm", json: "application/json" };

/** @param {string} name */
async function module(name) {
  const url = URL.createObjectURL(new Blob([await file(name) ?? ""], { type: "text/javascript" }));
  return import(url);
}

async function start() {
  globalThis.fetch = async (url) => {
    const name = String(url).split("/").at(-1) ?? "";
    const type = TYPES[/** @type {keyof typeof TYPES} */ (name.split(".").at(-1))] ?? "application/octet-stream";
    const content = await file(name);
    return new Response(content, { status: content ? 200 : 404, headers: { "content-type": type } });
  };
  const [{ loadPyodide }, { default: createPyodideModule }] = await Promise.all(["pyodide.mjs", "pyodide.asm.mjs"].map(module));
  const python = await loadPyodide({ indexURL: "https://runner.invalid/", createPyodideModule, packages: ["numpy"] });
  python.unpackArchive(/** @type {ArrayBuffer} */ (await file("runtime.whl")), "wheel");
  return python.pyimport("py_runtime.notebook.alone");
}

/** @type {ReturnType<typeof start> | undefined} */
let starting;

/** @param {{ run?: string, gives?: number, content?: ArrayBuffer | null, number?: number, value?: unknown }} told */
async function hear({ run, gives, content = null, number = 0, value }) {
  if (gives) {
    wanted.get(gives)?.(content);
    wanted.delete(gives);
  } else if (run !== undefined) {
    try {
      const alone = await (starting ??= start());
      port.postMessage({ started: true });
      port.postMessage({ done: await alone.run(run, (/** @type {string} */ json) => port.postMessage({ told: json })) });
    } catch (error) {
      port.postMessage({ failed: String(error) });
    }
  } else (await starting)?.answer(number, value);
}

addEventListener("message", ({ ports }) => {
  [port] = ports;
  port.onmessage = ({ data }) => hear(data);
}, { once: true });
