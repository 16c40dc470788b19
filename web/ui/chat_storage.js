// Keeps the user's chats in IndexedDB, as long as the browser does: read with care and merged with what other tabs write
// (chat_reading.js), which are told. The texts of files have records of their own, which are written once: a chat is written
// each second of an answer.

/** @import { Chat, ChatMessage } from "./chats.js" */

import { chats, isDeleted, shown, unsaved } from "./chats.js";
import { page, partOf } from "./elements.js";
import { emit } from "./events.js";
import { library, script } from "./lazy.js";
import { notify } from "./notices.js";
import { t } from "./wording.js";

/** @typedef {import("idb").DBSchema & { chats: { key: string, value: Chat & { version: number } }, files: { key: [chat: string, kept: string], value: string } }} Schema */
/** @typedef {import("idb").IDBPDatabase<Schema>} Database */
/** @typedef {{ saved: string, writing?: string } | { shows: string, asks?: boolean, answering?: string[], model?: string } | { joins: string }} TabMessage what tabs tell each other */

const MONTH = 30 * 24 * 3600 * 1000; // that a deleted chat is remembered as such
const MILLISECONDS = 5000; // at most until the page opens, and between attempts to save

const loadIdb = library("idb.js");
const loadReading = script(() => import("./chat_reading.js"));

/** @type {typeof import("./chat_reading.js")} */
let reading; // what reads and merges chats: here before the database is

/** @type {Promise<Database | undefined> | undefined} */
let connection;
let retry = 0;

export const tab = crypto.randomUUID();
export const channel = new BroadcastChannel("inpage");
/** Tells other tabs. @param {TabMessage} message */
export const tell = (message) => channel.postMessage({ tab, ...message });

/** Gives the database, or nothing where it cannot be opened now. */
export const connect = () => connection ??= open();

async function open() {
  try {
    const [{ openDB }, arrived] = await Promise.all([loadIdb(), loadReading()]);
    reading = arrived;
    /** @type {Database} */
    const database = await openDB("inpage", 2, {
      upgrade(fresh, before) {
        if (before < 1) fresh.createObjectStore("chats", { keyPath: "id" });
        fresh.createObjectStore("files"); // a chat of before keeps its own until it is written again
      },
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
  const transaction = database.transaction(["chats", "files"], "readwrite");
  transaction.done.catch(() => {}); // the request that failed tells
  const [records, files] = [transaction.objectStore("chats"), transaction.objectStore("files")];
  const [record, there] = await Promise.all([records.get(chat.id), files.getAllKeys(filesOf(chat.id))]);
  if (record && record.stamp !== chat.stamp) takeIn(chat, await withFiles(transaction, record));
  chat.stamp = crypto.randomUUID();
  const emptied = isDeleted(chat) && { title: "", system: "", notebook: "", folder: "", tools: { isOn: false, always: [] }, json: { isOn: false, schema: "" }, messages: [] };
  const change = unsaved.get(chat);
  const messages = emptied ? [] : chat.messages;
  /** @type {Map<string, string>} */
  const texts = new Map();
  for (const file of messages.flatMap(({ attachments = [] }) => attachments)) texts.set(file.kept ??= crypto.randomUUID(), file.text);
  const known = new Set(there.map(([, kept]) => kept));
  const writing = [
    records.put({ ...chat, ...emptied, messages: messages.map(withoutTexts), version: reading.VERSION }),
    ...[...texts].filter(([kept]) => !known.has(kept)).map(([kept, text]) => files.put(text, [chat.id, kept])),
    ...[...known].filter((kept) => !texts.has(kept)).map((kept) => files.delete([chat.id, kept])),
  ];
  transaction.commit(); // at once: the page may be closing
  await Promise.all([...writing, transaction.done]);
  if (unsaved.get(chat) === change) unsaved.delete(chat);
}

/** Gives the range of the files of a chat. @param {string} id */
const filesOf = (id) => IDBKeyRange.bound([id], [id, []]);

/** Gives a message as it is kept: what its files say stands elsewhere. @type {(message: ChatMessage) => any} */
const withoutTexts = (message) => (message.attachments ? { ...message, attachments: message.attachments.map((file) => ({ ...file, text: undefined })) } : message);

/**
 * Gives a record with what its files say; what is not there is empty. It may be anything: chat_reading.js looks.
 * @type {(transaction: { objectStore: (name: "files") => { get: (key: [string, string]) => Promise<string | undefined> } }, record: any) => Promise<any>}
 */
async function withFiles(transaction, record) {
  const messages = Array.isArray(record?.messages) ? record.messages : [];
  const files = messages.flatMap((/** @type {any} */ message) => (Array.isArray(message?.attachments) ? message.attachments : []));
  const kept = transaction.objectStore("files");
  await Promise.all(files.filter((/** @type {any} */ file) => typeof file?.kept === "string").map(async (/** @type {any} */ file) => {
    file.text ??= await kept.get([record.id, file.kept]) ?? "";
  }));
  return record;
}

export const opened = Promise.race([connect(), new Promise((resolve) => { setTimeout(resolve, MILLISECONDS); })]);

/**
 * Keeps a chat, and tells other tabs.
 * @param {Chat} chat
 * @param {string} [writing] the message that is being written
 */
export async function saveChat(chat, writing) {
  chats.set(chat.id, chat);
  if (chat.temporary) return;
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

/**
 * Sets something of the open chat, which is kept once it has messages.
 * @type {<Field extends "system" | "tools" | "json">(field: Field, value: Chat[Field]) => void}
 */
export function setInChat(field, value) {
  shown[field] = value;
  shown.set[field] = Date.now();
  if (shown.messages.length) store(shown);
  else emit("chatschange");
}

addEventListener("beforeunload", (event) => { if (page.unkept.dataset.state && [...chats.values()].some(({ temporary }) => !temporary)) event.preventDefault(); });

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
  const cleared = [...chats.values()].filter((chat) => !keys.includes(chat.id) && !unsaved.has(chat) && !chat.temporary && !isDeleted(chat));
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
  const transaction = database.transaction(["chats", "files"]);
  const record = await withFiles(transaction, await transaction.objectStore("chats").get(id));
  const chat = reading.readChat(record, t`one chat`);
  const own = chats.get(id);
  if (own) reading.mergeInto(own, chat);
  else chats.set(id, chat);
  if (isDeleted(chat) && chat.deleted < Date.now() - MONTH) await database.delete("chats", id);
}

/**
 * Takes in what another tab wrote: it appears here, too (tabs.js).
 * @param {Chat} chat
 * @param {unknown} record
 */
function takeIn(chat, record) {
  reading.mergeInto(chat, reading.readChat(record, t`this chat`));
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
