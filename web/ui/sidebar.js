// The list of chats: open, new, rename, delete, export and import.

/** @import { Chat } from "./records.js" */

import { allChats, newChat, saveChat, tell, titleOf } from "./chats.js";
import { showChat, shown } from "./conversation.js";
import { copyOf, fetched, keep, page, partOf, recall } from "./page.js";

const { chatTitle, chatTools, importFile, scrim, sidebar, toggleSidebar } = page;

function listChats() {
  if (!chatTitle.matches(":focus")) chatTitle.value = titleOf(shown);
  page.chats.replaceChildren(...allChats().map((chat) => {
    const row = copyOf(page.chatRow);
    const button = partOf(row, "open");
    button.textContent = titleOf(chat);
    button.onclick = () => openChat(chat);
    button.ariaCurrent = String(chat === shown);
    if (chat === shown) row.append(chatTools);
    row.dataset.id = chat.id;
    return row;
  }));
  dispatchEvent(new Event("chatslisted"));
}

/** @param {Chat} chat */
export function openChat(chat) {
  toggle(false);
  show(chat);
  page.draft.focus();
}

/** @param {Chat} chat */
function show(chat) {
  showChat(chat);
  listChats();
  keep("inpageChat", shown.id);
  tell({ shows: shown.id, asks: true });
  dispatchEvent(new Event("chatshown"));
}

/**
 * Wide screens show the list unless toggled, narrow ones if.
 * @param {boolean} [on]
 */
function toggle(on) {
  document.body.toggleAttribute("data-toggled", on);
  showToggle();
}

function showToggle() {
  toggleSidebar.ariaExpanded = String(sidebar.checkVisibility());
}

toggleSidebar.onclick = () => {
  toggle();
  if (sidebar.checkVisibility()) page.newChat.focus();
};
scrim.onclick = () => { toggle(false); toggleSidebar.focus(); };
sidebar.onkeydown = (/** @type {KeyboardEvent} */ { key }) => { if (key === "Escape" && scrim.checkVisibility()) scrim.click(); };

page.newChat.onclick = () => openChat(newChat());
page.renameChat.onclick = () => { toggle(false); chatTitle.select(); };
chatTitle.onchange = () => {
  shown.title = chatTitle.value.trim();
  shown.set.title = Date.now();
  saveChat(shown);
  listChats();
  chatTitle.value = titleOf(shown);
};
const files = () => fetched(import("./chat_files.js"));
page.exportChat.onclick = async () => (await files())?.exportChats([shown]);
page.exportAll.onclick = page.exportUnkept.onclick = async () => (await files())?.exportChats(allChats());
page.deleteChat.onclick = async () => {
  toggle(false);
  (await fetched(import("./deleting.js")))?.deleteShown();
};
importFile.onchange = async () => {
  for (const file of importFile.files ?? []) await (await files())?.importFile(file);
  importFile.value = "";
};

export const showNew = () => show(newChat());

/** The chat of the last visit, or the one that the user has opened by now. */
export function reopen() {
  showToggle();
  show(allChats().find(({ id }) => id === recall("inpageChat")) ?? newChat());
}
addEventListener("chatschange", listChats);
addEventListener("pagehide", () => tell({ shows: "" }));
