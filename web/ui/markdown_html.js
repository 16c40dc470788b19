// Markdown as HTML, within bounds. It needs no document: the page renders short texts with it, the rendering worker
// long ones. marked reads no HTML here, and links lead to http(s) addresses alone.

/** @import { Marked, RendererObject, Token, TokenizerObject } from "marked" */
/** @import { RenderedMarkdown } from "./rendered.js" */

import { escape } from "./html.js";

const MAX_TEXT = 100_000; // characters
const MAX_CELLS = 5000; // a short row of a table has all its columns
const MAX_TAGS = 30_000; // that the page has to take in at once
const MAX_HTML = 1_000_000; // characters: many links may share one long address
const MAX_URL = 2000; // characters
const DEEP = /^([ \t]*(>|([-*+]|\d+[.)])[ \t])){30}|^[ \t]{60,}(>|[-*+]|\d+[.)])/m; // quotes and lists in each other

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

/** Options for marked that keep to these bounds. */
export const options = { renderer, tokenizer };

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
