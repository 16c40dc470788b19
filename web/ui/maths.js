// Maths by KaTeX, which reads what a model wrote: bounded in length and depth, without macros and links, and what it
// makes passes DOMPurify. Its style attributes, which the page's policy refuses, are set by script, one by one.

import { library, siteFacts } from "./page.js";

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

/** @type {Awaited<ReturnType<typeof fetchTools>> | undefined} */
let tools; // once they are here

/**
 * Rejects where it is not maths, or beyond the bounds.
 * @param {HTMLElement} element holds what was written, between its marks
 */
export async function draw(element) {
  const [, tex] = WRITTEN.exec(element.textContent) ?? [];
  if (!tex || tex.length > MAX_CHARACTERS || depthOf(tex) > MAX_DEPTH || MACROS.test(tex)) throw new RangeError();
  const { katex, purify } = tools ??= await fetchTools();
  const displayMode = element.dataset.math === "display";
  const html = katex.renderToString(tex, { displayMode, throwOnError: true, strict: "ignore", trust, maxSize: 20, maxExpand: 1000 });
  // KaTeX escapes quotes everywhere else, so that this is an attribute for sure.
  const drawn = purify.sanitize(html.replaceAll(' style="', ' data-css="'), ALLOWED);
  for (const part of /** @type {NodeListOf<HTMLElement>} */ (drawn.querySelectorAll("[data-css]"))) setStyle(part);
  element.replaceChildren(drawn);
  element.dataset.drawn = "";
  if (displayMode) element.tabIndex = 0; // a long one scrolls, by keyboard too
}

async function fetchTools() {
  const [{ default: katex }, { default: purify }, { vendor }] = await Promise.all([library("katex.js"), library("dompurify.js"), siteFacts()]);
  const styles = Object.assign(document.createElement("link"), { rel: "stylesheet", href: `${vendor}katex.css` });
  styles.onerror = () => {
    styles.remove();
    tools = undefined; // the next formula fetches them again
  };
  document.head.append(styles);
  return { katex, purify };
}

/** @returns {boolean} */
function trust() {
  throw new RangeError(); // links, images, HTML: KaTeX asks, and all of the formula stays as it was written
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
