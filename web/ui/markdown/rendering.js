// Rendering in a worker, one text after the other: long Markdown, colours of code, maths. Where a text takes too long its
// worker is ended and the text shown as it was written; the next text gets a new worker.

/** @import { Config, DOMPurify } from "dompurify" */
/** @import { RenderJob, RenderedMarkdown } from "./html.js" */

import { isInUse } from "../elements.js";
import { library, siteFacts } from "../lazy.js";
import { escape } from "./html.js";

/** @typedef {{ markdown: RenderedMarkdown, code: string, maths: string }} RenderResults what is made of a text, by its kind */

/**
 * A text that waits for the rendering worker.
 * @typedef {object} Queued
 * @property {keyof RenderResults} kind
 * @property {RenderJob} job
 * @property {() => boolean} isWanted
 * @property {(result: any) => void} resolve
 * @property {(fault: Error) => void} reject
 */

/** Milliseconds: for a library to arrive, for one text, and for all that wait at once. Tests have less. */
export const patience = { arrival: 30_000, text: 2000, all: 10_000 };

/** @type {Worker | undefined} */
let worker;
/** @type {Queued[]} */
const queue = [];
let isWorking = false;

/**
 * Renders a text, unless nobody wants it any more when its turn comes. Rejects where it cannot be rendered.
 * @type {<Kind extends keyof RenderResults>(kind: Kind, job: RenderJob, isWanted?: () => boolean) => Promise<RenderResults[Kind]>}
 */
export function renderInWorker(kind, job, isWanted = () => true) {
  const { promise, resolve, reject } = Promise.withResolvers();
  queue.push({ kind, job, isWanted, resolve, reject });
  if (!isWorking) {
    isWorking = true;
    queueMicrotask(work); // by then the element that waits for it is in the page
  }
  return promise;
}

async function work() {
  let spent = 0;
  for (let next; (next = queue.shift());) {
    if (!next.isWanted() || spent > patience.all) {
      next.reject(new RangeError());
      continue;
    }
    const began = performance.now();
    await render(next).then(next.resolve, next.reject);
    spent += performance.now() - began;
  }
  isWorking = false;
}

/**
 * Has the worker render one text, and ends it when that takes too long.
 * @param {Queued} queued
 */
async function render({ kind, job }) {
  const { vendor } = await siteFacts();
  const { promise, resolve, reject } = Promise.withResolvers();
  const end = () => {
    worker?.terminate();
    worker = undefined;
    reject(new RangeError());
  };
  const mine = worker ??= new Worker(new URL("../../render_worker.js", import.meta.url), { type: "module" });
  let timer = setTimeout(end, patience.arrival);
  mine.onerror = end;
  mine.onmessage = ({ data: { state, result } }) => {
    if (state === "started") {
      clearTimeout(timer);
      timer = setTimeout(end, patience.text);
    } else if (state === "done") resolve(result);
    else if (state === "lost") end(); // a new worker fetches it again
    else reject(new RangeError());
  };
  mine.postMessage({ kind, job, vendor: new URL(`../../${vendor}`, import.meta.url).href });
  return promise.finally(() => clearTimeout(timer));
}

// ---- what was rendered lately: text that grows is shown again and again, without a flicker

const MAX_REMEMBERED = 2_000_000; // characters of HTML

/** @type {Map<string, string>} */
const known = new Map(); // the newest are last
let characters = 0;

/** Gives what was rendered under a name, if it is still known. @param {string} name */
const remembered = (name) => known.get(name);

/** Remembers what was rendered under a name, and gives it back. @type {(name: string, html: string) => string} */
function remember(name, html) {
  characters += html.length - (known.get(name)?.length ?? 0);
  known.delete(name);
  known.set(name, html);
  for (const [oldest, { length }] of known) {
    if (characters <= MAX_REMEMBERED) break;
    known.delete(oldest);
    characters -= length;
  }
  return html;
}

// ---- colours of code by highlight.js: only classes of spans come of it

const MAX_CODE = 20_000; // characters
const CODE_ALLOWED = /** @type {const} @satisfies {Config} */ ({
  ALLOWED_TAGS: ["span", "#text"],
  ALLOWED_ATTR: ["class"],
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  RETURN_DOM_FRAGMENT: true,
});

const loadPurify = library("dompurify.js");
/** @type {DOMPurify | undefined} */
let purify; // once it is here
let latest = { language: "", text: "", html: "" }; // that was coloured: perhaps the beginning of what grows now

/**
 * Colours a block that names a known language, at once if it was coloured before, or its beginning.
 * @param {HTMLElement} code
 */
