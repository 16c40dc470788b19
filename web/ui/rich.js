// What makes an answer rich: maths, colours of code, tables that scroll, reasoning that folds. Fetched when one has some.

/** @import { MarkedExtension, TokenizerAndRendererExtension } from "marked" */

import { copyOf, escape, page, t } from "./page.js";

export { folded } from "./reasoning.js";

const SLICE_MILLISECONDS = 30; // of work between two looks of the browser at the user
const PATIENCE_MILLISECONDS = 3000; // of work without rest: what is left then stays as it was written

/**
 * Maths stands in the page as it was written until it is drawn.
 * @param {string} name
 * @param {"block" | "inline"} level
 * @param {RegExp} start
 * @param {RegExp[]} forms
 * @returns {TokenizerAndRendererExtension}
 */
const maths = (name, level, start, forms) => ({
  name,
  level,
  start: (src) => { const at = src.search(start); return at < 0 ? undefined : at; },
  tokenizer(src) {
    for (const form of forms) {
      const found = form.exec(src);
      if (found) return { type: name, raw: found[0], text: found[0].trim() };
    }
  },
  renderer({ text }) {
    const kind = text.startsWith("$$") || text.startsWith("\\[") ? "display" : "inline";
    const html = `<span data-math="${kind}">${escape(text)}</span>`;
    return level === "block" ? `<p>${html}</p>` : html;
  },
});

const DISPLAY = String.raw`\$\$(?!\$)(?:\\[^]|[^\\$]|\$(?!\$))+?\$\$|\\\[(?:(?!\n[ \t]*\n)[^])+?\\\]`;
// As pandoc has it: no space inside the dollars, and no digit behind them. Prices stay prices: what begins with a
// number and goes on in words is none.
const INLINE = String.raw`\$(?![\s$]|\d[^$\n\\^_={}+*/<>]*[ ,][^$\n\\^_={}+*/<>]*\$)(?:\\[^\n]|[^\\$\n])*?(?:\\[^\n]|[^\\$\s])\$(?!\d)|\\\((?:(?!\n[ \t]*\n)[^])+?\\\)`;

/** @type {MarkedExtension} */
export const extension = {
  extensions: [
    maths("mathsBlock", "block", /^ {0,3}(\$\$|\\\[)/m, [new RegExp(`^ {0,3}(?:${DISPLAY})[ \\t]*(?:\\n+|$)`)]),
    maths("maths", "inline", /(?<![\w$\\])\$(?!\s)|\\[([]/, [new RegExp(`^(?:${DISPLAY})`), new RegExp(`^(?:${INLINE})`)]),
  ],
};

/** @type {HTMLElement[]} */
const queue = [];
let isWorking = false;

/**
 * Before the browser paints, as far as a slice of time goes; the rest a little later.
 * @param {DocumentFragment} fragment
 */
export function enrich(fragment) {
  for (const code of /** @type {NodeListOf<HTMLElement>} */ (fragment.querySelectorAll("pre > code"))) {
    code.tabIndex = 0; // long lines scroll, by keyboard too
    code.before(copyOf(page.copyCode));
  }
  for (const table of fragment.querySelectorAll("table")) scrolling(table);
  queue.push(...fragment.querySelectorAll(/** @type {"span"} */ ("[data-math], pre > code")));
  if (queue.length && !isWorking) queueMicrotask(work);
}

/** @param {HTMLTableElement} table */
function scrolling(table) {
  const box = document.createElement("div");
  Object.assign(box, { className: "scrolls", tabIndex: 0, role: "region", ariaLabel: t`Table`, dir: table.dir });
  table.removeAttribute("dir");
  table.replaceWith(box);
  box.append(table);
}

async function work() {
  if (isWorking) return;
  isWorking = true;
  for (let spent = 0; queue.length && spent < PATIENCE_MILLISECONDS; spent += SLICE_MILLISECONDS) {
    if (spent) await new Promise((resolve) => { setTimeout(resolve); });
    const end = performance.now() + SLICE_MILLISECONDS;
    while (queue.length && performance.now() < end) await draw(/** @type {HTMLElement} */ (queue.shift()));
    dispatchEvent(new Event("textdrawn"));
  }
  queue.length = 0;
  isWorking = false;
}

/** @param {HTMLElement} element */
async function draw(element) {
  if (!element.isConnected) return; // text that has grown since
  try {
    if (element.dataset.math) await (await import("./maths.js")).draw(element);
    else await (await import("./code.js")).colour(element);
  } catch { /* a library that did not arrive, maths that is none: it stays as it was written */ }
}
