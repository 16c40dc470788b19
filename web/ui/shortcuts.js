// Keyboard shortcuts, and their list.

import { answerIn, stop } from "./answers.js";
import { shown } from "./chats.js";
import { page } from "./elements.js";

const isMac = /Mac|iPhone|iPad/.test(navigator.userAgent);
const { draft, shortcuts } = page;

function showList() {
  if (!document.querySelector("dialog[open]")) shortcuts.showModal();
}

function findChats() {
  if (!page.sidebar.checkVisibility()) page.toggleSidebar.click();
  page.findChats.hidden = false;
  page.findChats.select();
}

/** @param {number} step */
function openNeighbour(step) {
  const rows = [.../** @type {NodeListOf<HTMLElement>} */ (page.chats.querySelectorAll("li[data-id]:not([hidden]) .open"))];
  const at = rows.findIndex((row) => row.ariaCurrent === "true");
  rows[at < 0 ? 0 : at + step]?.click();
}

/** @type {Record<string, () => void>} by the key's place, for Alt gives other letters on some keyboards */
const withAlt = {
  KeyN: () => page.newChat.click(),
  KeyB: () => page.toggleSidebar.click(),
  KeyC: () => /** @type {HTMLElement | undefined} */ ([...page.messages.querySelectorAll(".message:not(.question) [data-act=copy]")].at(-1))?.click(),
  End: () => page.latest.click(),
  ArrowUp: () => openNeighbour(-1),
  ArrowDown: () => openNeighbour(1),
};
/** @type {Record<string, () => void>} where nobody types */
const alone = { "?": showList, "/": () => draft.focus() };

/** A dialog closes by itself, unless there was something to stop. */
function stopOrLeave() {
  const mine = answerIn(shown);
  stop(mine);
  if (mine) return true;
  const isEditing = !page.editing.hidden;
  if (isEditing) page.stopEditing.click();
  return isEditing;
}

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !event.isComposing && stopOrLeave()) event.preventDefault();
});
addEventListener("keydown", (event) => {
  const { altKey, code, ctrlKey, key, metaKey, isComposing } = event;
  const isTyping = /** @type {Element} */ (event.composedPath()[0]).closest?.("input, textarea, select, [contenteditable=true]");
  const isOpen = document.querySelector("dialog[open]");
  const hasControl = isMac ? metaKey : ctrlKey;
  const act = isComposing || isOpen || event.defaultPrevented ? undefined
    : altKey && !ctrlKey && !metaKey ? withAlt[code]
    : hasControl && !altKey && key.toLowerCase() === "k" ? findChats
    : !ctrlKey && !metaKey && !altKey && !isTyping ? alone[key]
    : undefined;
  if (!act) return;
  event.preventDefault();
  act();
});

for (const key of shortcuts.querySelectorAll(".control")) if (isMac) key.textContent = "⌘";
page.showShortcuts.onclick = showList;
page.showShortcuts.hidden = false;
