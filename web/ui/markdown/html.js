// Markdown as HTML, within bounds. It needs no document: the page renders short texts with it, the rendering worker
// long ones. marked reads no HTML here, and links lead to http(s) addresses alone.

/** @import { Marked, MarkedExtension, RendererObject, Token, TokenizerAndRendererExtension, TokenizerObject } from "marked" */

/**
 * Markdown as HTML. Of a text that grows, `length` characters are settled; the rest may change.
 * @typedef {{ length: number, settled: string, rest: string }} RenderedMarkdown
 */

/**
 * A text for the rendering worker.
 * @typedef {object} RenderJob
 * @property {string} text
 * @property {boolean} [isGrowing] of Markdown
 * @property {string} [language] of code
 * @property {boolean} [isDisplay] of a formula: whether it has lines of its own
 */

const MAX_TEXT = 100_000; // characters
const MAX_CELLS = 5000; // a short row of a table has all its columns
const MAX_TAGS = 30_000; // that the page has to take in at once
const MAX_HTML = 1_000_000; // characters: many links may share one long address
const MAX_URL = 2000; // characters
const DEEP = /^([ \t]*(>|([-*+]|\d+[.)])[ \t])){30}|^[ \t]{60,}(>|[-*+]|\d+[.)])/m; // quotes and lists in each other

/** Escapes a text for HTML. @param {string} text */
export const escape = (text) => text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);

/** @type {(href: string, html: string, kind?: string) => string} */
function link(href, html, kind = "") {
  const url = href.length > MAX_URL ? null : URL.parse(href);
  if (url && /^https?:$/.test(url.protocol)) return `<a href="${escape(url.href)}"${kind}>${html}</a>`;
  return kind ? `<span${kind}>${html}</span>` : html;
}

/** @type {RendererObject} */
const renderer = {
  heading({ tokens, depth }) {
    const tag = `h${Math.min(depth + 2, 6)}`; // below the page's own headings
    return `<${tag}>${this.parser.parseInline(tokens)}</${tag}>`;
  },
  link({ href, tokens }) { return link(href, this.parser.parseInline(tokens)); },
  image: ({ href, text }) => link(href, escape(text || href), " data-image"), // the page says what it is
  checkbox: ({ checked }) => `<span data-task>${checked ? "☑" : "☐"}</span> `,
  code: ({ text, lang }) => `<pre data-language="${escape(lang || "text")}"><code>${escape(text)}</code></pre>`,
};

let deadline = 0;

/** @type {(beyond: boolean) => false} */
function bound(beyond) {
  if (beyond) throw new RangeError();
  return false; // marked goes on by itself
}

const inTime = () => bound(performance.now() > deadline);

/** @type {TokenizerObject} */
const tokenizer = {
  html: () => undefined,
  tag: () => undefined,
  space: inTime, // what marked tries first at each of its steps: a single step is bounded by its text or its worker
  escape: inTime,
  table(src) {
    const lines = src.split("\n\n", 1)[0].split("\n");
    return bound(lines[0].split("|").length * lines.length > MAX_CELLS);
  },
};

/** Whether a text can be rendered at all, be it in a worker. @param {string} text */
export const isRenderable = (text) => text.length <= MAX_TEXT && !DEEP.test(text);

/**
 * Renders a text, or throws where it is beyond the bounds. Of a text that grows, blocks that have ended are settled.
 * @param {Marked} marked
 * @param {string} text
 * @param {boolean} isGrowing
 * @param {number} until when it has to be done
 * @returns {RenderedMarkdown}
 */
export function renderMarkdown(marked, text, isGrowing, until) {
  deadline = until;
  bound(!isRenderable(text));
  const rest = marked.lexer(text);
  // A block may take in the next one (a list its next item), hardly the one after that.
  const ended = isGrowing ? rest.splice(0, rest.length - 3) : rest.splice(0);
  const rendered = { length: lengthOf(ended), settled: marked.parser(ended), rest: marked.parser(rest) };
  const html = [rendered.settled, rendered.rest];
  bound(html.some(({ length }) => length > MAX_HTML) || html.join("").split("<", MAX_TAGS + 1).length > MAX_TAGS);
  return rendered;
}

/** @param {Token[]} tokens */
const lengthOf = (tokens) => tokens.reduce((sum, { raw }) => sum + raw.length, 0);

// ---- maths, which stays in the page as it was written until it is drawn

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

// ---- footnotes: a number in the text, and a paragraph of its own; the page links them

/** @type {TokenizerAndRendererExtension[]} */
const footnotes = [{
  name: "footnoteText",
  level: "block",
  start: (src) => { const at = src.search(/^\[\^/m); return at < 0 ? undefined : at; },
  tokenizer(src) {
    const found = /^\[\^([^\]\s]{1,40})\]:([^\n]*)(?:\n+|$)/.exec(src);
    return found ? { type: "footnoteText", raw: found[0], label: found[1], tokens: this.lexer.inline(found[2].trim()) } : undefined;
  },
  renderer({ label, tokens = [] }) { return `<p data-footnote="${escape(label)}">${this.parser.parseInline(tokens)}</p>`; },
}, {
  name: "footnote",
  level: "inline",
  start: (src) => { const at = src.indexOf("[^"); return at < 0 ? undefined : at; },
  tokenizer(src) {
    const found = /^\[\^([^\]\s]{1,40})\]/.exec(src);
    return found ? { type: "footnote", raw: found[0], label: found[1] } : undefined;
  },
  renderer: ({ label }) => `<span data-ref="${escape(label)}">${escape(label)}</span>`,
}];

/** @type {MarkedExtension} */
const extension = {
  extensions: [
    ...footnotes,
    maths("mathsBlock", "block", /^ {0,3}(\$\$|\\\[)/m, [new RegExp(`^ {0,3}(?:${DISPLAY})[ \\t]*(?:\\n+|$)`)]),
    maths("maths", "inline", /(?<![\w$\\])\$(?!\s)|\\[([]/, [new RegExp(`^(?:${DISPLAY})`), new RegExp(`^(?:${INLINE})`)]),
  ],
};

/** Options for marked: these bounds, and maths. */
export const options = [{ renderer, tokenizer }, extension];
