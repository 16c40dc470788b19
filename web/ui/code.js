// Colours of code by highlight.js, in the rendering worker; only classes of spans come of it.

import { remembered, remember } from "./drawn.js";
import { escape, isInUse, library } from "./page.js";
import { renderInWorker } from "./rendering.js";

const MAX_CHARACTERS = 20_000; // characters
const ALLOWED = /** @type {const} @satisfies {import("dompurify").Config} */ ({
  ALLOWED_TAGS: ["span", "#text"],
  ALLOWED_ATTR: ["class"],
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  RETURN_DOM_FRAGMENT: true,
});

/** @type {import("dompurify").DOMPurify | undefined} */
let purify; // once it is here
let latest = { language: "", text: "", html: "" }; // that was coloured: perhaps the beginning of what grows now

/**
 * Colours a block that names a known language, at once if it was coloured before, or its beginning.
 * @param {HTMLElement} code
 */
export async function colour(code) {
  const [language] = code.parentElement?.dataset.language?.split(/[\s,{]/, 1) ?? [];
  const { textContent: text } = code;
  if (!language || text.length > MAX_CHARACTERS) return;
  const name = `code ${language} ${text}`;
  const known = remembered(name);
  if (known !== undefined) return show(code, known);
  if (language === latest.language && text.startsWith(latest.text)) show(code, latest.html + escape(text.slice(latest.text.length)));
  const html = await renderInWorker("code", { text, language }, () => isInUse(code));
  ({ default: purify } = await library("dompurify.js"));
  latest = { language, text, html: remember(name, html) };
  show(code, html);
}

/** @type {(code: HTMLElement, html: string) => void} */
function show(code, html) {
  if (purify) code.replaceChildren(purify.sanitize(html, ALLOWED));
}
