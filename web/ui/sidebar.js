// The sidebar: the list of chats, by pins, folders and dates; opening one, a new one or that of the last visit; deleting one.
// The menu of a chat (menus.js), and what finds words (finding.js), come when they are wanted.

/** @import { Chat } from "./chats.js" */
/** @import { Found } from "./finding.js" */

import { answerIn, answers, stop } from "./answers.js";
import { saveChat } from "./chat_storage.js";
import { allChats, isDeleted, isPinned, newChat, shown, titleOf } from "./chats.js";
import { write } from "./composer.js";
import { showChat } from "./conversation.js";
import { copyOf, page, partOf } from "./elements.js";
import { emit, on } from "./events.js";
import { script } from "./lazy.js";
import { arrived, notify } from "./notices.js";
import { keep, recall } from "./settings/settings.js";
import { language, t } from "./wording.js";

const HIDDEN = "inpageListHidden"; // on wide screens
const DAY_MILLISECONDS = 24 * 3600 * 1000;
const IS_NARROW = matchMedia("(max-width: 50rem)"); // as style.css has it: there the list covers the chat

const { chats: list, chatTitle, findChats, importFile, scrim, sidebar } = page;
let isOpen = false; // the page, with the chat of the last visit

/** Opens a chat, as a click in the list does. @param {Chat} chat */
function openChat(chat) {
  close();
  show(chat);
  page.draft.focus();
}

/** @type {(chat: Chat, text?: string) => void} */
function show(chat, text) {
  showChat(chat, text);
  if (!chat.temporary) keep("inpageChat", shown.id);
  page.temporary.hidden = !chat.temporary;
  emit("chatshown");
  list.querySelector('[aria-current="true"]')?.scrollIntoView({ block: "nearest" });
}

/** Toggles the list: wide screens show it unless toggled, narrow ones if. @param {boolean} [isToggled] */
function toggle(isToggled) {
  document.body.toggleAttribute("data-toggled", isToggled);
  showToggle();
}

/** Closes the list where it covers the chat. */
function close() {
  if (IS_NARROW.matches) toggle(false);
}

/** Opens or closes the list, as its button does; a wide screen remembers that. */
function toggleSidebar() {
  toggle();
  const isShown = sidebar.checkVisibility();
  if (!IS_NARROW.matches) keep(HIDDEN, isShown ? "" : "1");
  if (isShown) page.newChat.focus();
}

function showToggle() {
  page.toggleSidebar.ariaExpanded = String(sidebar.checkVisibility());
}

page.newChat.onclick = () => openChat(newChat());
scrim.onclick = () => { close(); page.toggleSidebar.focus(); };
sidebar.onkeydown = (/** @type {KeyboardEvent} */ { key }) => { if (key === "Escape" && scrim.checkVisibility()) scrim.click(); };
IS_NARROW.onchange = () => toggle(!IS_NARROW.matches && !!recall(HIDDEN));
toggle(!IS_NARROW.matches && !!recall(HIDDEN)); // at once: the user may toggle it before the chats are read

const showNew = () => show(newChat());

/** Shows the chat of the last visit, the one that the user has opened by now, or a new one for the question in the address. */
export function reopen() {
  isOpen = true;
  const address = new URL(location.href);
  const question = address.searchParams.get("q");
  const last = allChats().find(({ id }) => id === recall("inpageChat"));
  if (question) {
    address.searchParams.delete("q"); // it is asked once
    history.replaceState(null, "", address);
    show(newChat(), question);
    page.draft.focus();
  } else if (last) show(last, page.draft.value);
  else emit("chatshown");
}

// The database may open late, at its second attempt say: unless the user has begun something else meanwhile.
on("chatsread", () => { if (isOpen && !shown.messages.length && !shown.temporary) reopen(); });

// ---- deleting

/** Deletes a chat; the user may take that back. @param {Chat} chat */
function deleteChat(chat) {
  close();
  for (const each of [...answers]) if (each.chat === chat) stop(each);
  chat.deleted = Math.max(Date.now(), chat.updated + 1);
  saveChat(chat);
  leave(chat, t`“${titleOf(chat)}” is deleted.`);
  page.draft.focus();
}

/** Leaves the open chat where another tab has deleted it. */
export function leaveDeleted() {
  if (isDeleted(shown)) leave(shown, t`“${titleOf(shown)}” was deleted in another tab.`);
}

/** @type {(chat: Chat, words: string) => void} */
function leave(chat, words) {
  const text = page.draft.value;
  if (chat === shown) {
    showNew();
    if (text && !page.draft.value) write(text);
  } else listChats();
  notify(words, {
    undo() {
      chat.updated = Math.max(Date.now(), chat.deleted);
      saveChat(chat);
      openChat(chat);
    },
  });
}

// ---- the list

