// What every page of the bench offers its driver: globalThis.bench, with open, generate and memory.

const now = () => performance.now(); // milliseconds since the page was opened

/**
 * `ready` resolves once the engine could load a model; load(options) loads it; run(prompt, count, onTokens)
 * generates greedily, past any end of text, and hands out token ids as the engine gives them (null where it gives
 * text alone); gpuBytes(), gpuOps(), submission() and facts() tell what the engine holds, where its time goes, what
 * submitting costs, and what it is.
 */
export function offer({ ready, load, run, gpuBytes = () => 0, gpuOps = () => null, submission = () => null, facts = () => ({}) }) {
  let reached = 0;
  globalThis.bench = {
    async open(options) {
      await ready;
      const started = now();
      await load(options);
      return { load_s: (now() - started) / 1000, ready_s: now() / 1000, facts: await facts() };
    },
    /** The ids, marks [milliseconds since the call, ids until then], and what the engine says itself. */
    async generate(prompt, count) {
      reached = 0;
      const ids = [];
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
    /** The heap is the page's own, without its workers'. */
    memory: async () => ({ js_heap_bytes: performance.memory?.usedJSHeapSize, gpu_bytes: await gpuBytes() }),
  };
  takeTasksIfRemote();
}

/** Where nobody drives this browser: asks the server what to do, and posts what came of it. */
export async function takeTasksIfRemote() {
  if (!new URLSearchParams(location.search).has("remote")) return;
  const url = `/bench-task${location.search}`;
  let done = {};
  for (;;) {
    const { method, args } = await (await fetch(url, { method: "POST", body: JSON.stringify(done) })).json();
    try {
      done = { result: await globalThis.bench[method](...args) };
    } catch (error) {
      done = { error: String(error?.message ?? error) };
    }
  }
}
