// The page's elements: found by their ids, copied from its templates, with styles that come when something needs them.

/** @import { Elements } from "./index_html.js" */

import { lazy } from "./lazy.js";
import { t } from "./wording.js";

/** The elements of index.html, by their ids. */
export const page = /** @type {Elements} */ (new Proxy({}, {
  get: (_, id) => document.getElementById(/** @type {string} */ (id)),
}));

/** @param {HTMLTemplateElement} template that holds one element */
export const copyOf = ({ content }) => /** @type {HTMLElement} */ (content.firstElementChild?.cloneNode(true));

/** Whether an element is in the page, or about to be. @param {Element} element */
export const isInUse = (element) => element.isConnected || element.getRootNode() instanceof DocumentFragment;

/** Finds a part of an element by its class. @type {(element: ParentNode, name: string) => HTMLElement} */
export const partOf = (element, name) => /** @type {HTMLElement} */ (element.querySelector(`.${name}`));

/** Finds the text of a message; other elements with texts may stand above it. @param {ParentNode} article */
export const mainTextOf = (article) => /** @type {HTMLElement} */ (article.querySelector(":scope > .text"));

/** Makes a function that fetches a style sheet, by its place below web/, and resolves once it holds. @param {string} path */
export const styleSheet = (path) => lazy(() => {
  const { promise, resolve, reject } = Promise.withResolvers();
  const link = Object.assign(document.createElement("link"), { rel: "stylesheet", href: new URL(`../${path}`, import.meta.url).href });
  link.onload = () => resolve(undefined);
  link.onerror = () => {
    link.remove();
    reject(new Error(path));
  };
  document.head.append(link);
  return promise;
});

// ---- texts as they were written: questions, and answers until what renders Markdown has arrived

const MAX_SHOWN = 200_000; // characters of one text, which browsers lay out in a moment

/** Gives as much of a text as can be shown. @param {string} text */
export const excerptOf = (text) => (text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}\n\n${t`The rest is too long to show: copy the message to get all of it.`}` : text);

/** Makes a paragraph of a text. @param {string} text */
export function plain(text) {
  const paragraph = document.createElement("p");
  paragraph.className = "plain";
  paragraph.dir = "auto";
  paragraph.textContent = excerptOf(text);
  return paragraph;
}
