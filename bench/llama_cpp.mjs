// Measures llama.cpp: node bench/llama_cpp.mjs FILE THREADS PROMPT TOKENS, in the folder that node-llama-cpp is
// installed in. Prints a line of JSON for each round, each time a line arrives: so two engines take turns.

import { resolve } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const [file, ...numbers] = process.argv.slice(2);
const [threads, promptLength, count] = numbers.map(Number);
const { getLlama } = await import(pathToFileURL(resolve("node_modules/node-llama-cpp/dist/index.js")).href);
const llama = await getLlama({ gpu: false, build: "never", maxThreads: threads, logLevel: "error" });
const model = await llama.loadModel({ modelPath: file, gpuLayers: 0 });
const context = await model.createContext({ contextSize: 2048, threads });
const sequence = context.getSequence();

/** Times a prompt, then tokens one by one. @param {number} round */
async function measure(round) {
  await sequence.clearHistory();
  const prompt = Array.from({ length: promptLength }, (_, at) => 100 + ((7 * at + round) % 1000));
  const started = performance.now();
  const tokens = sequence.evaluate(prompt, { temperature: 0, yieldEogToken: true });
  await tokens.next();
  const first = performance.now();
  for (let made = 0; made < count; made++) await tokens.next();
  await tokens.return();
  return { prefill: 1000 * promptLength / (first - started), decode: 1000 * count / (performance.now() - first) };
}

process.stdout.write("ready\n");
let round = 0;
const asked = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
while (!(await asked.next()).done) process.stdout.write(`${JSON.stringify(await measure(round++))}\n`);
await llama.dispose();
