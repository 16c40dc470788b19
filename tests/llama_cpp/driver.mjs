// Runs llama.cpp on behalf of oracle.py: reads requests from its input and writes answers to its output, a line of JSON
// each. Its working folder is the one that node-llama-cpp is installed in.

import { resolve } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

/**
 * @typedef {{ file: string, prompts: number[][], steps: number, texts: string[] }} Request
 * @typedef {{ tokens: number[], logits: string[] }} Continuation  with the float32 logits of each step in base64
 */

const { getLlama } = await import(pathToFileURL(resolve("node_modules/node-llama-cpp/dist/index.js")).href);

/** @type {string[]} What llama.cpp logged since the last request. */
const log = [];
const llama = await getLlama({
  gpu: false,
  build: "never",
  maxThreads: 1, // its threads spin while they wait for each other: next to other work, for minutes
  logLevel: "warn",
  logger: (/** @type {string} */ _level, /** @type {string} */ message) => log.push(message.trim()),
});

/**
 * Returns the greedy continuations of the prompts, and the tokens of the texts.
 * @param {Request} request
 */
async function answer({ file, prompts, steps, texts }) {
  const model = await llama.loadModel({ modelPath: file, gpuLayers: 0 });
  try {
    const continuations = [];
    for (const prompt of prompts) continuations.push(await continuePrompt(model, prompt, steps));
    return { continuations, texts: texts.map((text) => model.tokenize(text, true)) };
  } finally {
    await model.dispose();
  }
}

/**
 * Returns the greedy continuation of a prompt, computed as exactly as the CPU can.
 * @param {any} model
 * @param {number[]} prompt
 * @param {number} steps
 */
async function continuePrompt(model, prompt, steps) {
  const context = await model.createContext({
    contextSize: prompt.length + steps,
    flashAttention: false,
    experimentalKvCacheKeyType: "F32",
    experimentalKvCacheValueType: "F32",
  });
  try {
    const sequence = context.getSequence();
    const wanted = { generateNext: { token: true, logits: true, options: { temperature: 0 } } };
    /** @type {Continuation} */
    const found = { tokens: [], logits: [] };
    let input = prompt;
    for (let step = 0; step < steps; step++) {
      const evaluated = await sequence.controlledEvaluate([...input.slice(0, -1), [input.at(-1), wanted]]);
      const { token, logits } = evaluated.at(-1).next;
      found.tokens.push(token);
      found.logits.push(encodeLogits(logits));
      input = [token];
    }
    return found;
  } finally {
    await context.dispose();
  }
}

/**
 * Returns the logits of the whole vocabulary, ordered by token, as float32 in base64.
 * @param {Map<number, number>} logits
 */
function encodeLogits(logits) {
  const values = new Float32Array(logits.size);
  for (const [token, logit] of logits) values[token] = logit;
  return Buffer.from(values.buffer).toString("base64");
}

for await (const line of createInterface({ input: process.stdin })) {
  log.length = 0;
  let reply;
  try {
    reply = await answer(JSON.parse(line));
  } catch (error) {
    reply = { error: [/** @type {Error} */ (error).message, ...log].join("\n") };
  }
  process.stdout.write(`${JSON.stringify(reply)}\n`);
}
await llama.dispose();
