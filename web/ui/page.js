// What every part of the page uses.

/** @import { Elements, Libraries } from "./elements.js" */

/** The page's elements by their id. */
export const page = /** @type {Elements} */ (new Proxy({}, {
  get: (_, id) => document.getElementById(/** @type {string} */ (id)),
}));

/**
 * A template holds one element.
 * @param {HTMLTemplateElement} template
 */
export const copyOf = ({ content }) => /** @type {HTMLElement} */ (content.firstElementChild?.cloneNode(true));

/**
 * The part of an element that has this class.
 * @param {ParentNode} element
 * @param {string} name
 */
export const partOf = (element, name) => /** @type {HTMLElement} */ (element.querySelector(`.${name}`));

/** @param {(string | false | null | undefined)[]} parts */
export const line = (...parts) => parts.filter(Boolean).join(" · ");

/**
 * A line above the conversation until it is dismissed; with `undo`, a button for that.
 * @param {string} text
 * @param {() => void} [undo]
 */
export function notify(text, undo) {
  const notice = copyOf(page.notice);
  const undoButton = partOf(notice, "undo");
  partOf(notice, "words").textContent = text;
  undoButton.hidden = !undo;
  notice.onclick = ({ target }) => {
    if (!/** @type {Element} */ (target).closest("button")) return;
    notice.remove();
    page.draft.focus();
    if (target === undoButton) undo?.();
  };
  for (const old of page.notices.children) if (old.textContent === notice.textContent) old.remove();
  page.notices.append(notice);
}

/** @param {string} text */
export const copyText = (text) => navigator.clipboard.writeText(text).then(
  () => notify("Copied."),
  () => notify("Copying was not allowed: select the text instead."),
);

/**
 * A part of the page that few use and that is fetched when they do. Where it does not arrive that is told, and
 * there is nothing.
 * @template Module
 * @param {Promise<Module>} arriving
 */
export const fetched = (arriving) => arriving.catch(({ message }) => {
  notify(`This part of the page did not arrive: check the connection to this site, then try again (${message}).`);
});

/**
 * A library from npm. Its URL carries a hash, and site.json knows it.
 * @template {keyof Libraries} Name
 * @param {Name} name
 * @returns {Promise<Libraries[Name]>}
 */
export async function library(name) {
  const { vendor } = await (await fetch("site.json")).json();
  return import(new URL(vendor + name, document.baseURI).href);
}

/**
 * What survives a reload: of this tab, or else of the last one; nothing where it is switched off.
 * @param {string} name
 */
export function recall(name) {
  try {
    return sessionStorage.getItem(name) ?? localStorage.getItem(name);
  } catch {
    return null;
  }
}

/**
 * @param {string} name
 * @param {string} text
 */
export function keep(name, text) {
  try {
    sessionStorage.setItem(name, text);
    localStorage.setItem(name, text);
  } catch { /* switched off, or full: it lasts as long as the page */ }
}
