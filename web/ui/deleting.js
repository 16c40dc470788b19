// Deleting a chat or messages, and taking it back. Fetched when somebody does.

import { isDeleted, saveChat, titleOf } from "./chats.js";
import { dropMessages, showChat, shown, store } from "./conversation.js";
import { notify, page } from "./page.js";
import { openChat, showNew } from "./sidebar.js";

/**
 * A question goes with its answer.
 * @param {number} index
 */
export function deleteMessage(index) {
  const from = shown;
  const [message, next] = from.messages.slice(index);
  const dropped = dropMessages(index, message.role === "user" && next?.role === "assistant" ? 2 : 1);
  const put = () => {
    showChat(from);
    store(from);
  };
  put();
  page.draft.focus();
  notify("Deleted.", () => {
    // Under new ids: the old ones are gone for good.
    from.messages.splice(index, 0, ...dropped.map((each) => ({ ...each, id: crypto.randomUUID() })));
    put();
  });
}

/** The chat that is shown: what a user sees is what goes. */
export function deleteShown() {
  shown.deleted = Math.max(Date.now(), shown.updated + 1);
  saveChat(shown);
  leave("is deleted.");
  page.draft.focus();
}

/** Another tab may have deleted what this one shows. */
export function leaveDeleted() {
  if (isDeleted(shown)) leave("was deleted in another tab.");
}

/** @param {string} words */
function leave(words) {
  const chat = shown;
  showNew();
  notify(`“${titleOf(chat)}” ${words}`, () => {
    chat.updated = Math.max(Date.now(), chat.deleted);
    saveChat(chat);
    openChat(chat);
  });
}
