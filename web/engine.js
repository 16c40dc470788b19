// The engine for other people's pages: the npm package's module (docs/embedding.md). engine.d.ts has its types.

import { createInpage } from "./api.js";
import { startWorker } from "./bridge/start_worker.js";
import { sharedWorker } from "./shared_tab.js";

const PHASES = ["adapter", "Python", "runtime", "GPU"];
const BESIDE = import.meta.url.slice(0, import.meta.url.lastIndexOf("/") + 1); // no new URL(…): bundlers would look for a file to copy

/** @import { Engine, EngineOptions, EngineProgress } from "./engine.d.ts" */

/** What has a slash is an address: of the page's, or a whole one. @type {(where: string) => string} */
const addressOf = (where) => (where.includes("/") ? new URL(where, document.baseURI).href : where);

/** @param {string} assets */
function checkSharing(assets) {
  const isElsewhere = new URL(assets).origin !== location.origin;
  if (!isElsewhere && globalThis.SharedWorker) return;
  const why = isElsewhere ? `its files must lie on their own origin, not at ${assets}` : "this browser has no SharedWorker";
  throw Object.assign(new Error(`tabs cannot share an engine: ${why}`), { code: isElsewhere ? "invalid_request" : "no-webgpu" });
}

/** @type {(options?: EngineOptions) => Promise<Engine>} */
export async function createEngine({ assetsURL = BESIDE, models = [], storage = true, shared = false, device = null, onProgress = () => {} } = {}) {
  const assets = new URL(assetsURL, document.baseURI).href.replace(/\/?$/, "/");
  const offered = models.map(addressOf);
  if (shared) checkSharing(assets);
  const outerPage = JSON.stringify({ page: shared ? location.origin : location.href, models: offered, storage });
  let started = 0; // phases
  /** @param {import("./calls.d.ts").Phase} phase */
  const onPhase = ({ name, seconds }) => {
    if (seconds !== undefined) started++;
    const text = `starting: ${name}`;
    onProgress({ phase: "start", messages: [], text, done: started, total: PHASES.length, fraction: started / PHASES.length, seconds: seconds ?? 0 });
  };
  const created = createInpage({
    newWorker: (options) => (shared ? sharedWorker(`${assets}shared_worker.js`, `inpage ${assets} ${device} ${outerPage}`) : startWorker(`${assets}worker.js`, options)),
    outerPage,
    device,
    kernels: null,
    kv: null,
    onBusy() {},
    onFailure() {}, // calls reject with it
    onHub: async () => (offered.some((model) => model.startsWith("hf:")) ? { token: null } : null),
    onModel() {},
    onPhase,
    onRestart() {},
  });
  const { inpage } = created;
  const { load, restart } = inpage;
  /** @type {Engine} */
  const engine = Object.assign(inpage, {
    load: (/** @type {any} */ where, options = {}) =>
      load(typeof where === "string" ? addressOf(where) : where, { onProgress, ...options }),
    restart(options = {}) {
      started = 0;
      return restart({ onProgress, ...options });
    },
    async dispose() {
      created.client.end({ code: "disposed", message: "the engine was disposed of" });
      await navigator.locks.request(created.lock, () => {}); // it is free once the worker has ended, and its device
    },
  });
  created.client.start();
  await engine.ready.catch((error) => {
    if (error.code === "crashed") error.message += ` (its script is ${assets}worker.js: can this page read that?)`;
    throw error;
  });
  return engine;
}
