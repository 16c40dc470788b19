// Notebooks as files: nbformat 4 with outputs, and Python with percent cells; read with care.

/** @import { Output } from "./outputs.js" */

import { t } from "../wording.js";

/**
 * A cell as it is kept.
 * @typedef {object} CellRecord
 * @property {"code" | "markdown"} kind
 * @property {string} text
 * @property {Output[]} outputs
 * @property {number | null} count how many cells had run when this one did
 */

const MAX_CELLS = 1000;
const PERCENT = /^# ?%%(.*)$/;

/** @param {CellRecord[]} cells */
export function toIpynb(cells) {
  const written = cells.map(({ kind, text, outputs, count }, at) => ({
    cell_type: kind,
    id: `cell-${at + 1}`,
    metadata: {},
    source: linesOf(text),
    ...(kind === "code" ? { execution_count: count, outputs: outputs.map((output) => toNbformat(output, count)) } : {}),
  }));
  const metadata = {
    kernelspec: { name: "python", display_name: "Python (inpage)", language: "python" },
    language_info: { name: "python", file_extension: ".py", mimetype: "text/x-python" },
  };
  return JSON.stringify({ cells: written, metadata, nbformat: 4, nbformat_minor: 5 }, null, 1);
}

/** @param {string} text */
const linesOf = (text) => text.split(/(?<=\n)/);

/** @type {(output: Output, count: number | null) => object} */
function toNbformat(output, count) {
  if (output.kind === "printed") return { output_type: "stream", name: "stdout", text: linesOf(output.text) };
  if (output.kind === "error") {
    const traceback = output.text.split("\n");
    const [ename, ...rest] = (traceback.findLast(Boolean) ?? "").split(": ");
    return { output_type: "error", ename, evalue: rest.join(": "), traceback };
  }
  const data = Object.fromEntries(Object.entries(output.data).map(([kind, text]) => [kind, kind.startsWith("text/") || kind.endsWith("xml") ? linesOf(text) : text]));
  return { output_type: "execute_result", data, metadata: {}, execution_count: count };
}

/** Reads an .ipynb, or undefined. @param {string} text @returns {CellRecord[] | undefined} */
export function fromIpynb(text) {
  let book;
  try {
    book = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!Array.isArray(book?.cells)) return undefined;
  return book.cells.slice(0, MAX_CELLS).map((/** @type {any} */ cell) => ({
    kind: cell?.cell_type === "code" ? "code" : "markdown",
    text: joined(cell?.source),
    count: Number.isSafeInteger(cell?.execution_count) ? cell.execution_count : null,
    outputs: (Array.isArray(cell?.outputs) ? cell.outputs : []).flatMap(fromNbformat),
  }));
}

/** @param {any} lines */
const joined = (lines) => (Array.isArray(lines) ? lines.join("") : typeof lines === "string" ? lines : "");

/** @param {any} output @returns {Output[]} */
function fromNbformat(output) {
  if (output?.output_type === "stream") return [{ kind: "printed", text: joined(output.text) }];
  if (output?.output_type === "error") return [{ kind: "error", text: (Array.isArray(output.traceback) ? output.traceback.join("\n") : "").replace(ANSI, ""), hint: "" }];
  if (!output?.data || typeof output.data !== "object") return [];
  const data = Object.fromEntries(Object.entries(output.data).filter(([, value]) => typeof value === "string" || Array.isArray(value)).map(([kind, value]) => [kind, joined(value)]));
  return [{ kind: "shown", data, name: "" }];
}

// eslint-disable-next-line no-control-regex
const ANSI = /\u001B\[[\d;]*m/g; // IPython colours its tracebacks

/** @param {CellRecord[]} cells */
export const toPercent = (cells) => `${cells.map(({ kind, text }) => (kind === "code" ? `# %%\n${text}` : `# %% [markdown]\n${text.replace(/^/gm, "# ").replace(/^# $/gm, "#")}`)).join("\n\n")}\n`;

/** @param {string} text @returns {CellRecord[]} */
export function fromPercent(text) {
  /** @type {CellRecord[]} */
  const cells = [];
  let lines = /** @type {string[]} */ ([]);
  let kind = /** @type {CellRecord["kind"]} */ ("code");
  const end = () => {
    const body = lines.join("\n").trim();
    const said = kind === "code" ? body : body.replace(/^# ?/gm, "");
    if (said) cells.push({ kind, text: said, outputs: [], count: null });
    lines = [];
  };
  for (const line of text.replaceAll("\r\n", "\n").split("\n")) {
    const found = PERCENT.exec(line);
    if (!found) lines.push(line);
    else {
      end();
      kind = /\[markdown\]/.test(found[1]) ? "markdown" : "code";
    }
  }
  end();
  return cells;
}

// ---- the experiments that a notebook offers: each is a file of web/gallery/, Python with percent cells

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
  { name: "ablate", title: () => t`Ablate a head`, words: () => t`What is lost when a head is turned off` },
  { name: "autoencoder", title: () => t`Train an autoencoder`, words: () => t`Features of a layer, learned from a page that the model writes` },
  { name: "patching", title: () => t`Patch two prompts`, words: () => t`Where in the model the answer is decided` },
  { name: "tokenizer", title: () => t`A map of the tokenizer`, words: () => t`How a text falls into tokens, and how long tokens are` },
  { name: "embed", title: () => t`Embed my lines`, words: () => t`Your own lines on a map: lines that are close mean something similar` },
  { name: "sampler", title: () => t`Write a sampler`, words: () => t`Choose the next token by your own rule` },
  { name: "kernel", title: () => t`One kernel, any length`, words: () => t`A graph of your own on the device, compared with numpy` },
];

/** @param {string} name */
export async function textOf(name) {
  const response = await fetch(new URL(`../../gallery/${name}.py`, import.meta.url));
  if (!response.ok) throw new Error(`${name}.py: ${response.status}`);
  return response.text();
}
