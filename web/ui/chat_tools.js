// The buttons of the list of chats: open and close it, rename, export, import, delete. Fetched when somebody presses one.

import { exportChats, importFile as importChats } from "./chat_files.js";
import { listChats } from "./chat_list.js";
import { saveChat } from "./chat_store.js";
import { titleOf } from "./chat_titles.js";
import { allChats } from "./chats.js";
import { shown } from "./conversation.js";
import { deleteShown } from "./deleting.js";
import { page } from "./page.js";
import { toggle } from "./sidebar.js";

const { chatTitle, importFile, scrim, sidebar } = page;

export function toggleSidebar() {
  toggle();
  if (sidebar.checkVisibility()) page.newChat.focus();
}

scrim.onclick = () => { toggle(false); page.toggleSidebar.focus(); };
sidebar.onkeydown = (/** @type {KeyboardEvent} */ { key }) => { if (key === "Escape" && scrim.checkVisibility()) scrim.click(); };

export function renameChat() {
  toggle(false);
  chatTitle.select();
}

/** As the title says now. */
export function rename() {
  shown.title = chatTitle.value.trim();
  shown.set.title = Date.now();
  saveChat(shown);
  listChats();
  chatTitle.value = titleOf(shown);
}

export const exportChat = () => exportChats([shown]);
export const exportAll = () => exportChats(allChats());

export function deleteChat() {
  toggle(false);
  deleteShown();
}

export async function importFiles() {
  for (const file of importFile.files ?? []) await importChats(file);
  importFile.value = "";
}
