// The sidebar: the list of chats, with what finds them (their words, their date, pins); opening one, a new one or that of the
// last visit; and the tools of the one that is open: name, export, import, delete.

/** @import { Chat } from "./chats.js" */

import { answerIn, answers } from "./answers.js";
import { saveChat, tell } from "./chat_storage.js";
import { allChats, chats, isDeleted, isImage, newChat, shown, titleOf } from "./chats.js";
import { write } from "./composer.js";
import { showChat } from "./conversation.js";
import { copyOf, page, partOf } from "./elements.js";
import { emit, on } from "./events.js";
import { lazy } from "./lazy.js";
import { arrived, notify } from "./notices.js";
import { keep, recall } from "./settings.js";
import { language, t } from "./wording.js";

const PINS = "inpagePins";
const DAY_MILLISECONDS = 24 * 3600 * 1000;
const MAX_PINS = 200;

const { chats: list, chatTitle, chatTools, findChats, importFile, pinChat, scrim, sidebar } = page;
let isOpen = false; // the page, with the chat of the last visit

/** Opens a chat, as a click in the list does. @param {Chat} chat */
function openChat(chat) {
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
  emit("chatshown");
}

/** Toggles the list: wide screens show it unless toggled, narrow ones if. @param {boolean} [isToggled] */
function toggle(isToggled) {
  document.body.toggleAttribute("data-toggled", isToggled);
  showToggle();
}

/** Opens or closes the list, as its button does. */
function toggleSidebar() {
  toggle();
  if (sidebar.checkVisibility()) page.newChat.focus();
}

function showToggle() {
  page.toggleSidebar.ariaExpanded = String(sidebar.checkVisibility());
}

page.newChat.onclick = () => openChat(newChat());
scrim.onclick = () => { toggle(false); page.toggleSidebar.focus(); };
sidebar.onkeydown = (/** @type {KeyboardEvent} */ { key }) => { if (key === "Escape" && scrim.checkVisibility()) scrim.click(); };

const showNew = () => show(newChat());

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
on("chatsread", () => { if (isOpen && !shown.messages.length) reopen(); });

// ---- deleting

/** Deletes the open chat: what a user sees is what goes. */
function deleteShown() {
  shown.deleted = Math.max(Date.now(), shown.updated + 1);
  saveChat(shown);
  leave(t`“${titleOf(shown)}” is deleted.`);
  page.draft.focus();
}

/** Leaves the open chat where another tab has deleted it. */
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

// ---- the list

function listChats() {
  if (!chatTitle.matches(":focus")) chatTitle.value = titleOf(shown);
  document.title = shown.messages.length ? `${titleOf(shown)} · inpage` : "inpage";
  list.replaceChildren(...allChats().map((chat) => {
    const row = copyOf(page.chatRow);
    const button = partOf(row, "open");
    button.textContent = titleOf(chat);
    button.onclick = () => openChat(chat);
    button.ariaCurrent = String(chat === shown);
    const mine = answerIn(chat);
    const mark = partOf(row, "mark");
    mark.hidden = !mine;
    mark.title = mark.ariaLabel = mine === answers[0] ? t`Being answered` : t`Waiting for its answer`;
    if (chat === shown) row.append(chatTools);
    row.dataset.id = chat.id;
    return row;
  }));
  decorate();
}

// ---- finding

/** @returns {string[]} ids of chats */
function pins() {
  try {
    const found = JSON.parse(localStorage.getItem(PINS) ?? "[]");
    return Array.isArray(found) ? found.filter((id) => typeof id === "string") : [];
  } catch {
    return []; // storage is switched off, or somebody else's
  }
}

/** Says when a chat was used last, in words of the user's language. @param {number} updated */
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
const isFound = ({ title, messages }, words) => [title, ...messages.flatMap(({ content, attachments = [] }) => [content, ...attachments.flatMap((file) => [file.name, isImage(file) ? "" : file.text])])]
  .some((text) => text.toLocaleLowerCase().includes(words));

/** Sorts the rows under headings, pinned ones first, and hides those in which the words that are looked for are not. */
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
    const chat = chats.get(row.dataset.id ?? "");
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
findChats.oninput = decorate;

// ---- tools

function rename() {
  shown.title = chatTitle.value.trim();
  shown.set.title = Date.now();
  saveChat(shown);
  listChats();
  chatTitle.value = titleOf(shown);
}

const loadFiles = lazy(() => import("./chat_files.js"));

async function importFiles() {
  const files = await arrived(loadFiles());
  for (const file of importFile.files ?? []) await files?.importFile(file);
  importFile.value = "";
}

/** @param {Chat[]} chosen */
const exportChats = async (chosen) => (await arrived(loadFiles()))?.exportChats(chosen);

/** What buttons do, by the name that they carry. */
export const tools = {
  toggleSidebar,
  renameChat() {
    toggle(false);
    chatTitle.select();
  },
  exportChat: () => exportChats([shown]),
  exportAll: () => exportChats(allChats()),
  deleteChat() {
    toggle(false);
    deleteShown();
  },
};

chatTitle.onchange = rename;
importFile.onchange = importFiles;
page.exportMarkdown.onclick = async () => (await arrived(loadFiles()))?.exportMarkdown(shown);
on("chatwanted", openChat);
on("chatschange", listChats);
listChats();
