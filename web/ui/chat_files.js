// Chats as files: exported and imported as JSON, read with care; sharing.js writes them for other readers.

/** @import { Chat } from "./chats.js" */

import { check, readChat } from "./chat_reading.js";
import { saveChat } from "./chat_storage.js";
import { newChat, shown, titleOf } from "./chats.js";
import { emit } from "./events.js";
import { notify } from "./notices.js";
import { t } from "./wording.js";

const FORMAT = "inpage-chats";

/** Gives the user a file with these chats. @param {Chat[]} chosen */
export function exportChats(chosen) {
  const chats = chosen.map((chat) => ({ ...chat, stamp: undefined }));
  const text = JSON.stringify({ format: FORMAT, version: 1, chats }, (name, value) => (name === "kept" ? undefined : value), 1);
  giveFile(chosen.length === 1 ? fileName(chosen[0], "json") : "inpage-chats.json", text, "application/json");
}

/** Imports the chats of a file, and tells how that went. @param {File} file */
export async function importFile(file) {
  const imported = await importChats(file).catch(({ message }) => notify(t`${file.name} was not imported: ${message}.`, { stays: true }));
  if (!imported) return;
  notify(t`${imported.length} chat imported from ${file.name}.|${imported.length} chats imported from ${file.name}.`);
  emit("chatwanted", imported[0] ?? shown);
}

/**
 * Keeps all chats of a file, or rejects in words.
 * @param {File} file
 */
async function importChats(file) {
  const content = await file.text().then(JSON.parse).catch(() => check(false, t`it is not JSON`));
  const known = content?.format === FORMAT && content.version === 1 && Array.isArray(content.chats);
  check(known, t`it is not an export of this version of inpage`);
  /** @type {any[]} */
  const found = content.chats;
  const read = found.map((chat, index) => asNew(readChat(chat, t`chat ${index + 1}`)));
  for (const chat of read) await saveChat(chat);
  return read;
}

/**
 * Gives a chat an id of its own, whatever happened to the one that was exported, and its date, if that can be.
 * @param {Chat} chat
 */
function asNew({ title, system, notebook, folder, json, messages, updated }) {
  const fresh = newChat();
  return { ...fresh, title, system, notebook, folder, json, messages, updated: 0 < updated && updated < fresh.updated ? updated : fresh.updated };
}

/**
 * Names a chat's file so that every system takes it.
 * @param {Chat} chat
 * @param {string} ending
 */
export function fileName(chat, ending) {
  const name = titleOf(chat).normalize("NFC").replace(/[^\p{L}\p{N}\p{M}]+/gu, "-").replace(/^-|-$/g, "").slice(0, 60);
  return `${name || "chat"}.${ending}`;
}

// ---- downloads

/** Milliseconds that the browser has to fetch one, perhaps after asking the user where to. Tests have less. */
export const patience = { file: 60_000 };

/**
 * Gives the user a file to download, which takes no memory for long.
 * @param {string} name
 * @param {BlobPart} content
 * @param {string} type
 */
export function giveFile(name, content, type) {
  const href = URL.createObjectURL(new Blob([content], { type }));
  Object.assign(document.createElement("a"), { href, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(href), patience.file);
}
