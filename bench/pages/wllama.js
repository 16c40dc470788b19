// Drives wllama: llama.cpp as WebAssembly, with the GGUF itself.

import { offer } from "./common.js";
// @ts-expect-error: served beside this page, from the bench's own node_modules
import { LoggerWithoutDebug, Wllama } from "./wllama/index.js";

const wllama = new Wllama(
  { default: new URL("./wllama/wasm/wllama.wasm", import.meta.url).href },
  { logger: LoggerWithoutDebug, suppressNativeLog: true },
);

/** @param {import("./common.js").LoadOptions} options */
async function load({ model, threads, context }) {
  const url = new URL(`./models/${model}`, import.meta.url).href;
  await wllama.loadModelFromUrl(url, { n_ctx: context, n_threads: threads, n_gpu_layers: 0, n_parallel: 1 });
}

/**
 * It takes text alone; the prompts are such that it reads them as the same ids. It tells the ids of its tokens
 * with their probabilities only, so they are asked for where they are needed.
 * @type {import("./common.js").Engine["run"]}
 */
async function run({ ids, text, wantsIds }, count, onTokens) {
  let prompted = 0;
  let predicted = 0;
  await wllama.createCompletion({
    prompt: text,
    max_tokens: count,
    temperature: 0,
    top_k: 1,
    samplers: ["top_k"],
    ignore_eos: true,
    cache_prompt: false,
    timings_per_token: true,
    stream: true,
    ...(wantsIds ? { logprobs: 1 } : {}),
    onData(/** @type {any} */ { choices, timings }) {
      const fresh = timings.predicted_n - predicted;
      prompted = timings.prompt_n;
      predicted = timings.predicted_n;
      if (fresh) onTokens(choices[0].logprobs?.content.map((/** @type {{ id: number }} */ { id }) => id) ?? Array(fresh).fill(null));
    },
  });
  if (prompted !== ids.length) throw new Error(`wllama read ${prompted} tokens, not ${ids.length}`);
}

offer({
  ready: Promise.resolve(),
  load,
  run,
  facts: () => ({ version: Wllama.getLibllamaVersion(), threads: wllama.getNumThreads() }),
});
