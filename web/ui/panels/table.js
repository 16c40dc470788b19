// Every panel of the dock, in the order of its tabs.

/** @import { Panel } from "../dock.js" */

import { script } from "../lazy.js";
import { t } from "../wording.js";

/**
 * A panel before its script is here.
 * @typedef {object} PanelEntry
 * @property {() => string} title a word or two, for its tab and its heading
 * @property {() => string} look the sentence that says what to look for
 * @property {() => Promise<Panel>} load
 */

/** @type {Record<string, PanelEntry>} */
export const table = {
  lens: {
    title: () => t`Logit lens`,
    look: () => t`Look for the layer where the answer appears: below it the model is still undecided.`,
    load: script(() => import("./lens.js")),
  },
  attention: {
    title: () => t`Attention`,
    look: () => t`Point at a token to see which earlier ones a head reads. Some heads always look at the token before, some at the first one.`,
    load: script(() => import("./attention.js")),
  },
  patching: {
    title: () => t`Patching`,
    look: () => t`Look for the bright cells: moving what is there from one prompt into the other moves the answer, too.`,
    load: script(() => import("./patching.js")),
  },
  norms: {
    title: () => t`Norms`,
    look: () => t`Look for the layer where the stream suddenly grows, and for the token and the few dimensions that carry it: often the first token, on which attention rests.`,
    load: script(() => import("./norms.js")),
  },
  neurons: {
    title: () => t`Neurons`,
    look: () => t`Look for neurons that promote what fits the text: those of late layers often stand for a word or a kind of word.`,
    load: script(() => import("./neurons.js")),
  },
  features: {
    title: () => t`Features`,
    look: () => t`Look for features that are active wherever a text is about one thing: nobody named them, but the tokens that they promote tell.`,
    load: script(() => import("./features.js")),
  },
  steering: {
    title: () => t`Steering`,
    look: () => t`Move a slider while an answer is being written, and see where its words turn.`,
    load: script(() => import("./steering.js")),
  },
  map: {
    title: () => t`Map`,
    look: () => t`Look for islands: chats or lines that mean something similar to the model lie together. What lies alone is unlike the rest.`,
    load: script(() => import("./map.js")),
  },
  timeline: {
    title: () => t`Timeline`,
    look: () => t`Look for the widest blocks: there the time goes. What reads as fast as memory allows cannot get faster, only smaller.`,
    load: script(() => import("./timeline.js")),
  },
  graph: {
    title: () => t`Graph`,
    look: () => t`Look at how few kernels remain of a layer: switch between before and after the passes.`,
    load: script(() => import("./graph.js")),
  },
  memory: {
    title: () => t`Memory`,
    look: () => t`Look at what fills the device: weights and caches stay, intermediates take turns.`,
    load: script(() => import("./memory.js")),
  },
  kernel_lab: {
    title: () => t`Kernel lab`,
    look: () => t`Change a kernel and see whether it still computes the same, and how much faster it is.`,
    load: script(() => import("./kernel_lab.js")),
  },
  notebook: {
    title: () => t`Notebook`,
    look: () => t`Python beside the live model: look at model, graph, engine and chat, or try an experiment.`,
    load: script(() => import("./notebook.js")),
  },
};
