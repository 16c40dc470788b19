// The list of chats: open, new, rename, delete, export and import.

import { allChats, deleteChat, exportChats, importChats, newChat, saveChat, titleOf } from "./chats.js";
import { showChat, shown } from "./conversation.js";
import { copyOf, kept, notify, page } from "./page.js";

const { chatTitle, chatTools, importFile, scrim, sidebar, toggleSidebar } = page;

function listChats() {
  page.chats.replaceChildren(...allChats().map((chat) => {
    const row = copyOf(page.chatRow);
    const [button] = row.children;
    button.textContent = titleOf(chat);
    button.onclick = () => open(chat);
    button.ariaCurrent = chat === shown;
    if (chat === shown) row.append(chatTools);
    return row;
  }));
  chatTitle.value = titleOf(shown);
  kept.inpageChat = shown.id;
}

function open(chat) {
  toggle(false);
  show(chat);
  page.draft.focus();
}

function show(chat) {
  showChat(chat);
  listChats();
}

/** Wide screens show the list unless toggled, narrow ones if. */
function toggle(on) {
  document.body.toggleAttribute("data-toggled", on);
  showToggle();
}

function showToggle() {
  toggleSidebar.ariaExpanded = sidebar.checkVisibility();
}

toggleSidebar.onclick = () => {
  toggle();
  if (sidebar.checkVisibility()) page.newChat.focus();
};
scrim.onclick = () => { toggle(false); toggleSidebar.focus(); };
sidebar.onkeydown = ({ key }) => { if (key === "Escape" && scrim.checkVisibility()) scrim.click(); };

page.newChat.onclick = () => open(newChat());
page.renameChat.onclick = () => { toggle(false); chatTitle.select(); };
chatTitle.onchange = () => {
  shown.title = chatTitle.value.trim();
  saveChat(shown);
  listChats();
};
page.exportChat.onclick = () => exportChats([shown]);
page.exportAll.onclick = () => exportChats(allChats());
page.deleteChat.onclick = () => {
  const chat = shown;
  deleteChat(chat);
  open(newChat());
  notify(`“${titleOf(chat)}” is deleted.`, () => { saveChat(chat); open(chat); });
};
importFile.onchange = async () => {
  const [file] = importFile.files;
  try {
    const imported = await importChats(file);
    notify(`${imported.length} chats imported from ${file.name}.`);
    open(imported[0] ?? shown);
  } catch ({ message }) {
    notify(`${file.name} was not imported: ${message}.`);
  }
  importFile.value = "";
};

/** The chat of the last visit, or the one that the reader has opened by now. */
export function reopen() {
  showToggle();
  show(allChats().find(({ id }) => id === kept.inpageChat) ?? newChat());
}
addEventListener("chatschange", listChats);
