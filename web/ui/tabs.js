// Other tabs with this page: what they save appears here, and a chat that is open twice says so. Fetched when there
// is another one.

import { readOne } from "./chat_records.js";
import { allChats, connect, isDeleted, tell, titleOf } from "./chats.js";
import { answer, articleOf, follow, showContext, shown } from "./conversation.js";
import { leaveDeleted } from "./deleting.js";
import { page, partOf } from "./page.js";

const { messages: list, system } = page;
/** @type {Map<string, string>} */
const elsewhere = new Map(); // the chat that each other tab shows

/** @param {any} message a TabMessage, with the tab that sent it */
export async function hear({ tab, saved, writing, shows, asks }) {
  if (saved) await hearSaved(saved);
  if (saved === shown.id) refresh(writing);
  if (shows !== undefined) elsewhere.set(tab, shows);
  if (asks) tell({ shows: shown.id });
  showTwice();
}

const rows = () => JSON.stringify(allChats().map((chat) => [chat.id, titleOf(chat)]));

/** @param {string} id */
async function hearSaved(id) {
  const before = rows();
  const database = await connect();
  if (database) await readOne(database, id).catch(() => {}); // one of a newer version
  const isGone = answer && (isDeleted(answer.chat) || !answer.chat.messages.includes(answer.message));
  if (isGone) answer?.abort.abort();
  leaveDeleted();
  if (rows() !== before) dispatchEvent(new Event("chatschange")); // else the list keeps its focus
}

/**
 * Shows what has changed, and leaves the rest as it is.
 * @param {string} [writing]
 */
export function refresh(writing) {
  const there = new Map([.../** @type {Iterable<HTMLElement>} */ (list.children)].map((article) => [article.dataset.id, article]));
  for (const [at, message] of shown.messages.entries()) {
    const old = there.get(message.id);
    const isSame = old && (message === answer?.message || old.dataset.version === String(message.version));
    const article = isSame ? old : articleOf(message);
    if (article !== list.children[at]) list.insertBefore(article, list.children[at] ?? null);
    if (message.id === writing) partOf(article, "note").textContent = "Being written in another tab";
  }
  while (list.children.length > shown.messages.length) list.lastElementChild?.remove();
  document.body.toggleAttribute("data-empty", !shown.messages.length);
  if (!system.matches(":focus")) system.value = shown.system;
  follow();
  if (!answer) showContext();
}

function showTwice() {
  page.twice.hidden = ![...elsewhere.values()].includes(shown.id);
}

addEventListener("chatshown", showTwice);
