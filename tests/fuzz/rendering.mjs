// Renders texts as the page does, and counts the steps of its patterns: one JSON object a line, in and out. Texts grow
// from the parts of each pattern; a linear one takes twice the steps on twice the text.

import { readdirSync, readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { isMainThread, parentPort, Worker } from "node:worker_threads";
import { parseRegExpLiteral } from "@eslint-community/regexpp";
import { parse } from "espree";
import { countApart, countSteps, install, stepsSoFar, TooManySteps } from "./counted_regexp.mjs";

const ROOT = new URL("../../", import.meta.url);
const LENGTHS = [600, 1200]; // characters, for the steps of one pattern
const TRIES = 30; // patterns for each input
const AT_ONCE = 4000; // characters that the page renders without its worker
const STEPS_A_MILLISECOND = 20_000; // of a slow machine
const MOST_STEPS = 25_000_000; // on the page's own thread: ten times what its deadline leaves
const MOST_STEPS_OF_A_WORKER = 3_000_000;
const OF_MATHS = "ui/markdown/rendering.js"; // has those of colours, too

// ---- the patterns

function* literalsOf(file) {
  const nodes = [parse(readFileSync(new URL(`web/${file}`, ROOT), "utf8"), { ecmaVersion: "latest", sourceType: "module" })];
  for (let node; (node = nodes.pop());) {
    if (node.regex) yield new RegExp(node.regex.pattern, node.regex.flags);
    nodes.push(...Object.values(node).flat().filter((each) => typeof each?.type === "string"));
  }
}

/** Those that are made of texts while `work` goes on. */
async function patternsMadeBy(work) {
  const [made, Native] = [[], RegExp];
  globalThis.RegExp = new Proxy(Native, { construct: (target, given) => { made.push(Reflect.construct(target, given)); return made.at(-1); } });
  await work();
  globalThis.RegExp = Native;
  return made;
}

/** highlight.js makes those of a language when it first reads some. */
const patternsOfLanguages = new Map();

async function patternsOf(language) {
  if (!patternsOfLanguages.has(language)) patternsOfLanguages.set(language, await patternsMadeBy(() => highlight.highlight("x", { language })));
  return patternsOfLanguages.get(language);
}

/** Numbers below `end` that look random, from a seed (mulberry32). */
const randomOf = (seed) => (end) => {
  seed = (seed + 0x6d2b79f5) | 0;
  let mixed = Math.imul(seed ^ (seed >>> 15), 1 | seed);
  mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
  return ((mixed ^ (mixed >>> 14)) >>> 0) % end;
};

const SAMPLES = ["a", "Z", "0", " ", "\n", "-", ",", "$", "\\", "*", "`", "é"];

/** A text made of what the parts of a pattern take, though perhaps not in full. */
function exampleOf(pattern, random) {
  const oneOf = (all) => all[random(all.length)];
  let isOver = false;
  const walk = (node) => {
    if (isOver) return "";
    switch (node.type) {
      case "Pattern": case "Group": case "CapturingGroup": return walk(oneOf(node.alternatives));
      case "Alternative": return node.elements.map(walk).join("");
      case "Quantifier": return Array.from({ length: Math.min(node.max, Math.max(node.min, random(3))) }, () => walk(node.element)).join("");
      case "Character": return String.fromCodePoint(node.value);
      case "CharacterSet": case "CharacterClass": return oneOf(SAMPLES.filter((text) => new RegExp(`^(?:${node.raw})$`, "u").test(text))) ?? "x";
      case "Assertion": {
        if (node.kind !== "lookahead" || random(2)) return "";
        const ahead = walk(oneOf(node.alternatives));
        isOver = true;
        return ahead;
      }
      default: return "";
    }
  };
  return walk(parseRegExpLiteral(pattern).pattern);
}

/** Such a text, with a piece of it repeated. */
function grownFrom(pattern, seed) {
  const random = randomOf(seed);
  const example = exampleOf(pattern, random) || "x";
  const [from, at] = [random(example.length), random(example.length + 1)];
  const pump = example.slice(from, from + 1 + random(3));
  const rest = ["x", "!", "\n\n", example.slice(at)][random(4)];
  return (length) => example.slice(0, at) + pump.repeat(Math.ceil(length / pump.length)) + rest;
}

async function patternsIn() {
  const files = readdirSync(new URL("web/", ROOT), { recursive: true }).filter((file) => file.endsWith(".js")).sort();
  const found = { markdown: [], maths: [] };
  for (const file of files) found[file === OF_MATHS ? "maths" : "markdown"].push(...literalsOf(file));
  found.maths.push(...await patternsMadeBy(() => import(new URL("web/ui/markdown/html.js", ROOT))));
  return found;
}

/** Steps of all that a pattern finds in a text. */
const search = (pattern, text) => {
  pattern.lastIndex = 0;
  for (let from = -1; pattern.exec(text) && pattern.global && pattern.lastIndex > from;) from = pattern.lastIndex;
};

async function checkGrowth(pattern, seed) {
  const [short, long] = LENGTHS.map(grownFrom(pattern, seed));
  const steps = await countSteps(() => search(pattern, short), MOST_STEPS);
  await countSteps(() => search(pattern, long), 3 * steps + 2000).catch((error) => {
    if (!(error instanceof TooManySteps)) throw error;
    throw new Error(`${pattern} takes ${steps} steps on ${short.length} characters, and more than three times that on ${long.length}: ${JSON.stringify(long.slice(0, 60))}`);
  });
}

// ---- the page's own thread

const { Marked, Lexer } = await import(new URL("node_modules/marked/lib/marked.esm.js", ROOT));
const ofMarked = Object.values({ ...Lexer.rules.block.gfm, ...Lexer.rules.inline.gfm }).filter((rule) => rule instanceof RegExp);

/** Whether it became HTML, or is shown as it was written. */
async function renderOnPage(marked, text) {
  let isRendered = true;
  const work = () => {
    try {
      markdownHtml.renderMarkdown(marked, text, false, performance.now() + 100);
    } catch (error) {
      if (error instanceof TooManySteps) throw error;
      isRendered = false;
    }
  };
  await countSteps(work, MOST_STEPS).catch(() => { throw new Error(`rendering ${JSON.stringify(text.slice(0, 60))} takes more than ${MOST_STEPS} steps at once`); });
  return isRendered;
}

/** A block of code, by the page's own script; what its worker does is counted apart, and bounded. */
async function colourOnPage({ language, text }) {
  const code = { parentElement: { dataset: { language } }, textContent: text, isConnected: true, replaceChildren() {} };
  let isColoured = true;
  const work = () => colour(code).catch((error) => {
    if (error instanceof TooManySteps) throw error;
    isColoured = !(error instanceof RangeError); // another one is DOMPurify's, which has no document here
  });
  await countSteps(work, MOST_STEPS).catch(() => { throw new Error(`colouring ${language} takes the page more than ${MOST_STEPS} steps`); });
  if (RenderWorker.hanging) throw new Error("a worker that takes too long was not ended");
  return isColoured;
}

class RenderWorker {
  static hanging = 0;

  async postMessage({ job: { text, language } }) {
    this.onmessage({ data: { state: "started" } });
    try {
      const render = () => highlight.highlight(text, { language, ignoreIllegals: true }).value;
      this.onmessage({ data: { state: "done", result: countApart(render, MOST_STEPS_OF_A_WORKER) } });
    } catch (error) {
      if (!(error instanceof TooManySteps)) this.onmessage({ data: { state: "refused" } });
      else {
        this.isHanging = true; // until it is ended
        RenderWorker.hanging++;
      }
    }
  }

  terminate() {
    if (this.isHanging) RenderWorker.hanging--;
  }
}

function standInForBrowser() {
  const nothing = new Proxy(() => nothing, { get: (_, name) => (name === Symbol.toPrimitive ? () => "" : nothing), set: () => true, deleteProperty: () => true });
  Object.assign(globalThis, {
    document: { documentElement: { dataset: {} }, getElementById: () => nothing },
    localStorage: { getItem: () => null },
    Worker: RenderWorker,
    fetch: async () => ({ json: async () => ({ vendor: "../build/vendor/" }) }),
  });
  Object.defineProperty(globalThis, "navigator", { value: { languages: ["en"] }, configurable: true });
  Promise.withResolvers ??= () => {
    const all = {};
    all.promise = new Promise((resolve, reject) => Object.assign(all, { resolve, reject }));
    return all;
  };
  URL.parse ??= (text) => { try { return new URL(text); } catch { return null; } };
}

// ---- one input after the other

let markdownHtml, colour, highlight, patterns;

async function prepare() {
  standInForBrowser();
  patterns = await patternsIn();
  markdownHtml = await import(new URL("web/ui/markdown/html.js", ROOT));
  const rendering = await import(new URL("web/ui/markdown/rendering.js", ROOT));
  ({ colour } = rendering);
  rendering.patience.text = 1; // millisecond: whether a worker hangs is decided by its steps
  ({ default: highlight } = await import(new URL("build/vendor/highlight.js", ROOT)));
  const marked = new Marked(...markdownHtml.options);
  install();
  performance.now = () => stepsSoFar() / STEPS_A_MILLISECOND;
  return async ({ kind, ...given }) => {
    if (kind === "code") {
      const all = await patternsOf(given.language);
      const text = given.text ?? grownFrom(all[given.pattern % all.length], given.seed)(given.length);
      return colourOnPage({ language: given.language, text });
    }
    if (given.text !== undefined) return renderOnPage(marked, given.text);
    const ours = patterns[kind];
    for (let at = 0; at < TRIES; at++) await checkGrowth(ours[(given.pattern + at) % ours.length], given.seed + at);
    const all = [...ours, ...ofMarked];
    return renderOnPage(marked, grownFrom(all[given.pattern % all.length], given.seed)(AT_ONCE - 200));
  };
}

if (isMainThread) {
  const thread = new Worker(new URL(import.meta.url), { resourceLimits: { stackSizeMb: 240 } }); // matching recurses
  thread.on("message", (answer) => process.stdout.write(`${JSON.stringify(answer)}\n`));
  thread.on("error", (error) => { throw error; });
  createInterface(process.stdin).on("line", (line) => thread.postMessage(JSON.parse(line))).on("close", () => thread.terminate());
} else {
  const read = await prepare();
  let last = Promise.resolve();
  parentPort.on("message", (given) => {
    last = last.then(() => read(given)).then((isRendered) => parentPort.postMessage({ isRendered }), (error) => parentPort.postMessage({ fault: String(error.message) }));
  });
}
