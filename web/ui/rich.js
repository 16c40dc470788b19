// What makes an answer rich: maths, colours of code, tables that scroll, reasoning that folds. Fetched when one has some.

import { colour } from "./code.js";
import { draw } from "./maths.js";
import { copyOf, page, t } from "./page.js";

export { extension } from "./maths_syntax.js";
export { folded } from "./reasoning.js";

const TELL_MILLISECONDS = 30; // between two looks at what was drawn

/**
 * Adds what Markdown alone lacks; what the worker has to draw comes a little later.
 * @param {DocumentFragment} fragment
 */
export function enrich(fragment) {
  for (const code of /** @type {NodeListOf<HTMLElement>} */ (fragment.querySelectorAll("pre > code"))) {
    code.tabIndex = 0; // long lines scroll, by keyboard too
    code.before(copyOf(page.copyCode));
    finished(colour(code));
  }
  for (const table of fragment.querySelectorAll("table")) scrolling(table);
  for (const formula of /** @type {NodeListOf<HTMLElement>} */ (fragment.querySelectorAll("[data-math]"))) finished(draw(formula));
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
    dispatchEvent(new Event("textdrawn"));
  }, TELL_MILLISECONDS);
}
