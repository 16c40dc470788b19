// Markdown of a model, which is not to be trusted. Three nets: marked reads no HTML, our renderer makes links of
// http(s) addresses alone, DOMPurify lets nothing else pass. Short texts are rendered at once, long ones in a worker
// that can be ended. What is beyond the bounds of both is shown as it was written.

/** @import { Config, DOMPurify } from "dompurify" */
/** @import { Marked } from "marked" */
/** @import { RenderedMarkdown } from "./html.js" */

import { copyOf, directionOf, isInUse, page, plain } from "../elements.js";
import { emit } from "../events.js";
import { lazy, library, script } from "../lazy.js";
import { isRenderable, options, renderMarkdown } from "./html.js";
import { jsonBlock } from "../json/block.js";
import { folded } from "./reasoning.js";
import { t } from "../wording.js";

const TAGS = "p br hr strong em del code pre blockquote ul ol li h3 h4 h5 h6 table thead tbody tr th td a span #text";
const PLAIN_ATTRIBUTES = ["start", "align", "data-footnote", "data-image", "data-language", "data-math", "data-ref", "data-task"];
const ALLOWED = /** @type {const} @satisfies {Config} */ ({
  ALLOWED_TAGS: TAGS.split(" "),
  ALLOWED_ATTR: ["href", ...PLAIN_ATTRIBUTES],
  ALLOWED_URI_REGEXP: /^https?:\/\//i,
  ADD_URI_SAFE_ATTR: PLAIN_ATTRIBUTES,
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  RETURN_DOM_FRAGMENT: true,
});

// marked has patterns that take the square or the cube of a text: this is short enough for all of them.
const MAX_AT_ONCE = 4000; // characters
const MILLISECONDS = { text: 100, task: 500 }; // for what is rendered at once: one text, and all of them in a task
const TELL_MILLISECONDS = 30; // between two looks at what was drawn

const loadMarked = library("marked.js");
const loadPurify = library("dompurify.js");
const loadFramed = script(() => import("./framed.js"));
const loadRendering = script(() => import("./rendering.js"));
/** @type {Marked | undefined} */
let marked; // once it is here, with the other
/** @type {DOMPurify} */
let purify;
/** @type {Map<HTMLElement, () => void>} */
const waiting = new Map(); // for both

/** Fetches what renders Markdown, then shows again what was shown without it. */
export const loadMarkdown = lazy(async () => {
  ({ default: purify } = await loadPurify());
  const { Marked } = await loadMarked();
  marked = new Marked(...options);
  const all = [...waiting.values()];
  waiting.clear();
  for (const showAgain of all) showAgain();
});

let taskEnds = 0;

/**
 * Renders a short text; undefined where it is not, or takes too long.
 * @param {string} text
 * @param {boolean} isGrowing
 */
function renderAtOnce(text, isGrowing) {
  if (!marked || text.length > MAX_AT_ONCE) return undefined;
  const now = performance.now();
  if (!taskEnds) {
    taskEnds = now + MILLISECONDS.task;
    setTimeout(() => { taskEnds = 0; });
  }
  try {
    return renderMarkdown(marked, text, isGrowing, Math.min(now + MILLISECONDS.text, taskEnds));
  } catch {
    return undefined; // too slow, or a fault of marked's
  }
}

/** Makes elements of what was rendered. @param {string} html */
function cleaned(html) {
  const fragment = purify.sanitize(html, ALLOWED);
  for (const image of fragment.querySelectorAll("[data-image]")) nameImage(image);
  for (const anchor of fragment.querySelectorAll("a")) Object.assign(anchor, { target: "_blank", rel: "noopener noreferrer" });
  for (const block of /** @type {Iterable<HTMLElement>} */ (fragment.children)) block.dir = directionOf(block.textContent, block.querySelectorAll("code, [data-math]"));
  for (const item of /** @type {NodeListOf<HTMLElement>} */ (fragment.querySelectorAll("[dir=rtl] li"))) item.dir = directionOf(item.textContent, item.querySelectorAll("code, [data-math]"));
  for (const code of /** @type {NodeListOf<HTMLElement>} */ (fragment.querySelectorAll("code, [data-math]"))) code.dir = "ltr"; // and does not decide where the paragraph begins
  return fragment;
}

/** @type {(html: string, isGrowing?: boolean) => DocumentFragment} */
function nodesOf(html, isGrowing = false) {
  const fragment = cleaned(html);
  for (const place of /** @type {NodeListOf<HTMLElement>} */ (fragment.querySelectorAll("[data-ref], p[data-footnote]"))) linkFootnote(place);
  enrich(fragment, isGrowing);
  return fragment;
}

