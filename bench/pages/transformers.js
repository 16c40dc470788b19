// Drives transformers.js, on WebGPU or on wasm, as its makers set it up for a page.

import { gpuBytes } from "./gpu_memory.js";
import { offer } from "./common.js";
// @ts-expect-error: served beside this page, from the bench's own node_modules
import { AutoModelForCausalLM, env, Tensor } from "./transformers/transformers.min.js";

const ORT = new URL("./onnxruntime/ort-wasm-simd-threaded.asyncify", import.meta.url).href;
env.allowRemoteModels = false;
env.allowLocalModels = true;
env.localModelPath = new URL("./models/", import.meta.url).href;
env.backends.onnx.wasm.wasmPaths = { mjs: `${ORT}.mjs`, wasm: `${ORT}.wasm` };

/** @type {any} */
let model;

/** @param {import("./common.js").LoadOptions} options */
async function load({ device, threads }) {
  env.backends.onnx.wasm.numThreads = threads;
  model = await AutoModelForCausalLM.from_pretrained(device, { dtype: "q4", device });
}

/** @type {import("./common.js").Engine["run"]} */
async function run({ ids }, count, onTokens) {
  const dims = [1, ids.length];
  let isPrompt = true; // the streamer hears the prompt first
  const streamer = {
    put(/** @type {bigint[][]} */ tokens) {
      if (!isPrompt) onTokens(tokens.flat().map(Number));
      isPrompt = false;
    },
    end() {},
  };
  await model.generate({
    input_ids: new Tensor("int64", BigInt64Array.from(ids, BigInt), dims),
    attention_mask: new Tensor("int64", new BigInt64Array(ids.length).fill(1n), dims),
    max_new_tokens: count,
    do_sample: false,
    eos_token_id: null,
    streamer,
  });
}

offer({
  ready: Promise.resolve(),
  load,
  run,
  gpuBytes,
  facts: () => ({
    version: env.version,
    onnxruntime: env.backends.onnx.versions?.web,
    threads: env.backends.onnx.wasm.numThreads,
  }),
});
