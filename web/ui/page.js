// What every part of the page uses.

/** @import { Elements, Libraries } from "./elements.js" */

/** The page's elements by their id. */
export const page = /** @type {Elements} */ (new Proxy({}, {
  get: (_, id) => document.getElementById(/** @type {string} */ (id)),
}));

/** @param {HTMLTemplateElement} template that holds one element */
export const copyOf = ({ content }) => /** @type {HTMLElement} */ (content.firstElementChild?.cloneNode(true));

/** By its class. @type {(element: ParentNode, name: string) => HTMLElement} */
export const partOf = (element, name) => /** @type {HTMLElement} */ (element.querySelector(`.${name}`));

/** @param {(string | false | null | undefined)[]} parts */
export const line = (...parts) => parts.filter(Boolean).join(" · ");

/** In milliseconds. Tests have more. */
export const patience = { notice: 8000, undo: 20_000 };

/**
 * A line above the conversation, for a while or until it is dismissed; with `undo`, a button for that.
 * @param {string} text
 * @param {{ undo?: () => void, stays?: boolean }} [options]
 */
export function notify(text, { undo, stays } = {}) {
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
  for (const old of page.notices.children) if (!undo && old.textContent === notice.textContent) old.remove();
  page.notices.prepend(notice);
  const fade = () => setTimeout(() => {
    if (notice.matches(":hover, :focus-within")) fade(); // it is being read
    else notice.remove();
  }, undo ? patience.undo : patience.notice);
  if (!stays) fade();
}

/**
 * A part of the page that few use. Where it does not arrive that is told, and there is nothing.
 * @template Module
 * @param {Promise<Module>} arriving
 */
export const fetched = (arriving) => arriving.catch(({ message }) => {
  notify(`This part of the page did not arrive: check the connection to this site, then try again (${message}).`, { stays: true });
});

/** The functions of such a part: a call fetches it. @type {import("./elements.d.ts").ToLazy} */
export const lazy = (load) => /** @type {any} */ (new Proxy({}, {
  get: (_, name) => async (/** @type {any[]} */ ...given) => {
    const module = /** @type {any} */ (await fetched(load()));
    return module?.[name](...given);
  },
}));

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

/** @type {Map<string, string>} */
const memory = new Map(); // of this page, also where storage is switched off or full

/**
 * What survives a reload: of this tab, or else of the last one.
 * @param {string} name
 */
export function recall(name) {
  try {
    return memory.get(name) ?? sessionStorage.getItem(name) ?? localStorage.getItem(name);
  } catch {
    return null;
  }
}

/**
 * @param {string} name
 * @param {string} text none leaves nothing behind
 */
export function keep(name, text) {
  memory.set(name, text);
  try {
    for (const storage of [sessionStorage, localStorage]) {
      if (text) storage.setItem(name, text);
      else storage.removeItem(name);
    }
  } catch { /* switched off, or full: it lasts as long as the page */ }
}
