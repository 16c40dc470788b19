// Keeps the user's chats in IndexedDB, as long as the browser does: read with care, merged message by message with what
// other tabs write, which are told.

/** @import { Attachment, Chat, ChatMessage } from "./chats.js" */

import { chats, isDeleted, unsaved, WITHOUT_TEXT } from "./chats.js";
import { page, partOf } from "./elements.js";
import { emit } from "./events.js";
import { library } from "./lazy.js";
import { notify } from "./notices.js";
import { t } from "./wording.js";

/** @typedef {import("idb").DBSchema & { chats: { key: string, value: Chat & { version: number } } }} Schema */
/** @typedef {import("idb").IDBPDatabase<Schema>} Database */
/** @typedef {{ saved: string, writing?: string } | { shows: string, asks?: boolean }} TabMessage what tabs tell each other */

const VERSION = 5; // in the first, messages had no ids; in the second, no versions; in the third, notes were texts; in the fourth, files were part of a text
const MAX_NESTED = 4; // facts in facts of a note
const MAX_TITLE = 200;
const MONTH = 30 * 24 * 3600 * 1000; // that a deleted chat is remembered as such
const MILLISECONDS = 5000; // at most until the page opens, and between attempts to save

const loadIdb = library("idb.js");

/** @type {Promise<Database | undefined> | undefined} */
let connection;
let retry = 0;

const tab = crypto.randomUUID();
export const channel = new BroadcastChannel("inpage");
/** Tells other tabs. @param {TabMessage} message */
export const tell = (message) => channel.postMessage({ tab, ...message });

/** Gives the database, or nothing where it cannot be opened now. */
export const connect = () => connection ??= open();

async function open() {
  try {
    const { openDB } = await loadIdb();
    /** @type {Database} */
    const database = await openDB("inpage", 1, {
      upgrade: (fresh) => { fresh.createObjectStore("chats", { keyPath: "id" }); },
      blocking: () => lose(t`it was cleared`),
      terminated: () => lose(t`the browser closed it`),
    });
    const keys = await database.getAllKeys("chats");
    if (keys.length || chats.size) await readAll(database, keys);
    return database;
  } catch (error) {
    showUnkept(error);
  }
}

/** Goes on without the database, and tries to open it again. @param {string} message */
function lose(message) {
  showUnkept({ message });
  save();
}

/** @param {any} why they are in this page alone, until an attempt succeeds */
function showUnkept({ message, name }) {
  connection?.then((database) => database?.close());
  connection = undefined;
  clearTimeout(retry);
  retry = setTimeout(save, MILLISECONDS);
  partOf(page.unkept, "why").textContent = `(${message || name})`;
  page.unkept.dataset.state = "away";
}

/** Writes all that is not kept yet. */
async function save() {
  const database = await connect();
  if (!database) return;
  let fault; // of one of them
  for (const chat of unsaved.keys()) {
    await write(database, chat).catch((error) => { fault = error; });
  }
  if (fault) showUnkept(fault);
  else if (page.unkept.dataset.state === "away") page.unkept.dataset.state = "";
}

/**
 * Writes a chat in one transaction, merged with what another tab has written meanwhile.
 * @param {Database} database
 * @param {Chat} chat
 */
async function write(database, chat) {
  const transaction = database.transaction("chats", "readwrite");
  transaction.done.catch(() => {}); // the request that failed tells
  const record = await transaction.store.get(chat.id);
  if (record && record.stamp !== chat.stamp) takeIn(chat, record);
  chat.stamp = crypto.randomUUID();
  const emptied = isDeleted(chat) && { title: "", system: "", notebook: "", messages: [] };
  const change = unsaved.get(chat);
  const put = transaction.store.put({ ...chat, ...emptied, version: VERSION });
  transaction.commit(); // at once: the page may be closing
  await Promise.all([put, transaction.done]);
  if (unsaved.get(chat) === change) unsaved.delete(chat);
}

export const opened = Promise.race([connect(), new Promise((resolve) => { setTimeout(resolve, MILLISECONDS); })]);

/**
 * Keeps a chat, and tells other tabs.
 * @param {Chat} chat
 * @param {string} [writing] the message that is being written
 */
export async function saveChat(chat, writing) {
  chats.set(chat.id, chat);
  unsaved.set(chat, {});
  await save();
  tell({ saved: chat.id, writing });
}

