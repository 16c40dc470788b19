// Other tabs with this page: what they save appears here, what they are writing says so, and so does a chat that is open twice.

import { answers, stop, writtenElsewhere } from "./answers.js";
import { channel, connect, readOne, tab, tell } from "./chat_storage.js";
import { allChats, chats, isDeleted, isGone, shown, titleOf } from "./chats.js";
import { follow, showMessages } from "./conversation.js";
import { page } from "./elements.js";
import { emit, on } from "./events.js";
import { loadingName } from "./models/models.js";
import { leaveDeleted } from "./sidebar.js";

/**
 * What another tab has told of itself.
 * @typedef {{ shows: string, answering: string[], model: string }} OtherTab the chat that it shows, the answers that it writes, the model that its own engine has
 */

const { system } = page;
/** @type {Map<string, OtherTab>} */
const others = new Map();

/** Names the lock that a tab holds as long as it is there. @param {string} name */
export const lockOf = (name) => `inpage page ${name}`;
navigator.locks?.request(lockOf(tab), () => new Promise(() => {}));

/** Takes in what another tab tells. @param {any} message a TabMessage, with the tab that sent it */
async function hear({ tab: from, saved, writing, shows, answering = [], model = "", asks, joins }) {
  if (joins === tab) return emit("guestcame", from);
  if (saved) await hearSaved(saved);
  if (saved && !writing) settle(from, saved);
  if (saved === shown.id) refresh();
  if (shows) meet(from, { shows, answering, model });
  if (shows === "") forget(from);
  if (asks) introduce();
  showTwice();
}

/** Tells other tabs about this one. @param {boolean} [asks] that they do the same */
function introduce(asks = false) {
  tell({ shows: shown.id, asks, answering: answers.map(({ message }) => message.id), model: document.body.hasAttribute("data-guest") ? "" : inpage.loaded?.name ?? loadingName() });
}

/** @type {(from: string, other: OtherTab) => void} */
function meet(from, other) {
  if (!others.has(from)) navigator.locks?.request(lockOf(from), () => forget(from)); // it is free once that tab is gone
  others.set(from, other);
  showWritten();
}

/** @param {string} from */
function forget(from) {
  others.delete(from);
  showWritten();
  showTwice();
}

/** Notes that another tab has written its answer in a chat. @type {(from: string, id: string) => void} */
function settle(from, id) {
  const other = others.get(from);
  const ids = new Set(chats.get(id)?.messages.map((message) => message.id));
  if (other) other.answering = other.answering.filter((each) => !ids.has(each));
  showWritten();
}

/** Shows which messages other tabs are writing. */
function showWritten() {
  const written = [...others.values()].flatMap(({ answering }) => answering);
  const isChange = written.length !== writtenElsewhere.size || written.some((id) => !writtenElsewhere.has(id));
  writtenElsewhere.clear();
  for (const id of written) writtenElsewhere.add(id);
  if (isChange) showMessages();
  emit("tabschange");
}

/** Finds a tab whose engine has a model, or is loading one. */
export const engineElsewhere = () => [...others].map(([from, { model }]) => ({ tab: from, model })).find(({ model }) => model);

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

/** Shows what has changed, and leaves the rest as it is. */
function refresh() {
  showMessages();
  if (!system.matches(":focus")) system.value = shown.system;
  follow();
  emit("answergrows");
}

function showTwice() {
  page.twice.hidden = ![...others.values()].some(({ shows }) => shows === shown.id);
}

let told = ""; // of the answers that are written here
on("chatschange", () => {
  const ids = answers.map(({ message }) => message.id).join();
  if (ids !== told && answers.length) introduce();
  told = ids;
});
on("modelchange", () => introduce());
on("chatshown", () => { introduce(true); showTwice(); });
on("chatmerged", refresh);
addEventListener("pagehide", () => tell({ shows: "" }));
channel.onmessage = ({ data }) => { hear(data); };
