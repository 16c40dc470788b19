// Markdown of a model, which is not to be trusted. Three nets: marked reads no HTML, our renderer
// makes links of http(s) addresses alone, DOMPurify lets nothing else pass.

import { copyOf, library, page } from "./page.js";

const TAGS = "p br hr strong em del code pre blockquote ul ol li h3 h4 h5 h6 table thead tbody tr th td a #text";
const PLAIN_ATTRIBUTES = ["start", "align", "data-language"];
const ALLOWED = {
  ALLOWED_TAGS: TAGS.split(" "),
  ALLOWED_ATTR: ["href", ...PLAIN_ATTRIBUTES],
  ALLOWED_URI_REGEXP: /^https?:\/\//i,
  ADD_URI_SAFE_ATTR: PLAIN_ATTRIBUTES,
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  RETURN_DOM_FRAGMENT: true,
};

const escape = (text) => text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt()};`);

function link(href, html) {
  const url = URL.canParse(href) && new URL(href);
  return /^https?:$/.test(url.protocol) ? `<a href="${escape(url.href)}">${html}</a>` : html;
}

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

let marked, purify; // where they did not arrive, text is shown as it is

export async function loadMarkdown() {
  ({ default: purify } = await library("dompurify.js"));
  const { Marked } = await library("marked.js");
  marked = new Marked({ renderer, tokenizer: { html() {}, tag() {} } });
}

function nodesOf(tokens) {
  const fragment = purify.sanitize(marked.parser(tokens), ALLOWED);
  for (const anchor of fragment.querySelectorAll("a")) Object.assign(anchor, { target: "_blank", rel: "noopener noreferrer" });
  for (const code of fragment.querySelectorAll("pre > code")) {
    code.tabIndex = 0; // long lines scroll, by keyboard too
    code.before(copyOf(page.copyCode));
  }
  return fragment;
}

/** Markdown that grows: blocks that have ended are rendered once, only the tail again. */
export function markdownIn(element) {
  let settledText = 0;
  let settledNodes = 0; // that show it
  return {
    grow(text) {
      if (!marked) return this.finish(text);
      const tail = marked.lexer(text.slice(settledText));
      // A block may take in the next one (a list its next item), hardly the one after that.
      const ended = tail.splice(0, tail.length - 3);
      while (element.childNodes.length > settledNodes) element.lastChild.remove();
      element.append(nodesOf(ended));
      settledNodes = element.childNodes.length;
      for (const { raw } of ended) settledText += raw.length;
      element.append(nodesOf(tail));
    },
    /** The whole text at once, which alone knows all its link definitions. */
    finish: (text) => element.replaceChildren(marked ? nodesOf(marked.lexer(text)) : text),
  };
}
