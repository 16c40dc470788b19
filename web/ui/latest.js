// A way back to the newest words of a long chat, and the answer as plain text.

import { page, partOf } from "./page.js";

const FAR = 300; // pixels
const { latest, scroller } = page;

function showLatest() {
  latest.hidden = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < FAR;
}

latest.onclick = () => {
  scroller.scrollTop = scroller.scrollHeight;
  page.draft.focus();
};
scroller.addEventListener("scroll", showLatest);
new ResizeObserver(showLatest).observe(partOf(scroller, "column"));

/**
 * As it is read: formulas as they were written, without reasoning and buttons.
 * @param {Element} text
 */
export function plainTextOf(text) {
  const copy = /** @type {Element} */ (text.cloneNode(true));
  for (const part of copy.querySelectorAll(".reasoning, button")) part.remove();
  for (const formula of copy.querySelectorAll("[data-drawn]")) formula.textContent = formula.querySelector("annotation")?.textContent ?? "";
  const box = Object.assign(document.createElement("div"), { className: "sr" });
  box.append(copy);
  document.body.append(box); // innerText knows lines only of what is laid out
  const { innerText } = /** @type {HTMLElement} */ (copy);
  box.remove();
  return innerText.replace(/\n{3,}/g, "\n\n").trim();
}
