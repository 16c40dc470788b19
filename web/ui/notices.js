// Lines above the conversation, the newest on top. Fetched when there is something to tell.

import { copyOf, page, partOf } from "./dom.js";

/** Milliseconds that a line stays. Tests have more. */
export const patience = { notice: 8000, undo: 20_000 };

/**
 * A line above the conversation, for a while or until it is dismissed; with `undo`, a button for that.
 * @param {string} text
 * @param {{ undo?: () => void, stays?: boolean }} [options]
 */
export async function notify(text, { undo, stays } = {}) {
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
