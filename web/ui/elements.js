// The page's elements.

/** @import { Elements } from "./index_html.js" */

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
