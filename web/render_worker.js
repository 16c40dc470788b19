// The worker that renders what strangers wrote: long Markdown, colours of code, maths. It gives HTML, which the page
// sanitises. Nothing can interrupt its libraries, so the page (ui/markdown/rendering.js) ends it when a text takes too long.

/** @import { Libraries } from "./ui/lazy.js" */
/** @import { RenderJob } from "./ui/markdown/html.js" */

import { options, renderMarkdown } from "./ui/markdown/html.js";

const MARKDOWN_MILLISECONDS = 1000; // marked stops by itself then, which is cheaper than another worker
const MAX_HTML = 1_000_000; // characters of a formula or of a block of code

/** @type {<Name extends keyof Libraries>(vendor: string, name: Name) => Promise<Libraries[Name]>} */
const library = (vendor, name) => import(vendor + name);

const renderers = {
  /** @param {string} vendor */
  async markdown(vendor) {
    const { Marked } = await library(vendor, "marked.js");
    const marked = new Marked(...options);
    return (/** @type {RenderJob} */ { text, isGrowing }) => renderMarkdown(marked, text, !!isGrowing, performance.now() + MARKDOWN_MILLISECONDS);
  },

  /** @param {string} vendor */
  async code(vendor) {
    const { default: highlight } = await library(vendor, "highlight.js");
    return (/** @type {RenderJob} */ { text, language = "" }) => {
      if (!highlight.getLanguage(language)) throw new RangeError(); // nothing is guessed
      return bounded(highlight.highlight(text, { language, ignoreIllegals: true }).value);
    };
  },

  /** @param {string} vendor */
  async maths(vendor) {
    const { default: katex } = await library(vendor, "katex.js");
    const limits = { throwOnError: true, maxSize: 20, maxExpand: 1000, strict: /** @type {const} */ ("ignore"), trust: refuse };
    return (/** @type {RenderJob} */ { text, isDisplay }) => bounded(katex.renderToString(text, { displayMode: isDisplay, ...limits }));
  },
};

/** @returns {boolean} */
function refuse() {
  throw new RangeError(); // links, images, HTML: KaTeX asks, and all of the formula stays as it was written
}

/** @param {string} html */
function bounded(html) {
  if (html.length > MAX_HTML) throw new RangeError();
  return html;
}

/** @type {Partial<Record<string, Promise<(job: RenderJob) => unknown>>>} */
const ready = {};

addEventListener("message", async ({ data: { kind, vendor, job } }) => {
  /** @type {(job: RenderJob) => unknown} */
  let render;
  try {
    render = await (ready[kind] ??= renderers[/** @type {keyof typeof renderers} */ (kind)](vendor));
  } catch {
    return postMessage({ state: "lost" }); // the library did not arrive
  }
  postMessage({ state: "started" }); // from now on its time counts
  try {
    postMessage({ state: "done", result: render(job) });
  } catch {
    postMessage({ state: "refused" });
  }
});
