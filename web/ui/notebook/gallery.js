// The experiments that a notebook offers: each is a file of web/gallery/, Python with percent cells.

import { t } from "../wording.js";

/**
 * @typedef {object} Experiment
 * @property {string} name of its file
 * @property {() => string} title
 * @property {() => string} words what it shows
 */

/** @type {Experiment[]} */
export const experiments = [
  { name: "graph", title: () => t`What is in this graph`, words: () => t`The model's operations, counted, and where its memory goes` },
  { name: "token_time", title: () => t`How long does a token take`, words: () => t`Milliseconds of each token, one after the other` },
  { name: "candidates", title: () => t`The next token's candidates`, words: () => t`What the model could have said instead` },
  { name: "norms", title: () => t`Norms by layer`, words: () => t`How the residual stream grows, and what stands out` },
  { name: "induction", title: () => t`Find the induction heads`, words: () => t`Heads that complete what came before` },
  { name: "lens", title: () => t`Logit lens`, words: () => t`What each layer would say` },
  { name: "steer", title: () => t`Steer it`, words: () => t`A direction of two texts, added while the model writes` },
  { name: "ablate", title: () => t`Ablate a head`, words: () => t`What is lost when a head is off` },
  { name: "autoencoder", title: () => t`Train an autoencoder`, words: () => t`Features of a layer, learned from a page that the model writes` },
  { name: "patching", title: () => t`Patch two prompts`, words: () => t`Where in the model the answer is decided` },
  { name: "tokenizer", title: () => t`A map of the tokenizer`, words: () => t`How a text falls into tokens, and how long tokens are` },
  { name: "embed", title: () => t`Embed my lines`, words: () => t`Your own lines on a map: what is close means the same` },
  { name: "sampler", title: () => t`Write a sampler`, words: () => t`Draw the next token by a rule of your own` },
  { name: "kernel", title: () => t`One kernel, any length`, words: () => t`A graph of your own on the device, compared with numpy` },
];

/** @param {string} name */
export async function textOf(name) {
  const response = await fetch(new URL(`../../gallery/${name}.py`, import.meta.url));
  if (!response.ok) throw new Error(`${name}.py: ${response.status}`);
  return response.text();
}
