// What is fetched when it is first needed: libraries, dialogs, panels, styles (elements.js) and the texts of other languages.
// `lazy` loads them, and `script` those that are scripts.

/** @import { Site } from "../calls.js" */

/**
 * The libraries from npm, by their files.
 * @typedef {{
 *   "codemirror-autocomplete.js": typeof import("@codemirror/autocomplete"),
 *   "codemirror-commands.js": typeof import("@codemirror/commands"),
 *   "codemirror-language.js": typeof import("@codemirror/language"),
 *   "codemirror-python.js": typeof import("@codemirror/lang-python"),
 *   "codemirror-state.js": typeof import("@codemirror/state"),
 *   "codemirror-view.js": typeof import("@codemirror/view"),
 *   "dompurify.js": typeof import("dompurify"),
 *   "highlight.js": { default: Highlighter },
 *   "idb.js": typeof import("idb"),
 *   "katex.js": typeof import("katex"),
 *   "lezer-highlight.js": typeof import("@lezer/highlight"),
 *   "marked.js": typeof import("marked"),
 *   "pdf.js": typeof import("pdfjs-dist"),
 * }} Libraries
 */

/**
 * The part of highlight.js that is used: its package has no types.
 * @typedef {object} Highlighter
 * @property {(name: string) => object | undefined} getLanguage
 * @property {(code: string, options: { language: string, ignoreIllegals: boolean }) => { value: string }} highlight
 */

/**
 * Makes a function that fetches something when it is first called, and gives the same from then on. What did not
 * arrive is fetched again at the next call.
 * @template Value
 * @param {() => Promise<Value>} load
 */
export function lazy(load) {
  /** @type {Promise<Value> | undefined} */
  let arriving;
  return () => arriving ??= load().catch((error) => {
    arriving = undefined;
    throw error;
  });
}

const ADDRESS = /https?:[^?\s]+\.js/; // in a browser's message

/**
 * Makes a function that fetches a script when it is first called. Browsers like Chromium 150 remember that a script did
 * not arrive, and never ask for it again; under another address they do.
 * @template Module
 * @param {() => Promise<Module>} load
 * @returns {() => Promise<Module>}
 */
export function script(load) {
  let address = ""; // of what did not arrive
  let tries = 0;
  return lazy(() => (address ? import(`${address}?try=${++tries}`) : load()).catch((error) => {
    address ||= ADDRESS.exec(error.message)?.[0] ?? "";
    throw error;
  }));
}

/** Gives what site.json says. */
export const siteFacts = lazy(async () => /** @type {Site} */ (await (await fetch("site.json")).json()));

/** Makes a function that fetches a library, whose URL carries a hash. @type {<Name extends keyof Libraries>(name: Name) => () => Promise<Libraries[Name]>} */
export const library = (name) => script(async () => {
  const { vendor } = await siteFacts();
  return import(new URL(`../${vendor}${name}`, import.meta.url).href);
});
