// How maths is marked in Markdown. It stays in the page as it was written until it is drawn.

/** @import { MarkedExtension, TokenizerAndRendererExtension } from "marked" */

import { escape } from "./html.js";

/**
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
// number and goes on in words is none. The first class of the look-ahead lacks what follows it, so that it is linear.
const PRICE = String.raw`\d[^$\n\\^_={}+*/<> ,]*[ ,][^$\n\\^_={}+*/<>]*\$`;
const INLINE = String.raw`\$(?![\s$]|${PRICE})(?:\\[^\n]|[^\\$\n])*?(?:\\[^\n]|[^\\$\s])\$(?!\d)|\\\((?:(?!\n[ \t]*\n)[^])+?\\\)`;

/** @type {MarkedExtension} */
export const extension = {
  extensions: [
    maths("mathsBlock", "block", /^ {0,3}(\$\$|\\\[)/m, [new RegExp(`^ {0,3}(?:${DISPLAY})[ \\t]*(?:\\n+|$)`)]),
    maths("maths", "inline", /(?<![\w$\\])\$(?!\s)|\\[([]/, [new RegExp(`^(?:${DISPLAY})`), new RegExp(`^(?:${INLINE})`)]),
  ],
};
