// Finds chats: by their words, by date, pinned ones first. Decorates the list that chat_list.js makes.

/** @import { Chat } from "./records.js" */

import { chatAsMarkdown, fileName } from "./chat_markdown.js";
import { chats as known } from "./chats.js";
import { shown } from "./conversation.js";
import { giveFile } from "./giving.js";
import { language, page, t } from "./page.js";

const PINS = "inpagePins";
const DAY_MILLISECONDS = 24 * 3600 * 1000;
const MAX_PINS = 200;
const { chats: list, findChats, pinChat } = page;

/** @returns {string[]} ids of chats */
function pins() {
  try {
    const found = JSON.parse(localStorage.getItem(PINS) ?? "[]");
    return Array.isArray(found) ? found.filter((id) => typeof id === "string") : [];
  } catch {
    return []; // storage is switched off, or somebody else's
  }
}

/**
 * Since when, in words of the user's language.
 * @param {number} updated
 */
function dayOf(updated) {
  const midnight = new Date().setHours(0, 0, 0, 0);
  const days = Math.ceil((midnight - updated) / DAY_MILLISECONDS);
  if (days <= 0) return t`Today`;
  if (days === 1) return t`Yesterday`;
  if (days <= 7) return t`Previous 7 days`;
  return new Date(updated).toLocaleDateString(language, { month: "long", year: "numeric" });
}

/**
 * @param {Chat} chat
 * @param {string} words
 */
const isFound = ({ title, messages }, words) => [title, ...messages.map(({ content }) => content)]
  .some((text) => text.toLocaleLowerCase().includes(words));

function decorate() {
  const words = findChats.value.trim().toLocaleLowerCase();
  const pinned = new Set(pins());
  /** @type {HTMLElement[]} */
  const rows = [...list.querySelectorAll(/** @type {"li"} */ ("li[data-id]"))];
  for (const old of list.querySelectorAll(".when")) old.remove();
  findChats.hidden = rows.length < 2 && !words;
  const { activeElement } = document; // moving an element takes its focus
  let last = "";
  for (const row of [...rows.filter(isPinned), ...rows.filter((each) => !isPinned(each))]) {
    const chat = known.get(row.dataset.id ?? "");
    row.hidden = !!words && !!chat && !isFound(chat, words);
    const when = isPinned(row) ? t`Pinned` : dayOf(chat?.updated ?? 0);
    if (!row.hidden && when !== last) list.append(heading(last = when));
    list.append(row);
  }
  if (words && !list.querySelector("[data-id]:not([hidden])")) list.append(heading(t`No results`));
  if (activeElement !== document.activeElement && activeElement instanceof HTMLElement) activeElement.focus();
  pinChat.ariaPressed = String(pinned.has(shown.id));

  /** @param {HTMLElement} row */
  function isPinned(row) {
    return pinned.has(row.dataset.id ?? "");
  }
}

/** @param {string} text */
const heading = (text) => Object.assign(document.createElement("li"), { className: "when", textContent: text });

pinChat.onclick = () => {
  const others = pins().filter((id) => id !== shown.id);
  try {
    localStorage.setItem(PINS, JSON.stringify(pins().includes(shown.id) ? others : [...others, shown.id].slice(-MAX_PINS)));
  } catch { /* switched off, or full: nothing is pinned */ }
  decorate();
};
page.exportMarkdown.onclick = () => giveFile(fileName(shown, "md"), chatAsMarkdown(shown), "text/markdown");
findChats.oninput = decorate;
addEventListener("chatslisted", decorate);
decorate();
