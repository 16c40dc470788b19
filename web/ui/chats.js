// The reader's chats: kept in IndexedDB, or else in memory; files of them.
// chat: {id, title, system, updated, messages: [{role, content, note, error}]}

import { library, notify } from "./page.js";

const FORMAT = "inpage-chats";

const chats = new Map();

async function openDatabase() {
  try {
    const { openDB } = await library("idb.js");
    const database = await openDB("inpage", 1, { upgrade: (fresh) => fresh.createObjectStore("chats", { keyPath: "id" }) });
    for (const chat of await database.getAll("chats")) chats.set(chat.id, chat);
    return database;
  } catch ({ message }) {
    notify(`This browser keeps no chats: they last until you close the page (${message}).`);
  }
}

export const opened = openDatabase(); // undefined: in memory alone

export const allChats = () => [...chats.values()].sort((a, b) => b.updated - a.updated);

export const newChat = () => ({ id: crypto.randomUUID(), title: "", system: "", updated: Date.now(), messages: [] });

export const titleOf = ({ title, messages }) => title || messages[0]?.content.slice(0, 60).replace(/\s+/g, " ") || "New chat";

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

export function deleteChat({ id }) {
  chats.delete(id);
  opened.then((database) => database?.delete("chats", id));
}

export function exportChats(chosen) {
  const text = JSON.stringify({ format: FORMAT, version: 1, chats: chosen }, null, 1);
  const href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  Object.assign(document.createElement("a"), { href, download: "inpage-chats.json" }).click();
}

/** Keeps all chats of a file, or rejects in words. */
export async function importChats(file) {
  const content = await file.text().then(JSON.parse).catch(() => check(false, "it is not JSON"));
  const known = content?.format === FORMAT && content.version === 1 && Array.isArray(content.chats);
  check(known, "it is not an export of this version of inpage");
  const read = content.chats.map((chat, index) => readChat(chat ?? {}, `chat ${index + 1}`));
  for (const chat of read) await saveChat(chat);
  return read;
}

function check(sound, fault) {
  if (!sound) throw new Error(fault);
}

/** Those fields that we know, under an id of its own. */
function readChat({ title = "", system = "", messages }, name) {
  const areTexts = (...values) => values.every((value) => typeof value === "string");
  check(areTexts(title, system), `title or system prompt of ${name} is no text`);
  check(Array.isArray(messages), `${name} has no list of messages`);
  return { ...newChat(), title, system, messages: messages.map((message, index) => {
    const { role, content, note = "", error = "" } = message ?? {};
    const sound = ["user", "assistant"].includes(role) && areTexts(content, note, error);
    check(sound, `message ${index + 1} of ${name} is no text of the user or the assistant`);
    return { role, content, note, error };
  }) };
}
