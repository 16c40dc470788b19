// The chats beside the conversation: opening one, a new one, and the list itself.

/** @import { Chat } from "./records.js" */

import { tell } from "./chat_store.js";
import { allChats, newChat } from "./chats.js";
import { showChat, shown } from "./conversation.js";
import { keep, page, recall } from "./page.js";

let isOpen = false;

/** @param {Chat} chat */
export function openChat(chat) {
  toggle(false);
  show(chat);
  page.draft.focus();
}

/** @type {(chat: Chat, text?: string) => void} */
function show(chat, text) {
  showChat(chat, text);
  keep("inpageChat", shown.id);
  announce();
}

/** Tells this page and other tabs which chat is shown. */
function announce() {
  tell({ shows: shown.id, asks: true });
  dispatchEvent(new Event("chatshown"));
}

/** Wide screens show the list unless toggled, narrow ones if. @param {boolean} [on] */
export function toggle(on) {
  document.body.toggleAttribute("data-toggled", on);
  showToggle();
}

function showToggle() {
  page.toggleSidebar.ariaExpanded = String(page.sidebar.checkVisibility());
}

page.newChat.onclick = () => openChat(newChat());

export const showNew = () => show(newChat());

/** Shows the chat of the last visit, or the one that the user has opened by now. */
export function reopen() {
  isOpen = true;
  showToggle();
  const last = allChats().find(({ id }) => id === recall("inpageChat"));
  if (last) show(last, page.draft.value);
  else announce();
}

addEventListener("pagehide", () => tell({ shows: "" }));
// The database may open late, at its second attempt say: unless the user has begun something else meanwhile.
addEventListener("chatsread", () => { if (isOpen && !shown.messages.length) reopen(); });
