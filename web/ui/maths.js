// Maths by KaTeX, in the rendering worker: bounded in length and depth, without macros and links, and what it makes
// passes DOMPurify. Its style attributes, which the page's policy refuses, are set by script, one by one.

import { remember, remembered } from "./drawn.js";
import { isInUse, library, siteFacts } from "./page.js";
import { renderInWorker } from "./rendering.js";

const MAX_CHARACTERS = 4000; // characters of a formula
const MAX_DEPTH = 10; // braces in each other: accents in powers of accents take twice the time each
const WRITTEN = /^(?:\$\$|\$|\\\(|\\\[)([^]*?)(?:\$\$|\$|\\\)|\\\])$/;
// What defines macros could make a page of a line.
const MACROS = /\\(?:[gex]?def|let|futurelet|global|(?:re|provide)?newcommand|renewcommand|providecommand|DeclareMathOperator)(?![a-zA-Z])/;

const MATHML = "math semantics annotation menclose mfrac mi mn mo mover mpadded mphantom mroot mrow ms mspace msqrt mstyle msub msubsup msup mtable mtd mtext mtr munder munderover";
const ATTRIBUTES = "class aria-hidden data-css xmlns display encoding mathvariant stretchy fence separator accent accentunder width height depth lspace rspace voffset minsize maxsize displaystyle scriptlevel mathcolor mathbackground mathsize linethickness rowspacing columnalign columnspacing columnlines rowlines notation largeop movablelimits linebreak viewBox preserveAspectRatio d x1 y1 x2 y2 stroke-width";
const ALLOWED = /** @type {const} @satisfies {import("dompurify").Config} */ ({
  ALLOWED_TAGS: `span svg path line #text ${MATHML}`.split(" "),
  ALLOWED_ATTR: ATTRIBUTES.split(" "),
  ADD_URI_SAFE_ATTR: ATTRIBUTES.split(" "),
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  RETURN_DOM_FRAGMENT: true,
});
const STYLES = /^(?:border|margin|padding|min-width|width|height|top|bottom|left|vertical-align|color|background-color)/;

/** @type {import("dompurify").DOMPurify | undefined} */
let purify; // once it is here, with KaTeX's styles

/**
 * Draws a formula, at once if it was drawn before. Rejects where it is not maths, or beyond the bounds.
 * @param {HTMLElement} element holds what was written, between its marks
 */
export async function draw(element) {
  const { textContent: written } = element;
  const [, tex] = written.length > MAX_CHARACTERS ? [] : WRITTEN.exec(written) ?? [];
  if (!tex || depthOf(tex) > MAX_DEPTH || MACROS.test(tex)) throw new RangeError();
  const isDisplay = element.dataset.math === "display";
  const name = `maths ${isDisplay} ${tex}`;
  const known = remembered(name);
  if (known !== undefined && purify) return show(element, known, purify);
  const html = await renderInWorker("maths", { text: tex, isDisplay }, () => isInUse(element));
  show(element, remember(name, html), purify ??= await fetchTools());
}

/** @type {(element: HTMLElement, html: string, tool: import("dompurify").DOMPurify) => void} */
function show(element, html, tool) {
  // KaTeX escapes quotes everywhere else, so that this is an attribute for sure.
  const drawn = tool.sanitize(html.replaceAll(' style="', ' data-css="'), ALLOWED);
  for (const part of /** @type {NodeListOf<HTMLElement>} */ (drawn.querySelectorAll("[data-css]"))) setStyle(part);
  element.replaceChildren(drawn);
  element.dataset.drawn = "";
  if (element.dataset.math === "display") element.tabIndex = 0; // a long one scrolls, by keyboard too
}

async function fetchTools() {
  const [{ default: tool }, { vendor }] = await Promise.all([library("dompurify.js"), siteFacts()]);
  const styles = Object.assign(document.createElement("link"), { rel: "stylesheet", href: `${vendor}katex.css` });
  styles.onerror = () => {
    styles.remove();
    purify = undefined; // the next formula fetches them again
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
