// Lines above the conversation, the newest on top.

import { copyOf, page, partOf } from "./elements.js";
import { t } from "./wording.js";

/** Milliseconds that a line stays. Tests have more. */
export const patience = { notice: 8000, undo: 20_000 };

/**
 * Shows a line above the conversation, for a while or until it is dismissed; with `undo`, a button for that.
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
 * Gives what a part of the page that is being fetched has, or nothing: then that is told.
 * @template Value
 * @param {Promise<Value>} arriving
 * @returns {Promise<Value | void>}
 */
export const arrived = (arriving) => arriving.catch(({ message }) => {
  notify(t`This part of the page could not be loaded: check the connection to this site, then try again (${message}).`, { stays: true });
});

/** Copies a text to the clipboard, or tells why not. @param {string} text */
export const copyText = (text) => navigator.clipboard.writeText(text).then(
  () => notify(t`Copied.`),
  () => notify(t`Copying was not allowed: select the text instead.`, { stays: true }),
);
