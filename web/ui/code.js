// Colours of code by highlight.js; only classes of spans come of it.

import { library } from "./page.js";

const MAX_CHARACTERS = 20_000; // characters
const ALLOWED = /** @type {const} @satisfies {import("dompurify").Config} */ ({
  ALLOWED_TAGS: ["span", "#text"],
  ALLOWED_ATTR: ["class"],
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  RETURN_DOM_FRAGMENT: true,
});

const fetchLibraries = () => Promise.all([library("highlight.js"), library("dompurify.js")]);
/** @type {Awaited<ReturnType<typeof fetchLibraries>> | undefined} */
let libraries; // once they are here

/**
 * Where the block names a language that is known; nothing is guessed.
 * @param {HTMLElement} code
 */
export async function colour(code) {
  const [language] = code.parentElement?.dataset.language?.split(/[\s,{]/) ?? [];
  const { textContent } = code;
  if (!language || textContent.length > MAX_CHARACTERS) return;
  const [{ default: highlight }, { default: purify }] = libraries ??= await fetchLibraries();
  if (!highlight.getLanguage(language)) return;
  code.replaceChildren(purify.sanitize(highlight.highlight(textContent, { language, ignoreIllegals: true }).value, ALLOWED));
}