/** Leads from a footnote's number to its text, or back. @param {HTMLElement} place */
function linkFootnote(place) {
  const { ref, footnote = "" } = place.dataset;
  const label = ref ?? footnote;
  const button = Object.assign(document.createElement("button"), { type: "button", className: "to-note", textContent: label });
  button.ariaLabel = ref ? t`Footnote ${label}` : t`Footnote ${label}: back to the text`;
  Object.assign(button.dataset, { act: ref ? "toNote" : "toText", label });
  if (ref) place.replaceChildren(button);
  else place.prepend(button, " ");
}

/** Keeps headings from skipping a level; `last` is that of the heading before them. @type {(fragment: DocumentFragment, last: number) => number} */
function levelHeadings(fragment, last) {
  for (const heading of /** @type {NodeListOf<HTMLElement>} */ (fragment.querySelectorAll("h3, h4, h5, h6"))) {
    const level = Math.min(Number(heading.localName[1]), last + 1);
    last = level;
    if (heading.localName === `h${level}`) continue;
    const other = document.createElement(`h${level}`);
    other.dir = heading.dir;
    other.append(...heading.childNodes);
    heading.replaceWith(other);
  }
  return last;
}

/** Says that a text stands for an image, of which only the address is there. @param {Element} image */
function nameImage(image) {
  image.textContent = t`[image: ${image.textContent}]`;
  image.removeAttribute("data-image");
  if (image.localName === "span") image.replaceWith(...image.childNodes);
}

/** @type {WeakMap<Element, object>} */
const owners = new WeakMap(); // whose turn it is to fill an element: what the worker made for others is dropped

/**
 * Renders a long text; undefined where it is beyond the worker's bounds.
 * @type {(text: string, isGrowing: boolean, isWanted: () => boolean) => Promise<RenderedMarkdown | undefined>}
 */
async function renderLater(text, isGrowing, isWanted) {
  try {
    const { renderInWorker } = await loadRendering();
    return await renderInWorker("markdown", { text, isGrowing }, isWanted);
  } catch {
    return undefined;
  }
}

/** Shows Markdown: of a text that grows, blocks that have ended are rendered once, only the tail again. @param {HTMLElement} element */
function blocksIn(element) {
  let turn = {};
  let settledText = 0;
  let depth = 2; // of the last heading; the conversation's own is above them
  /** @type {ChildNode[]} */
  let unsettled = []; // nodes that show the rest
  let isPlain = false; // the rest, from now on: more text takes no less
  let isBusy = false; // the worker, with an earlier state of this text
  /** @type {{ text: string, isGrowing: boolean } | undefined} */
  let next; // for the worker
  owners.set(element, turn);

  /** @param {RenderedMarkdown} rendered */
  function put({ length, settled, rest }) {
    const [done, tail] = [nodesOf(settled), nodesOf(rest, true)];
    depth = levelHeadings(done, depth);
    levelHeadings(tail, depth);
    replaceRest(...tail.childNodes);
    element.insertBefore(done, unsettled[0] ?? null);
    settledText += length;
  }

  /** @param {ChildNode[]} nodes */
  function replaceRest(...nodes) {
    for (const node of unsettled) node.remove();
    unsettled = nodes;
    element.append(...nodes);
  }

  function startAnew() {
    settledText = 0;
    depth = 2;
    unsettled = [];
    element.replaceChildren();
  }

  /** @type {(text: string, isGrowing: boolean) => Promise<void>} */
  async function haveRendered(text, isGrowing) {
    next = { text, isGrowing };
    if (isBusy) return;
    isBusy = true;
    const mine = turn;
    const isWanted = () => isInUse(element) && owners.get(element) === mine;
    for (let job; (job = next);) {
      next = undefined;
      const tail = job.text.slice(job.isGrowing ? settledText : 0);
      const rendered = await renderLater(tail, job.isGrowing, isWanted);
      if (!isWanted()) break;
      if (!job.isGrowing) startAnew();
      isPlain = !rendered;
      if (rendered) put(rendered);
      else replaceRest(plain(tail));
      emit("textdrawn");
    }
    isBusy = false;
  }

  return {
    /** @param {string} text */
    grow(text) {
      const tail = text.slice(settledText);
      const rendered = isPlain || isBusy ? undefined : renderAtOnce(tail, true);
      if (rendered) return put(rendered);
      isPlain ||= !marked || !isRenderable(tail);
      if (isPlain || !element.hasChildNodes()) replaceRest(plain(tail));
      if (!isPlain) haveRendered(text, true);
    },
    /** Shows the whole text, which alone knows all its link definitions. @param {string} text */
    finish(text) {
      const rendered = renderAtOnce(text, false);
      const isHopeless = !marked || !isRenderable(text);
      if (rendered || isHopeless) {
        owners.set(element, turn = {}); // what the worker still has comes too late
        next = undefined;
        startAnew();
      }
      if (rendered) return put(rendered);
      if (isHopeless) return replaceRest(plain(text));
      const tail = text.slice(settledText);
      const last = settledText && !isBusy ? renderAtOnce(tail, true) : undefined;
      if (last) put(last);
      else replaceRest(plain(tail)); // all of it can be read meanwhile
      haveRendered(text, false);
    },
  };
}

