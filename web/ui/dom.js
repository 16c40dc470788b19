// The page's elements.

/** By their id. */
export const page = /** @type {import("./elements.d.ts").Elements} */ (new Proxy({}, {
  get: (_, id) => document.getElementById(/** @type {string} */ (id)),
}));

/** @param {HTMLTemplateElement} template that holds one element */
export const copyOf = ({ content }) => /** @type {HTMLElement} */ (content.firstElementChild?.cloneNode(true));

/** Whether an element is in the page, or about to be. @param {Element} element */
export const isInUse = (element) => element.isConnected || element.getRootNode() instanceof DocumentFragment;

/** By its class. @type {(element: ParentNode, name: string) => HTMLElement} */
export const partOf = (element, name) => /** @type {HTMLElement} */ (element.querySelector(`.${name}`));