/**
 * Keeps a chat that the user goes on with.
 * @param {Chat} chat
 * @param {string} [writing]
 */
export function store(chat, writing) {
  chat.updated = Date.now();
  saveChat(chat, writing);
  emit("chatschange");
}

addEventListener("beforeunload", (event) => { if (page.unkept.dataset.state && chats.size) event.preventDefault(); });

// ---- reading

/**
 * Reads all chats, one by one: what cannot be read stays where it is, and keeps no other from being listed.
 * @param {Database} database
 * @param {any[]} keys
 */
async function readAll(database, keys) {
  const read = await Promise.allSettled(keys.map((key) => readOne(database, key)));
  const faults = read.flatMap((result) => (result.status === "rejected" ? [result.reason.message] : []));
  if (faults.length) notify(t`${faults.length} of your chats cannot be read and is left as it is: ${faults[0]}.|${faults.length} of your chats cannot be read and are left as they are: ${faults[0]}.`, { stays: true });
  const cleared = [...chats.values()].filter((chat) => !keys.includes(chat.id) && !unsaved.has(chat) && !isDeleted(chat));
  if (cleared.length) offer(cleared);
  emit("chatschange");
  emit("chatsread");
}

/**
 * Reads a chat, and merges it into the one in memory.
 * @param {Database} database
 * @param {string} id
 */
export async function readOne(database, id) {
  const chat = readChat(await database.get("chats", id), t`one chat`);
  const own = chats.get(id);
  if (own) mergeInto(own, chat);
  else chats.set(id, chat);
  if (isDeleted(chat) && chat.deleted < Date.now() - MONTH) await database.delete("chats", id);
}

/**
 * Takes in what another tab wrote: it appears here, too (tabs.js).
 * @param {Chat} chat
 * @param {unknown} record
 */
function takeIn(chat, record) {
  mergeInto(chat, readChat(record, t`this chat`));
  emit("chatmerged");
}

/** Offers to keep chats again that are gone from storage: perhaps the user wanted that. @param {Chat[]} cleared */
function offer(cleared) {
  page.unkept.dataset.state = "cleared";
  page.keepChats.onclick = () => {
    page.unkept.dataset.state = "";
    for (const chat of cleared) if (!isDeleted(chat)) unsaved.set(chat, {});
    save();
  };
}

/**
 * Throws in words where something is not as it has to be.
 * @param {boolean} sound
 * @param {string} fault
 */
export function check(sound, fault) {
  if (!sound) throw new Error(fault);
}

/** @param {unknown[]} values */
const areTexts = (...values) => values.every((value) => typeof value === "string");

/** @param {any} value */
const whole = (value, otherwise = 0) => (Number.isSafeInteger(value) ? value : otherwise);

/**
 * Reads those fields that we know, whoever wrote them; throws in words. Tabs that read the same get the same.
 * @param {any} record
 * @param {string} name
 * @returns {Chat}
 */
export function readChat(record, name) {
  const { id, title = "", system = "", notebook, set, updated, deleted, messages, version, stamp } = record ?? {};
  check(!(version > VERSION), t`${name} is of a newer version of this page: reload it`);
  check(areTexts(title, system), t`title or system prompt of ${name} is not a text`);
  check(Array.isArray(messages), t`${name} has no list of messages`);
  /** @type {ChatMessage[]} */
  const read = messages.map((/** @type {any} */ message, /** @type {number} */ at) => readMessage(message ?? {}, name, at));
  const unique = [...new Map([...goneOf(record.gone), ...read].map((message) => [message.id, message])).values()];
  if (!(version > 2)) for (const [at, message] of read.entries()) message.parent ??= read[at - 1]?.id ?? ""; // one after the other
  return {
    id,
    title: title.slice(0, MAX_TITLE),
    system,
    notebook: areTexts(notebook) ? notebook : "",
    set: { title: whole(set?.title), system: whole(set?.system), notebook: whole(set?.notebook) },
    updated: whole(updated),
    deleted: whole(deleted),
    messages: unique.sort(byAge),
    stamp,
  };
}

/**
 * Makes messages of what version 2 kept of deleted ones: their ids alone.
 * @param {unknown} ids
 * @returns {ChatMessage[]}
 */
