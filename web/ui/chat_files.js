// Files of chats: written, and read with care. Fetched when somebody exports or imports.

/** @import { Chat } from "./records.js" */

import { check, readChat } from "./chat_records.js";
import { fileName } from "./chat_markdown.js";
import { saveChat } from "./chat_store.js";
import { newChat } from "./chats.js";
import { shown } from "./conversation.js";
import { giveFile } from "./giving.js";
import { notify, t } from "./page.js";
import { openChat } from "./sidebar.js";

const FORMAT = "inpage-chats";

/** @param {Chat[]} chosen */
export function exportChats(chosen) {
  const chats = chosen.map((chat) => ({ ...chat, stamp: undefined }));
  const text = JSON.stringify({ format: FORMAT, version: 1, chats }, null, 1);
  giveFile(chosen.length === 1 ? fileName(chosen[0], "json") : "inpage-chats.json", text, "application/json");
}

/** @param {File} file */
export async function importFile(file) {
  const imported = await importChats(file).catch(({ message }) => notify(t`${file.name} was not imported: ${message}.`, { stays: true }));
  if (!imported) return;
  notify(t`${imported.length} chat imported from ${file.name}.|${imported.length} chats imported from ${file.name}.`);
  openChat(imported[0] ?? shown);
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
 * Under an id of its own, whatever happened to the one that was exported, and under its date, if that can be.
 * @param {Chat} chat
 */
function asNew({ title, system, messages, updated }) {
  const fresh = newChat();
  return { ...fresh, title, system, messages, updated: 0 < updated && updated < fresh.updated ? updated : fresh.updated };
}
