// Other tabs with this page: what they save appears here, and a chat that is open twice says so.

import { answers, stop } from "./answers.js";
import { channel, connect, readOne, tell } from "./chat_storage.js";
import { allChats, isDeleted, shown, titleOf } from "./chats.js";
import { follow, showMessages } from "./conversation.js";
import { page, partOf } from "./elements.js";
import { emit, on } from "./events.js";
import { isGone } from "./message_tree.js";
import { leaveDeleted } from "./sidebar.js";
import { t } from "./wording.js";

const { messages: list, system } = page;
/** @type {Map<string, string>} */
const elsewhere = new Map(); // the chat that each other tab shows

/** Takes in what another tab tells. @param {any} message a TabMessage, with the tab that sent it */
async function hear({ tab, saved, writing, shows, asks }) {
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
  if (rows() !== before) emit("chatschange"); // else the list keeps its focus
}

/**
 * Shows what has changed, and leaves the rest as it is.
 * @param {string} [writing]
 */
function refresh(writing) {
  showMessages();
  const written = writing && list.querySelector(`[data-id="${CSS.escape(writing)}"]`);
  if (written) partOf(written, "note").textContent = t`Being written in another tab`;
  if (!system.matches(":focus")) system.value = shown.system;
  follow();
  emit("answergrows");
}

function showTwice() {
  page.twice.hidden = ![...elsewhere.values()].includes(shown.id);
}

on("chatshown", showTwice);
on("chatmerged", () => refresh());
channel.onmessage = ({ data }) => { hear(data); };