const goneOf = (ids) => (Array.isArray(ids) ? ids : []).filter((id) => areTexts(id))
  .map((id) => ({ id, born: 0, version: 0, role: "user", content: "", gone: 1 }));

/** @type {(a: ChatMessage, b: ChatMessage) => number} */
const byAge = (a, b) => a.born - b.born || (a.id < b.id ? -1 : 1);

/** Whether it is a text, a number, a message with a code and facts, or a list of these. @type {(value: any, depth?: number) => boolean} */
function isFact(value, depth = 0) {
  if (["string", "number"].includes(typeof value)) return true;
  if (typeof value !== "object" || !value || depth > MAX_NESTED) return false;
  if (Array.isArray(value)) return value.every((each) => isFact(each, depth + 1));
  const { code, facts } = value;
  return areTexts(code) && typeof facts === "object" && !!facts && Object.values(facts).every((each) => isFact(each, depth + 1));
}

/** @param {any} value */
const isRecord = (value) => typeof value === "object" && !!value && Object.values(value).every((each) => each === null || isFact(each));

/**
 * @param {any} message
 * @param {string} name
 * @param {number} at
 * @returns {ChatMessage}
 */
function readMessage(message, name, at) {
  const { id = `old-${at}`, born, version, role, content, attachments = [], sources, thought, note = "", error = "", code = "", reason, facts, parent, slot, picked, gone, tokens, made, settings, certain } = message;
  const sound = ["user", "assistant"].includes(role) && areTexts(id, content, error, code) && Array.isArray(attachments)
    && attachments.every((file) => areTexts(file?.name, file?.title, file?.kind, file?.text));
  check(sound, t`message ${at + 1} of ${name} is not a text of the user or the assistant`);
  return {
    id, born: whole(born, at), version: whole(version), role, content, thought: whole(thought), note: isFact(note) ? note : "", error, code,
    ...(attachments.length ? { attachments: attachments.map(readFile) } : {}),
    ...(areTexts(sources?.text) && Array.isArray(sources.passages) ? { sources } : {}),
    ...(areTexts(reason) && isFact({ code: reason, facts }) ? { reason, facts } : {}),
    parent: areTexts(parent) ? parent : undefined, slot: areTexts(slot) ? slot : undefined,
    picked: whole(picked), gone: whole(gone), certain: whole(certain),
    ...(/^([\da-z]{1,6}\.)*$/.test(tokens) ? { tokens } : {}),
    ...(isRecord(made) && isRecord(settings) ? { made, settings } : {}),
  };
}

/** @param {any} file @returns {Attachment} */
const readFile = ({ name, title, kind, text, bytes, pages, starts, tokens, whole: most, search, inParts, names }) => ({
  name, title, kind, text, bytes: whole(bytes), pages: whole(pages), tokens: whole(tokens), whole: whole(most),
  starts: Array.isArray(starts) ? starts.map((start) => whole(start)) : [],
  ...(areTexts(search) ? { search, inParts: whole(inParts) } : {}),
  ...(Array.isArray(names) ? { names: names.map(String) } : {}),
});

/**
 * Takes in what another tab wrote: all messages stay, of each the newest version counts, and its last deletion.
 * @param {Chat} chat
 * @param {Chat} other
 */
function mergeInto(chat, other) {
  const merged = new Map(chat.messages.map((message) => [message.id, message]));
  for (const message of other.messages) {
    const own = merged.get(message.id) ?? message;
    const picked = Math.max(own.picked ?? 0, message.picked ?? 0);
    const gone = Math.max(own.gone ?? 0, message.gone ?? 0);
    if (message.version > own.version) Object.assign(own, message);
    Object.assign(own, { picked, gone });
    if (gone % 2) Object.assign(own, WITHOUT_TEXT);
    merged.set(own.id, own);
  }
  for (const field of /** @type {const} */ (["title", "system", "notebook"])) {
    if (other.set[field] <= chat.set[field]) continue;
    chat[field] = other[field];
    chat.set[field] = other.set[field];
  }
  chat.messages = [...merged.values()].sort(byAge);
  chat.updated = Math.max(chat.updated, other.updated);
  chat.deleted = Math.max(chat.deleted, other.deleted);
  chat.stamp = other.stamp;
}
