// Other tabs with this page: what they save appears here, and a chat that is open twice says so. Fetched when there
// is another one.

import { answers } from "./answer_queue.js";
import { stop } from "./answers.js";
import { readOne } from "./chat_records.js";
import { connect, tell } from "./chat_store.js";
import { titleOf } from "./chat_titles.js";
import { allChats, isDeleted } from "./chats.js";
import { follow, showMessages, shown } from "./conversation.js";
import { leaveDeleted } from "./deleting.js";
import { page, partOf, t } from "./page.js";
import { isGone } from "./tree.js";

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
  for (const each of [...answers]) if (isDeleted(each.chat) || isGone(each.message)) stop(each);
  leaveDeleted();
  if (rows() !== before) dispatchEvent(new Event("chatschange")); // else the list keeps its focus
}

/**
 * Shows what has changed, and leaves the rest as it is.
 * @param {string} [writing]
 */
export function refresh(writing) {
  showMessages();
  const written = writing && list.querySelector(`[data-id="${CSS.escape(writing)}"]`);
  if (written) partOf(written, "note").textContent = t`Being written in another tab`;
  if (!system.matches(":focus")) system.value = shown.system;
  follow();
  dispatchEvent(new Event("answergrows"));
}

function showTwice() {
  page.twice.hidden = ![...elsewhere.values()].includes(shown.id);
}

addEventListener("chatshown", showTwice);