export async function colour(code) {
  const [language] = code.parentElement?.dataset.language?.split(/[\s,{]/, 1) ?? [];
  const { textContent: text } = code;
  if (!language || text.length > MAX_CODE) return;
  const name = `code ${language} ${text}`;
  const before = remembered(name);
  if (before !== undefined) return showCode(code, before);
  if (language === latest.language && text.startsWith(latest.text)) showCode(code, latest.html + escape(text.slice(latest.text.length)));
  const html = await renderInWorker("code", { text, language }, () => isInUse(code));
  ({ default: purify } = await loadPurify());
  latest = { language, text, html: remember(name, html) };
  showCode(code, html);
}

/** @type {(code: HTMLElement, html: string) => void} */
function showCode(code, html) {
  if (purify) code.replaceChildren(purify.sanitize(html, CODE_ALLOWED));
}

// ---- maths by KaTeX: bounded in length and depth, without macros and links. What it makes passes DOMPurify; its style
// attributes, which the page's policy refuses, are set by script, one by one.

const MAX_FORMULA = 4000; // characters of a formula
const MAX_DEPTH = 10; // braces in each other: accents in powers of accents take twice the time each
const WRITTEN = /^(?:\$\$|\$|\\\(|\\\[)([^]*?)(?:\$\$|\$|\\\)|\\\])$/;
// Commands that define macros are refused: a line of them could grow to a page.
const MACROS = /\\(?:[gex]?def|let|futurelet|global|(?:re|provide)?newcommand|renewcommand|providecommand|DeclareMathOperator)(?![a-zA-Z])/;

const MATHML = "math semantics annotation menclose mfrac mi mn mo mover mpadded mphantom mroot mrow ms mspace msqrt mstyle msub msubsup msup mtable mtd mtext mtr munder munderover";
const ATTRIBUTES = "class aria-hidden data-css xmlns display encoding mathvariant stretchy fence separator accent accentunder width height depth lspace rspace voffset minsize maxsize displaystyle scriptlevel mathcolor mathbackground mathsize linethickness rowspacing columnalign columnspacing columnlines rowlines notation largeop movablelimits linebreak viewBox preserveAspectRatio d x1 y1 x2 y2 stroke-width";
const MATHS_ALLOWED = /** @type {const} @satisfies {Config} */ ({
  ALLOWED_TAGS: `span svg path line #text ${MATHML}`.split(" "),
  ALLOWED_ATTR: ATTRIBUTES.split(" "),
  ADD_URI_SAFE_ATTR: ATTRIBUTES.split(" "),
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  RETURN_DOM_FRAGMENT: true,
});
const STYLES = /^(?:border|margin|padding|min-width|width|height|top|bottom|left|vertical-align|color|background-color)/;

/** @type {DOMPurify | undefined} */
let mathsPurify; // the same, once KaTeX's styles are here, too

/**
 * Draws a formula, at once if it was drawn before. Rejects where it is not maths, or beyond the bounds.
 * @param {HTMLElement} element holds what was written, between its marks
 */
export async function draw(element) {
  const { textContent: written } = element;
  const [, tex] = written.length > MAX_FORMULA ? [] : WRITTEN.exec(written) ?? [];
  if (!tex || depthOf(tex) > MAX_DEPTH || MACROS.test(tex)) throw new RangeError();
  const isDisplay = element.dataset.math === "display";
  const name = `maths ${isDisplay} ${tex}`;
  const before = remembered(name);
  if (before !== undefined && mathsPurify) return showMaths(element, before, mathsPurify);
  const html = await renderInWorker("maths", { text: tex, isDisplay }, () => isInUse(element));
  showMaths(element, remember(name, html), mathsPurify ??= await fetchTools());
}

/** @type {(element: HTMLElement, html: string, tool: DOMPurify) => void} */
function showMaths(element, html, tool) {
  // KaTeX escapes quotes everywhere else, so that this is an attribute for sure.
  const drawn = tool.sanitize(html.replaceAll(' style="', ' data-css="'), MATHS_ALLOWED);
  for (const part of /** @type {NodeListOf<HTMLElement>} */ (drawn.querySelectorAll("[data-css]"))) setStyle(part);
  element.replaceChildren(drawn);
  element.dataset.drawn = "";
  if (element.dataset.math === "display") element.tabIndex = 0; // a long one scrolls, by keyboard too
}

async function fetchTools() {
  const [{ default: tool }, { vendor }] = await Promise.all([loadPurify(), siteFacts()]);
  const styles = Object.assign(document.createElement("link"), { rel: "stylesheet", href: `${vendor}katex.css` });
  styles.onerror = () => {
    styles.remove();
    mathsPurify = undefined; // the next formula fetches them again
  };
  document.head.append(styles);
  return tool;
}

/** @param {string} tex */
function depthOf(tex) {
  let [depth, deepest] = [0, 0];
  for (const brace of tex.match(/\\[^]|[{}]/g) ?? []) {
    if (brace === "{") deepest = Math.max(deepest, ++depth);
    if (brace === "}") depth--;
  }
  return deepest;
}

/** @param {HTMLElement} part */
function setStyle(part) {
  for (const rule of part.dataset.css?.split(";") ?? []) {
    const [name, value = ""] = rule.split(":");
    if (STYLES.test(name) || rule === "position:relative") part.style.setProperty(name, value);
  }
  delete part.dataset.css;
}
