// Markdown in an element of the page: shown as it was written until what renders it has arrived (markdown/view.js).

/** @import { View } from "./markdown/reasoning.js" */

import { lazy, script } from "./lazy.js";
import { plain } from "./elements.js";

const loadViews = script(() => import("./markdown/view.js"));

/** @type {typeof import("./markdown/view.js") | undefined} */
let views; // once they are here
/** @type {Map<HTMLElement, () => void>} */
const waiting = new Map(); // for them

/** Fetches what renders Markdown, then shows again what was shown without it. */
export const loadMarkdown = lazy(async () => {
  views = await loadViews();
  const all = [...waiting.values()];
  waiting.clear();
  for (const showAgain of all) showAgain();
  await views.loadMarkdown();
});

/** Gives a view that shows Markdown in an element; where what renders it did not arrive, each new view has it fetched again. @param {HTMLElement} element @returns {View} */
export function markdownIn(element) {
  if (views) return views.markdownIn(element);
  loadMarkdown().catch(() => {}); // all can be read without it
  /** @type {View | undefined} */
  let view;
  const show = (/** @type {"grow" | "finish"} */ how) => (/** @type {string} */ text, isJson = false) => {
    if (views) return (view ??= views.markdownIn(element))[how](text, isJson);
    element.replaceChildren(plain(text));
    waiting.set(element, () => show(how)(text, isJson));
  };
  return { grow: show("grow"), finish: show("finish") };
}
