// Markdown of a model, which is not to be trusted. Three nets: marked reads no HTML, our renderer
// makes links of http(s) addresses alone, DOMPurify lets nothing else pass.

import { copyOf, library, page } from "./page.js";

const TAGS = "p br hr strong em del code pre blockquote ul ol li h3 h4 h5 h6 table thead tbody tr th td a #text";
const PLAIN_ATTRIBUTES = ["start", "align", "data-language"];
const ALLOWED = /** @type {const} @satisfies {import("dompurify").Config} */ ({
  ALLOWED_TAGS: TAGS.split(" "),
  ALLOWED_ATTR: ["href", ...PLAIN_ATTRIBUTES],
  ALLOWED_URI_REGEXP: /^https?:\/\//i,
  ADD_URI_SAFE_ATTR: PLAIN_ATTRIBUTES,
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  RETURN_DOM_FRAGMENT: true,
});

/** @param {string} text */
const escape = (text) => text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);

/**
 * @param {string} href
 * @param {string} html
 */
function link(href, html) {
  const url = URL.canParse(href) ? new URL(href) : null;
  return url && /^https?:$/.test(url.protocol) ? `<a href="${escape(url.href)}">${html}</a>` : html;
}

/** @type {import("marked").RendererObject} */
const renderer = {
  heading({ tokens, depth }) {
    const tag = `h${Math.min(depth + 2, 6)}`; // below the page's own headings
    return `<${tag}>${this.parser.parseInline(tokens)}</${tag}>`;
  },
  link({ href, tokens }) { return link(href, this.parser.parseInline(tokens)); },
  image: ({ href, text }) => link(href, `[image: ${escape(text || href)}]`),
  checkbox: ({ checked }) => (checked ? "☑ " : "☐ "),
  code: ({ text, lang }) => `<pre data-language="${escape(lang || "text")}"><code>${escape(text)}</code></pre>`,
};

/** @type {import("marked").Marked | undefined} */
let marked; // where it or the other did not arrive, text is shown as it is
/** @type {import("dompurify").DOMPurify} */
let purify;

export async function loadMarkdown() {
  ({ default: purify } = await library("dompurify.js"));
  const { Marked } = await library("marked.js");
  marked = new Marked({ renderer, tokenizer: { html: () => undefined, tag: () => undefined } });
}

/**
 * @param {import("marked").Marked} reading
 * @param {import("marked").Token[]} tokens
 */
function nodesOf(reading, tokens) {
  const fragment = purify.sanitize(reading.parser(tokens), ALLOWED);
  for (const anchor of fragment.querySelectorAll("a")) Object.assign(anchor, { target: "_blank", rel: "noopener noreferrer" });
  for (const code of /** @type {NodeListOf<HTMLElement>} */ (fragment.querySelectorAll("pre > code"))) {
    code.tabIndex = 0; // long lines scroll, by keyboard too
    code.before(copyOf(page.copyCode));
  }
  return fragment;
}

/**
 * Markdown that grows: blocks that have ended are rendered once, only the tail again.
 * @param {HTMLElement} element
 */
export function markdownIn(element) {
  let settledText = 0;
  /** @type {ChildNode[]} */
  let unsettled = []; // nodes that show the rest
  return {
    /** @param {string} text */
    grow(text) {
      if (!marked) return this.finish(text);
      const tail = marked.lexer(text.slice(settledText));
      // A block may take in the next one (a list its next item), hardly the one after that.
      const ended = tail.splice(0, tail.length - 3);
      for (const { raw } of ended) settledText += raw.length;
      for (const node of unsettled) node.remove();
      const growing = nodesOf(marked, tail);
      unsettled = [...growing.childNodes];
      element.append(nodesOf(marked, ended), growing);
    },
    /**
     * The whole text at once, which alone knows all its link definitions.
     * @param {string} text
     */
    finish(text) {
      element.replaceChildren(marked ? nodesOf(marked, marked.lexer(text)) : text);
      unsettled = [...element.childNodes];
    },
  };
}
