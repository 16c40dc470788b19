// Chats as they are kept: read with care, and merged message by message. Fetched when there are some.

/** @import { Chat, ChatMessage, Database } from "./records.js" */

import { chats, isDeleted, unsaved } from "./chats.js";
import { notify, page, t } from "./page.js";

const VERSION = 4; // in the first, messages had no ids; in the second, no versions; in the third, notes were texts
const MAX_NESTED = 4; // facts in facts of a note
const MAX_TITLE = 200;
const MONTH = 30 * 24 * 3600 * 1000; // that a deleted chat is remembered as such

/**
 * One by one: what cannot be read stays where it is, and keeps no other from being listed.
 * @param {Database} database
 * @param {any[]} keys
 * @param {() => void} save
 */
export async function readAll(database, keys, save) {
  const read = await Promise.allSettled(keys.map((key) => readOne(database, key)));
  const faults = read.flatMap((result) => (result.status === "rejected" ? [result.reason.message] : []));
  if (faults.length) notify(t`${faults.length} of your chats cannot be read and is left as it is: ${faults[0]}.|${faults.length} of your chats cannot be read and are left as they are: ${faults[0]}.`, { stays: true });
  const cleared = [...chats.values()].filter((chat) => !keys.includes(chat.id) && !unsaved.has(chat) && !isDeleted(chat));
  if (cleared.length) offer(cleared, save);
  dispatchEvent(new Event("chatschange"));
  dispatchEvent(new Event("chatsread"));
}

/**
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
 * What another tab wrote: it appears here, too (hearing.js).
 * @param {Chat} chat
 * @param {unknown} record
 */
export function takeIn(chat, record) {
  mergeInto(chat, readChat(record, t`this chat`));
  dispatchEvent(new Event("chatmerged"));
}

/**
 * Perhaps the user wanted them gone: only the user brings them back.
 * @param {Chat[]} cleared
 * @param {() => void} save
 */
function offer(cleared, save) {
  page.unkept.dataset.state = "cleared";
  page.keepChats.onclick = () => {
    page.unkept.dataset.state = "";
    for (const chat of cleared) if (!isDeleted(chat)) unsaved.set(chat, {});
    save();
  };
}

/**
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
 * Those fields that we know, whoever wrote them; throws in words. Tabs that read the same get the same.
 * @param {any} record
 * @param {string} name
 * @returns {Chat}
 */
export function readChat(record, name) {
  const { id, title = "", system = "", set, updated, deleted, messages, version, stamp } = record ?? {};
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
    set: { title: whole(set?.title), system: whole(set?.system) },
    updated: whole(updated),
    deleted: whole(deleted),
    messages: unique.sort(byAge),
    stamp,
  };
}

/**
 * Of version 2, which kept the ids of deleted messages alone.
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

/**
 * @param {any} message
 * @param {string} name
 * @param {number} at
 * @returns {ChatMessage}
 */
function readMessage(message, name, at) {
  const { id = `old-${at}`, born, version, role, content, thought, note = "", error = "", code = "", reason, facts, parent, slot, picked, gone } = message;
  const sound = ["user", "assistant"].includes(role) && areTexts(id, content, error, code);
  check(sound, t`message ${at + 1} of ${name} is not a text of the user or the assistant`);
  return {
    id, born: whole(born, at), version: whole(version), role, content, thought: whole(thought), note: isFact(note) ? note : "", error, code,
    ...(areTexts(reason) && isFact({ code: reason, facts }) ? { reason, facts } : {}),
    parent: areTexts(parent) ? parent : undefined, slot: areTexts(slot) ? slot : undefined,
    picked: whole(picked), gone: whole(gone),
  };
}

/**
 * Takes in what another tab wrote: all messages stay, of each the newest version counts, and its last deletion.
 * @param {Chat} chat
 * @param {Chat} other
 */
export function mergeInto(chat, other) {
  const merged = new Map(chat.messages.map((message) => [message.id, message]));
  for (const message of other.messages) {
    const own = merged.get(message.id) ?? message;
    const picked = Math.max(own.picked ?? 0, message.picked ?? 0);
    const gone = Math.max(own.gone ?? 0, message.gone ?? 0);
    if (message.version > own.version) Object.assign(own, message);
    Object.assign(own, { picked, gone });
    if (gone % 2) own.content = "";
    merged.set(own.id, own);
  }
  for (const field of /** @type {const} */ (["title", "system"])) {
    if (other.set[field] <= chat.set[field]) continue;
    chat[field] = other[field];
    chat.set[field] = other.set[field];
  }
  chat.messages = [...merged.values()].sort(byAge);
  chat.updated = Math.max(chat.updated, other.updated);
  chat.deleted = Math.max(chat.deleted, other.deleted);
  chat.stamp = other.stamp;
}
