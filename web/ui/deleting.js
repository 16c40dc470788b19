// Deleting a chat or messages, and taking it back. Fetched when somebody does.

/** @import { ChatMessage } from "./records.js" */

import { saveChat, store } from "./chat_store.js";
import { titleOf } from "./chat_titles.js";
import { isDeleted } from "./chats.js";
import { showChat, shown, write } from "./conversation.js";
import { notify, page, t } from "./page.js";
import { openChat, showNew } from "./sidebar.js";
import { pathOf, versionsOf } from "./tree.js";

/**
 * Its text goes, its place stays: what follows it knows where it belongs. Gives a function that takes it back.
 * @param {ChatMessage} message
 */
export function hide(message) {
  const { content, note, error } = message;
  const change = (/** @type {Partial<ChatMessage>} */ fields) => {
    Object.assign(message, fields, { gone: (message.gone ?? 0) + 1, version: message.version + 1 });
  };
  change({ content: "", note: "", error: "" });
  return () => change({ content, note, error });
}

/** All that follows a message, in every branch. @param {ChatMessage} message */
function branchOf(message) {
  const ids = new Set([message.id]);
  for (const each of shown.messages) if (ids.has(each.parent ?? "")) ids.add(each.id); // by age: none is missed
  return shown.messages.filter(({ id, gone = 0 }) => ids.has(id) && gone % 2 === 0);
}

/**
 * One of several versions goes with all that follows it. A question goes with its answers; what follows the one that is
 * shown stays.
 * @param {ChatMessage} message
 */
function goingWith(message) {
  if (versionsOf(shown, message).length > 1) return branchOf(message);
  const path = pathOf(shown);
  const next = path[path.indexOf(message) + 1];
  if (message.role === "assistant" || next?.role !== "assistant") return [message];
  const others = versionsOf(shown, next).filter((version) => version !== next);
  return [message, next, ...others.flatMap(branchOf)];
}

/** @param {ChatMessage} message */
export function deleteMessage(message) {
  const from = shown;
  const takeBack = goingWith(message).map(hide);
  const put = () => {
    showChat(from);
    store(from);
  };
  put();
  page.draft.focus();
  notify(t`Deleted.`, {
    undo() {
      for (const back of takeBack) back();
      put();
    },
  });
}

/** The chat that is shown: what a user sees is what goes. */
export function deleteShown() {
  shown.deleted = Math.max(Date.now(), shown.updated + 1);
  saveChat(shown);
  leave(t`“${titleOf(shown)}” is deleted.`);
  page.draft.focus();
}

/** Another tab may have deleted what this one shows. */
export function leaveDeleted() {
  if (isDeleted(shown)) leave(t`“${titleOf(shown)}” was deleted in another tab.`);
}

/** @param {string} words */
function leave(words) {
  const chat = shown;
  const text = page.draft.value;
  showNew();
  if (text && !page.draft.value) write(text);
  notify(words, {
    undo() {
      chat.updated = Math.max(Date.now(), chat.deleted);
      saveChat(chat);
      openChat(chat);
    },
  });
}
