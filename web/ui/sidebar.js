// The list of chats: open, new, rename, delete, export and import.

/** @import { Chat } from "./records.js" */

import { answerIn, answers } from "./answers.js";
import { allChats, newChat, tell, titleOf } from "./chats.js";
import { showChat, shown } from "./conversation.js";
import { copyOf, keep, lazy, page, partOf, recall } from "./page.js";

const { chatTitle, chatTools, importFile, sidebar } = page;
const tools = lazy(() => import("./chat_tools.js"));

export function listChats() {
  if (!chatTitle.matches(":focus")) chatTitle.value = titleOf(shown);
  document.title = shown.messages.length ? `${titleOf(shown)} · inpage` : "inpage";
  page.chats.replaceChildren(...allChats().map((chat) => {
    const row = copyOf(page.chatRow);
    const button = partOf(row, "open");
    button.textContent = titleOf(chat);
    button.onclick = () => openChat(chat);
    button.ariaCurrent = String(chat === shown);
    const mine = answerIn(chat);
    const mark = partOf(row, "mark");
    mark.hidden = !mine;
    mark.title = mark.ariaLabel = mine === answers[0] ? "Being answered" : "Waiting for its answer";
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

/** @type {(chat: Chat, text?: string) => void} */
function show(chat, text) {
  showChat(chat, text);
  keep("inpageChat", shown.id);
  tell({ shows: shown.id, asks: true });
  dispatchEvent(new Event("chatshown"));
}

/** Wide screens show the list unless toggled, narrow ones if. @param {boolean} [on] */
export function toggle(on) {
  document.body.toggleAttribute("data-toggled", on);
  showToggle();
}

function showToggle() {
  page.toggleSidebar.ariaExpanded = String(sidebar.checkVisibility());
}

page.newChat.onclick = () => openChat(newChat());
for (const name of /** @type {const} */ (["toggleSidebar", "renameChat", "exportChat", "exportAll", "exportUnkept", "deleteChat"])) {
  page[name].onclick = () => { tools[name](); };
}
chatTitle.onchange = () => { tools.rename(); };
importFile.onchange = () => { tools.importFiles(); };

export const showNew = () => show(newChat());

/** The chat of the last visit, or the one that the user has opened by now. */
export function reopen() {
  showToggle();
  show(allChats().find(({ id }) => id === recall("inpageChat")) ?? newChat(), page.draft.value);
}
addEventListener("chatschange", listChats);
addEventListener("pagehide", () => tell({ shows: "" }));
