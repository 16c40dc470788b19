// The user's chats: kept in IndexedDB, or else in memory.

import { library, notify } from "./page.js";

/**
 * @typedef {object} Message
 * @property {"user" | "assistant"} role
 * @property {string} content
 * @property {string} [note] how an answer went
 * @property {string} [error] why it ended early, in words
 * @property {string} [code] the same for programs
 *
 * @typedef {{ id: string, title: string, system: string, updated: number, messages: Message[] }} Chat
 * @typedef {{ chats: { key: string, value: Chat } }} Schema
 */

/** @type {Map<string, Chat>} */
const chats = new Map();

/** @returns {Promise<import("idb").IDBPDatabase<Schema> | undefined>} */
async function openDatabase() {
  try {
    const { openDB } = await library("idb.js");
    /** @type {import("idb").OpenDBCallbacks<Schema>} */
    const callbacks = { upgrade: (fresh) => { fresh.createObjectStore("chats", { keyPath: "id" }); } };
    const database = await openDB("inpage", 1, callbacks);
    for (const chat of await database.getAll("chats")) chats.set(chat.id, chat);
    return database;
  } catch (error) {
    const { message } = /** @type {Error} */ (error);
    notify(`This browser keeps no chats: they last until you close the page (${message}).`);
  }
}

export const opened = openDatabase(); // undefined: in memory alone

export const allChats = () => [...chats.values()].sort((a, b) => b.updated - a.updated);

/** @returns {Chat} */
export const newChat = () => ({ id: crypto.randomUUID(), title: "", system: "", updated: Date.now(), messages: [] });

/** @param {Chat} chat */
export const titleOf = ({ title, messages }) => title || messages[0]?.content.slice(0, 60).replace(/\s+/g, " ") || "New chat";

/** @param {Chat} chat */
export async function saveChat(chat) {
  chats.set(chat.id, chat);
  const database = await opened; // a file may be imported before that
  if (!database) return;
  const write = database.transaction("chats", "readwrite");
  const put = write.store.put(chat);
  write.commit(); // at once: the page may be closing
  await Promise.all([put, write.done]).catch(({ message }) => {
    notify(`A chat could not be saved: export it if you want to keep it (${message}).`);
  });
}

/** @param {Chat} chat */
export function deleteChat({ id }) {
  chats.delete(id);
  opened.then((database) => database?.delete("chats", id));
}
