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

// ---- directions

const LETTER = /\p{L}/gu;
const FROM_THE_RIGHT = /[\p{sc=Arab}\p{sc=Hebr}\p{sc=Syrc}\p{sc=Thaa}\p{sc=Nkoo}\p{sc=Adlm}]/gu;
const count = (/** @type {RegExp} */ kind, /** @type {(string | null)[]} */ texts) => texts.reduce((sum, text) => sum + (text?.match(kind)?.length ?? 0), 0);

/**
 * Gives a text's direction: from the right where most of its letters are read so, also if it begins with a Latin name; or else that of
 * its first letter, which the browser finds. What its `parts` say (code, maths) does not count.
 * @param {string | null} text
 * @param {Iterable<Element>} [parts]
 */
export function directionOf(text, parts = []) {
  const fromTheRight = count(FROM_THE_RIGHT, [text]);
  if (!fromTheRight) return "auto";
  const [others, allOthers] = [FROM_THE_RIGHT, LETTER].map((kind) => count(kind, Array.from(parts, ({ textContent }) => textContent)));
  return (fromTheRight - others) * 2 > count(LETTER, [text]) - allOthers ? "rtl" : "auto";
}

// ---- texts as they were written: questions, and answers until what renders Markdown has arrived

const MAX_SHOWN = 200_000; // characters of one text, which browsers lay out in a moment

/** Gives as much of a text as can be shown. @param {string} text */
export const excerptOf = (text) => (text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}\n\n${t`The rest is too long to show: copy the message to get all of it.`}` : text);

/** Makes a paragraph of a text. @param {string} text */
export function plain(text) {
  const paragraph = document.createElement("p");
  paragraph.className = "plain";
  paragraph.textContent = excerptOf(text);
  paragraph.dir = directionOf(paragraph.textContent);
  return paragraph;
}
