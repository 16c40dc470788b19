// Files of chats: written, and read with care. Fetched when somebody exports or imports.

import { newChat, saveChat } from "./chats.js";

const FORMAT = "inpage-chats";

/** @param {import("./chats.js").Chat[]} chosen */
export function exportChats(chosen) {
  const text = JSON.stringify({ format: FORMAT, version: 1, chats: chosen }, null, 1);
  const href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  Object.assign(document.createElement("a"), { href, download: "inpage-chats.json" }).click();
}

/**
 * Keeps all chats of a file, or rejects in words.
 * @param {File} file
 */
export async function importChats(file) {
  const content = await file.text().then(JSON.parse).catch(() => check(false, "it is not JSON"));
  const known = content?.format === FORMAT && content.version === 1 && Array.isArray(content.chats);
  check(known, "it is not an export of this version of inpage");
  /** @type {any[]} */
  const found = content.chats;
  const read = found.map((chat, index) => readChat(chat ?? {}, `chat ${index + 1}`));
  for (const chat of read) await saveChat(chat);
  return read;
}

/**
 * @param {boolean} sound
 * @param {string} fault
 */
function check(sound, fault) {
  if (!sound) throw new Error(fault);
}

/**
 * Those fields that we know, under an id of its own.
 * @param {any} chat
 * @param {string} name
 * @returns {import("./chats.js").Chat}
 */
function readChat({ title = "", system = "", messages }, name) {
  check(areTexts(title, system), `title or system prompt of ${name} is not a text`);
  check(Array.isArray(messages), `${name} has no list of messages`);
  return { ...newChat(), title, system, messages: messages.map((/** @type {any} */ message, /** @type {number} */ index) => {
    const { role, content, note = "", error = "" } = message ?? {};
    const sound = ["user", "assistant"].includes(role) && areTexts(content, note, error);
    check(sound, `message ${index + 1} of ${name} is not a text of the user or the assistant`);
    return { role, content, note, error };
  }) };
}

/** @param {unknown[]} values */
const areTexts = (...values) => values.every((value) => typeof value === "string");
