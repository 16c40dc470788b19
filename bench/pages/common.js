// What every page of the bench offers its driver: globalThis.bench, with open, generate and memory.

/**
 * @typedef {{ ids: number[], text: string, wantsIds: boolean }} Prompt
 * @typedef {(tokens: (number | null)[]) => void} OnTokens
 * @typedef {{ model: string, device: string, threads: number, context: number, kernels?: import("../../web/inpage.d.ts").Kernels,
 *   kv?: import("../../web/inpage.d.ts").KvType, anew?: boolean }} LoadOptions anew: what was measured of kernels before is forgotten
 *
 * @typedef {object} Engine
 * @property {Promise<unknown>} ready resolves once the engine could load a model
 * @property {(options: LoadOptions) => Promise<unknown>} load
 * @property {(prompt: Prompt, count: number, onTokens: OnTokens) => Promise<any>} run generates greedily, past any
 *   end of text, and hands out token ids as the engine gives them (null where it gives text alone)
 * @property {() => number | Promise<number>} [gpuBytes] what it holds
 * @property {() => unknown} [gpuOps] where its time goes
 * @property {() => unknown} [submission] what submitting costs
 * @property {(prompt: Prompt, count: number) => unknown} [glass] what looking into the model costs, and steering it
 * @property {(prompt: Prompt, count: number) => unknown} [speculation] what verifying several tokens costs, and gains
 * @property {() => object} [facts] what it is
 */

/** @type {typeof globalThis & { bench?: Record<string, (...args: any[]) => unknown> }} */
const world = globalThis;

const now = () => performance.now(); // milliseconds since the page was opened

/** @param {Engine} engine */
export function offer({
  ready, load, run, gpuBytes = () => 0, gpuOps = () => null, submission = () => null, glass = () => null,
  speculation = () => null, facts = () => ({}),
}) {
  let reached = 0;
  world.bench = {
    async open(/** @type {LoadOptions} */ options) {
      await ready;
      const started = now();
      await load(options);
      return { load_s: (now() - started) / 1000, ready_s: now() / 1000, facts: await facts() };
    },
    /**
     * The ids, marks [milliseconds since the call, ids until then], and what the engine says itself.
     * @param {Prompt} prompt
     * @param {number} count
     */
    async generate(prompt, count) {
      reached = 0;
      /** @type {(number | null)[]} */
      const ids = [];
      /** @type {[number, number][]} */
      const marks = [];
      const started = now();
      const usage = await run(prompt, count, (tokens) => {
        ids.push(...tokens);
        reached = ids.length;
        marks.push([now() - started, reached]);
      });
      return { ids, marks, usage };
    },
    /** How many tokens the generation in progress has. */
    reached: () => reached,
    gpuOps,
    submission,
    glass,
    speculation,
    /** The heap is the page's own, without its workers'. */
    memory: async () => ({ js_heap_bytes: usedHeap(), gpu_bytes: await gpuBytes() }),
  };
  takeTasksIfRemote();
}

/** Chromium alone tells. */
function usedHeap() {
  /** @type {Performance & { memory?: { usedJSHeapSize: number } }} */
  const { memory } = performance;
  return memory?.usedJSHeapSize;
}

/** Where nobody drives this browser: asks the server what to do, and posts what came of it. */
export async function takeTasksIfRemote() {
  if (!new URLSearchParams(location.search).has("remote")) return;
  const url = `/bench-task${location.search}`;
  /** @type {{ result?: unknown, error?: string }} */
  let done = {};
  for (;;) {
    const { method, args } = await (await fetch(url, { method: "POST", body: JSON.stringify(done) })).json();
    try {
      done = { result: await world.bench?.[method](...args) };
    } catch (error) {
      done = { error: error instanceof Error ? error.message : String(error) };
    }
  }
}
