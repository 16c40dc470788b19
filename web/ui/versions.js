// Which of its versions a message is. Fetched when one has several.

/** @import { Chat, ChatMessage } from "./records.js" */

import { partOf } from "./page.js";
import { versionsOf } from "./tree.js";

/** @type {(article: HTMLElement, chat: Chat, message: ChatMessage) => void} */
export function showVersions(article, chat, message) {
  const versions = versionsOf(chat, message);
  const at = versions.indexOf(message);
  partOf(article, "versions").hidden = false;
  partOf(article, "which").textContent = `${at + 1}/${versions.length}`;
  /** @type {HTMLButtonElement} */ (partOf(article, "earlier")).disabled = at === 0;
  /** @type {HTMLButtonElement} */ (partOf(article, "later")).disabled = at === versions.length - 1;
}