const loadFinding = script(() => import("./finding.js"));
const loadMenu = script(() => import("./menus.js"));
/** @type {typeof import("./finding.js") | undefined} */
let finding; // once somebody looks for words

/** Lists the chats: pinned ones first, then those in folders, then the others by their date. */
function listChats() {
  if (!chatTitle.matches(":focus")) chatTitle.value = titleOf(shown);
  document.title = shown.messages.length ? `${titleOf(shown)} · inpage` : "inpage";
  const all = allChats();
  const words = finding ? findChats.value.trim().toLocaleLowerCase() : "";
  findChats.hidden = all.length < 2 && !words;
  const focused = document.activeElement?.closest("#chats li")?.getAttribute("data-id");
  const isMenu = document.activeElement?.classList.contains("about");
  /** @type {Map<string, HTMLElement[]>} */
  const groups = new Map();
  for (const chat of all) {
    const found = words ? finding?.find(chat, words) : undefined;
    if (words && !found) continue;
    const group = groupOf(chat);
    groups.set(group, [...groups.get(group) ?? [], rowOf(chat, found, words)]);
  }
  const order = [...groups.keys()].sort((a, b) => rankOf(a) - rankOf(b) || (rankOf(a) === 2 ? a.localeCompare(b) : 0));
  list.replaceChildren(...order.flatMap((group) => [heading(group.slice(1)), ...groups.get(group) ?? []]));
  if (words && !order.length) list.append(heading(t`No results`));
  const row = focused && list.querySelector(`[data-id="${CSS.escape(focused)}"]`);
  if (row) partOf(row, isMenu ? "about" : "open").focus();
}

/** Words the group of a chat, behind a digit that says where groups of its kind stand. @param {Chat} chat */
function groupOf(chat) {
  if (chat.temporary) return `0${t`Temporary`}`;
  if (isPinned(chat)) return `1${t`Pinned`}`;
  return chat.folder ? `2${chat.folder}` : `3${dayOf(chat.updated)}`;
}

/** @param {string} group */
const rankOf = (group) => Number(group[0]);

/** @type {(chat: Chat, found: Found | undefined, words: string) => HTMLElement} */
function rowOf(chat, found, words) {
  const row = copyOf(page.chatRow);
  const button = partOf(row, "open");
  const about = /** @type {HTMLButtonElement} */ (partOf(row, "about"));
  button.textContent = titleOf(chat);
  if (found?.message && finding) button.append(finding.lineIn(found));
  button.onclick = () => {
    openChat(chat);
    if (found) finding?.reveal(chat, found, words);
  };
  button.ariaCurrent = String(chat === shown);
  about.ariaLabel = chat === shown ? t`More about this chat` : t`More about that chat`;
  about.onclick = async () => (await arrived(loadMenu()))?.openChatMenu(about, chat);
  const mine = answerIn(chat);
  const mark = partOf(row, "mark");
  mark.hidden = !mine;
  mark.classList.toggle("waits", mine !== answers[0]);
  mark.title = mark.ariaLabel = mine === answers[0] ? t`Being answered` : t`Waiting for its answer`;
  row.dataset.id = chat.id;
  return row;
}

/** @param {string} text */
const heading = (text) => Object.assign(document.createElement("li"), { className: "when", textContent: text });

/** Says when a chat was used last, in words of the user's language. @param {number} updated */
function dayOf(updated) {
  const midnight = new Date().setHours(0, 0, 0, 0);
  const days = Math.ceil((midnight - updated) / DAY_MILLISECONDS);
  if (days <= 0) return t`Today`;
  if (days === 1) return t`Yesterday`;
  if (days <= 7) return t`Previous 7 days`;
  return new Date(updated).toLocaleDateString(language, { month: "long", year: "numeric" });
}

findChats.oninput = async () => {
  finding = await arrived(loadFinding()) ?? finding;
  listChats();
};

// ---- tools

function rename() {
  shown.title = chatTitle.value.trim();
  shown.set.title = Date.now();
  saveChat(shown);
  listChats();
  chatTitle.value = titleOf(shown);
}

const loadFiles = script(() => import("./chat_files.js"));

async function importFiles() {
  const files = await arrived(loadFiles());
  for (const file of importFile.files ?? []) await files?.importFile(file);
  importFile.value = "";
}

/** What buttons do, by the name that they carry. */
export const tools = {
  toggleSidebar,
  newTemporary: () => openChat({ ...newChat(), temporary: true }),
  exportAll: async () => (await arrived(loadFiles()))?.exportChats(allChats().filter(({ temporary }) => !temporary)),
};

chatTitle.onchange = rename;
importFile.onchange = importFiles;
on("chatwanted", openChat);
on("chatunwanted", deleteChat);
on("chatschange", listChats);
listChats();
