// The list of chats: open, new, rename, delete, export and import.

import { allChats, deleteChat, newChat, saveChat, titleOf } from "./chats.js";
import { showChat, shown } from "./conversation.js";
import { copyOf, fetched, kept, notify, page, partOf } from "./page.js";

/** @typedef {import("./chats.js").Chat} Chat */

const { chatTitle, chatTools, importFile, scrim, sidebar, toggleSidebar } = page;

function listChats() {
  page.chats.replaceChildren(...allChats().map((chat) => {
    const row = copyOf(page.chatRow);
    const button = partOf(row, "open");
    button.textContent = titleOf(chat);
    button.onclick = () => open(chat);
    button.ariaCurrent = String(chat === shown);
    if (chat === shown) row.append(chatTools);
    return row;
  }));
  chatTitle.value = titleOf(shown);
  kept.inpageChat = shown.id;
}

/** @param {Chat} chat */
function open(chat) {
  toggle(false);
  show(chat);
  page.draft.focus();
}

/** @param {Chat} chat */
function show(chat) {
  showChat(chat);
  listChats();
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

page.newChat.onclick = () => open(newChat());
page.renameChat.onclick = () => { toggle(false); chatTitle.select(); };
chatTitle.onchange = () => {
  shown.title = chatTitle.value.trim();
  saveChat(shown);
  listChats();
};
/** @param {Chat[]} chosen */
const write = async (chosen) => (await fetched(import("./chat_files.js")))?.exportChats(chosen);
page.exportChat.onclick = () => write([shown]);
page.exportAll.onclick = () => write(allChats());
page.deleteChat.onclick = () => {
  const chat = shown;
  deleteChat(chat);
  open(newChat());
  notify(`“${titleOf(chat)}” is deleted.`, () => { saveChat(chat); open(chat); });
};
importFile.onchange = async () => {
  for (const file of importFile.files ?? []) await read(file);
  importFile.value = "";
};

/** @param {File} file */
async function read(file) {
  const part = await fetched(import("./chat_files.js"));
  if (!part) return;
  try {
    const imported = await part.importChats(file);
    notify(`${imported.length} chats imported from ${file.name}.`);
    open(imported[0] ?? shown);
  } catch (error) {
    notify(`${file.name} was not imported: ${/** @type {Error} */ (error).message}.`);
  }
}

/** The chat of the last visit, or the one that the user has opened by now. */
export function reopen() {
  showToggle();
  show(allChats().find(({ id }) => id === kept.inpageChat) ?? newChat());
}
addEventListener("chatschange", listChats);