/**
 * Gives a view that shows Markdown in an element. Before marked has arrived it shows the text as it was written; where
 * marked did not arrive, each new view has it fetched again.
 * @param {HTMLElement} element
 */
export function markdownIn(element) {
  let view = blocksIn(element);
  if (!marked) loadMarkdown().catch(() => {}); // all can be read without it
  const show = (/** @type {"grow" | "finish"} */ how) => (/** @type {string} */ written, isJson = false) => {
    if (!marked) {
      waiting.set(element, () => {
        element.replaceChildren();
        view = blocksIn(element);
        show(how)(written, isJson);
      });
    }
    const text = isJson ? jsonBlock(written) : written;
    const other = folded(view, element, text, blocksIn);
    if (other !== view) owners.delete(element); // its parts have views of their own
    view = other;
    view[how](text);
  };
  return { grow: show("grow"), finish: show("finish") };
}

// ---- what Markdown alone lacks

/**
 * Adds what Markdown alone lacks; what the worker or a frame has to draw comes a little later.
 * @type {(fragment: DocumentFragment, isGrowing: boolean) => void}
 */
function enrich(fragment, isGrowing) {
  for (const code of /** @type {NodeListOf<HTMLElement>} */ (fragment.querySelectorAll("pre > code"))) {
    code.tabIndex = 0; // long lines scroll, by keyboard too
    code.before(copyOf(page.copyCode));
    finished(loadRendering().then(({ colour }) => colour(code)));
    const isDiagram = !isGrowing && /^mermaid$/i.test(code.parentElement?.dataset.language ?? "");
    if (isDiagram) finished(loadFramed().then(({ drawDiagram }) => drawDiagram(code)));
  }
  for (const table of fragment.querySelectorAll("table")) scrolling(table);
  for (const formula of /** @type {NodeListOf<HTMLElement>} */ (fragment.querySelectorAll("[data-math]"))) finished(loadRendering().then(({ draw }) => draw(formula)));
}

/** @param {HTMLTableElement} table */
function scrolling(table) {
  const box = document.createElement("div");
  Object.assign(box, { className: "scrolls", tabIndex: 0, role: "region", ariaLabel: t`Table`, dir: table.dir });
  table.removeAttribute("dir");
  table.replaceWith(box);
  box.append(table);
}

let telling = 0;

/**
 * Tells that a text has another height by now, once for all that was drawn in a while.
 * @param {Promise<void>} drawing
 */
async function finished(drawing) {
  await drawing.catch(() => {}); // a library that did not arrive, maths that is none: it stays as it was written
  telling ||= setTimeout(() => {
    telling = 0;
    emit("textdrawn");
  }, TELL_MILLISECONDS);
}

// ---- for another page

/** Renders a text for a page without our scripts and styles: code is coloured, formulas are MathML. @param {string} text */
export async function renderWhole(text) {
  await loadMarkdown();
  const rendered = renderAtOnce(text, false) ?? await renderLater(text, false, () => true);
  if (!rendered) {
    const fragment = document.createDocumentFragment();
    fragment.append(plain(text));
    return fragment;
  }
  const fragment = cleaned(rendered.settled + rendered.rest);
  levelHeadings(fragment, 2);
  const { colour, draw } = await loadRendering();
  const blocks = /** @type {HTMLElement[]} */ ([...fragment.querySelectorAll("pre > code")]);
  const formulas = /** @type {HTMLElement[]} */ ([...fragment.querySelectorAll("[data-math]")]);
  await Promise.allSettled([...blocks.map(colour), ...formulas.map(draw)]);
  for (const formula of formulas) formula.replaceChildren(formula.querySelector("math") ?? formula.textContent);
  for (const place of /** @type {NodeListOf<HTMLElement>} */ (fragment.querySelectorAll("[data-ref], [data-footnote]"))) {
    place.prepend(place.dataset.ref ? "[" : `[${place.dataset.footnote}] `);
    if (place.dataset.ref) place.append("]");
  }
  return fragment;
}
