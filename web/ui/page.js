// What every part of the page uses.

/** @import { Site } from "../calls.js" */
/** @import { Fetched, FromNpm, ToLazy } from "./elements.js" */

import { page } from "./dom.js";
import { t } from "./wording.js";

export * from "./dom.js";
export { escape } from "./html.js";
export { decimal, faultOf, inWords, language, t, tell } from "./wording.js";

const MAX_SHOWN = 200_000; // characters of one text, which browsers lay out in a moment

/** As much of a text as can be shown. @param {string} text */
export const excerptOf = (text) => (text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}\n\n${t`The rest is too long to show: copy the message to get all of it.`}` : text);

/** @param {(string | 0 | false | null | undefined)[]} parts */
export const line = (...parts) => parts.filter(Boolean).join(" · ");

/** Tells something above the conversation. @type {typeof import("./notices.js").notify} */
export const notify = (text, options) => import("./notices.js").then((notices) => notices.notify(text, options), () => page.notices.append(text));

/** A part that few use, or nothing: then that is told. @type {Fetched} */
export const fetched = (arriving) => arriving.catch(({ message }) => {
  notify(t`This part of the page could not be loaded: check the connection to this site, then try again (${message}).`, { stays: true });
});

/** The functions of such a part: a call fetches it. @type {ToLazy} */
export const lazy = (load) => /** @type {any} */ (new Proxy({}, {
  get: (_, name) => async (/** @type {any[]} */ ...given) => {
    const module = /** @type {any} */ (await fetched(load()));
    return module?.[name](...given);
  },
}));

/** @type {Site | undefined} */
let site; // once it is here: what failed is asked for again

export const siteFacts = async () => site ??= /** @type {Site} */ (await (await fetch("site.json")).json());

/** From npm. Its URL carries a hash. @type {FromNpm} */
export async function library(name) {
  const { vendor } = await siteFacts();
  return import(new URL(vendor + name, document.baseURI).href);
}

/** @type {Map<string, string>} */
const memory = new Map(); // of this page, also where storage is switched off or full

/** What survives a reload: of this tab, or else of the last one. @param {string} name */
export function recall(name) {
  try {
    return memory.get(name) ?? sessionStorage.getItem(name) ?? localStorage.getItem(name);
  } catch {
    return null;
  }
}

/** No text leaves nothing behind. @type {(name: string, text: string) => void} */
export function keep(name, text) {
  memory.set(name, text);
  try {
    for (const storage of [sessionStorage, localStorage]) {
      if (text) storage.setItem(name, text);
      else storage.removeItem(name);
    }
  } catch { /* switched off, or full: it lasts as long as the page */ }
}
