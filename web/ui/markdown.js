// Markdown of a model, which is not to be trusted. Three nets: marked reads no HTML, our renderer
// makes links of http(s) addresses alone, DOMPurify lets nothing else pass. Beyond its bounds, text is shown as it is.

/** @import { Config, DOMPurify } from "dompurify" */
/** @import { Marked, RendererObject, TokenizerObject } from "marked" */
/** @import { NodesOf, Within } from "./elements.js" */

import { escape, library, partOf, t } from "./page.js";

const TAGS = "p br hr strong em del code pre blockquote ul ol li h3 h4 h5 h6 table thead tbody tr th td a span #text";
const PLAIN_ATTRIBUTES = ["start", "align", "data-language", "data-math", "data-task"];
const ALLOWED = /** @type {const} @satisfies {Config} */ ({
  ALLOWED_TAGS: TAGS.split(" "),
  ALLOWED_ATTR: ["href", ...PLAIN_ATTRIBUTES],
  ALLOWED_URI_REGEXP: /^https?:\/\//i,
  ADD_URI_SAFE_ATTR: PLAIN_ATTRIBUTES,
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  RETURN_DOM_FRAGMENT: true,
});

const MAX_TEXT = 100_000; // characters
const MAX_CELLS = 5000; // a short row of a table has all its columns
const DEEP = /^([ \t]*(>|([-*+]|\d+[.)])[ \t])){30}|^[ \t]{60,}(>|[-*+]|\d+[.)])/m; // quotes and lists in each other
const RICH = /\$|\\[([]|^ *(```|~~~)|^( {4}|\t)|^[ |:-]*-[ |:-]*$|<[/|a-z]|\[\/?THINK/im; // what rich.js is for
const MILLISECONDS = { growing: 250, whole: 1000, atOnce: 3000 };

/** @type {(href: string, html: string) => string} */
function link(href, html) {
  const url = URL.parse(href);
  return url && /^https?:$/.test(url.protocol) ? `<a href="${escape(url.href)}">${html}</a>` : html;
}

/** @type {RendererObject} */
const renderer = {
  heading({ tokens, depth }) {
    const tag = `h${Math.min(depth + 2, 6)}`; // below the page's own headings
    return `<${tag}>${this.parser.parseInline(tokens)}</${tag}>`;
  },
  link({ href, tokens }) { return link(href, this.parser.parseInline(tokens)); },
  image: ({ href, text }) => link(href, t`[image: ${escape(text || href)}]`),
  checkbox: ({ checked }) => `<span data-task>${checked ? "☑" : "☐"}</span> `,
  code: ({ text, lang }) => `<pre data-language="${escape(lang || "text")}"><code>${escape(text)}</code></pre>`,
};

let deadline = 0;
let lastDeadline = 0; // of all that is rendered at once

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
  space: inTime, // what marked tries first at each of its steps: nothing else can interrupt it
  escape: inTime,
  table(src) {
    const lines = src.split("\n\n", 1)[0].split("\n");
    return bound(lines[0].split("|").length * lines.length > MAX_CELLS);
  },
};

/** @type {Marked | undefined} */
let marked; // perhaps it or the other did not arrive
/** @type {DOMPurify} */
let purify;
/** @type {typeof import("./rich.js") | undefined} */
let rich;
/** @type {Promise<void> | undefined} */
let arriving;
/** @type {Map<HTMLElement, () => void>} */
const waiting = new Map(); // for it

async function loadRich() {
  rich = await import("./rich.js");
  marked?.use(rich.extension);
  for (const showAgain of waiting.values()) showAgain();
}

export async function loadMarkdown() {
  ({ default: purify } = await library("dompurify.js"));
  const { Marked } = await library("marked.js");
  marked = new Marked({ renderer, tokenizer });
}

/** The text's nodes, or the text as it was written. @type {Within} */
function within(text, milliseconds, render) {
  const now = performance.now();
  if (!lastDeadline) {
    lastDeadline = now + MILLISECONDS.atOnce;
    setTimeout(() => { lastDeadline = 0; });
  }
  deadline = Math.min(now + milliseconds, lastDeadline);
  try {
    bound(text.length > MAX_TEXT || DEEP.test(text));
    if (marked) return render(marked, marked.lexer(text));
  } catch { /* too long, deep or slow, or a fault of marked's */ }
  const plain = document.createElement("p");
  plain.className = "plain";
  plain.dir = "auto";
  plain.textContent = text;
  return [plain];
}

/** @type {NodesOf} */
function nodesOf(reading, tokens) {
  const fragment = purify.sanitize(reading.parser(tokens), ALLOWED);
  for (const anchor of fragment.querySelectorAll("a")) Object.assign(anchor, { target: "_blank", rel: "noopener noreferrer" });
  for (const block of /** @type {Iterable<HTMLElement>} */ (fragment.children)) block.dir = "auto";
  rich?.enrich(fragment);
  return fragment;
}

/** Markdown that grows: blocks that have ended are rendered once, only the tail again. @param {HTMLElement} element */
function blocksIn(element) {
  let settledText = 0;
  /** @type {(Node | string)[]} */
  let unsettled = []; // nodes that show the rest
  let milliseconds = MILLISECONDS.growing;
  return {
    /** @param {string} text */
    grow(text) {
      const growing = within(text.slice(settledText), milliseconds, (reading, tail) => {
        // A block may take in the next one (a list its next item), hardly the one after that.
        const ended = tail.splice(0, tail.length - 3);
        const [settled, rest] = [nodesOf(reading, ended), nodesOf(reading, tail)];
        for (const { raw } of ended) settledText += raw.length;
        return [settled, ...rest.childNodes];
      });
      for (const node of unsettled) /** @type {ChildNode} */ (node).remove();
      element.append(...growing);
      unsettled = growing.filter((node) => !(node instanceof DocumentFragment));
      if (partOf(element, "plain")) milliseconds = -1; // more text takes no less
    },
    /** The whole text at once, which alone knows all its link definitions. @param {string} text */
    finish(text) {
      element.replaceChildren(...within(text, MILLISECONDS.whole, (reading, tokens) => [nodesOf(reading, tokens)]));
      unsettled = [...element.childNodes];
    },
  };
}

/** What it shows is shown again, richer, once what that takes has arrived. @param {HTMLElement} element */
export function markdownIn(element) {
  let view = blocksIn(element);
  const show = (/** @type {"grow" | "finish"} */ how) => (/** @type {string} */ text) => {
    if (!rich && RICH.test(text)) {
      arriving ??= loadRich().catch(() => {}); // all can be read without it
      waiting.set(element, () => {
        element.replaceChildren();
        view = blocksIn(element);
        show(how)(text);
      });
    }
    view = rich?.folded(view, element, text, blocksIn) ?? view;
    view[how](text);
  };
  return { grow: show("grow"), finish: show("finish") };
}
