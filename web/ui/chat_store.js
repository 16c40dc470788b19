// Keeps the user's chats: in IndexedDB, as long as the browser does, and tells other tabs.

/** @import { Database, SaveChat, Store, TabMessage, Write } from "./records.js" */

import { chats, isDeleted, unsaved } from "./chats.js";
import { library, page, partOf, t } from "./page.js";

const MILLISECONDS = 5000; // at most until the page opens, and between attempts to save

/** @type {Promise<Database | undefined> | undefined} */
let connection;
let retry = 0;

const tab = crypto.randomUUID();
export const channel = new BroadcastChannel("inpage");
/** @param {TabMessage} message */
export const tell = (message) => channel.postMessage({ tab, ...message });

export const connect = () => connection ??= open();

async function open() {
  try {
    const { openDB } = await library("idb.js");
    /** @type {Database} */
    const database = await openDB("inpage", 1, {
      upgrade: (fresh) => { fresh.createObjectStore("chats", { keyPath: "id" }); },
      blocking: () => lose(t`it was cleared`),
      terminated: () => lose(t`the browser closed it`),
    });
    const keys = await database.getAllKeys("chats");
    if (keys.length || chats.size) await (await import("./chat_records.js")).readAll(database, keys, save);
    return database;
  } catch (error) {
    showUnkept(error);
  }
}

/** @param {string} message */
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

export async function save() {
  const database = await connect();
  if (!database) return;
  let fault; // of one of them
  for (const chat of unsaved.keys()) {
    await write(database, chat).catch((error) => { fault = error; });
  }
  if (fault) showUnkept(fault);
  else if (page.unkept.dataset.state === "away") page.unkept.dataset.state = "";
}

/** Merges what another tab has written meanwhile. @type {Write} */
async function write(database, chat, records) {
  const transaction = database.transaction("chats", "readwrite");
  transaction.done.catch(() => {}); // the request that failed tells
  const record = await transaction.store.get(chat.id);
  if (record && record.stamp !== chat.stamp) {
    if (!records) return write(database, chat, await import("./chat_records.js"));
    records.takeIn(chat, record);
  }
  chat.stamp = crypto.randomUUID();
  const emptied = isDeleted(chat) && { title: "", system: "", messages: [] };
  const change = unsaved.get(chat);
  const put = transaction.store.put({ ...chat, ...emptied, version: 4 });
  transaction.commit(); // at once: the page may be closing
  await Promise.all([put, transaction.done]);
  if (unsaved.get(chat) === change) unsaved.delete(chat);
}

export const opened = Promise.race([connect(), new Promise((resolve) => { setTimeout(resolve, MILLISECONDS); })]);

/** @type {SaveChat} */
export async function saveChat(chat, writing) {
  chats.set(chat.id, chat);
  unsaved.set(chat, {});
  await save();
  tell({ saved: chat.id, writing });
}

/** The user goes on with it. @type {Store} */
export function store(chat, writing) {
  chat.updated = Date.now();
  saveChat(chat, writing);
  dispatchEvent(new Event("chatschange"));
}

addEventListener("beforeunload", (event) => { if (page.unkept.dataset.state && chats.size) event.preventDefault(); });
