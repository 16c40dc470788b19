// Reads chats with care, whoever wrote them, and merges them message by message with what other tabs write.

/** @import { Attachment, Chat, ChatMessage } from "./chats.js" */

import { WITHOUT_TEXT } from "./chats.js";
import { t } from "./wording.js";

export const VERSION = 10; // in the first, messages had no ids; in the second, no versions; in the third, notes were texts; in the fourth, files were part of a text; in the fifth, all were read whole; in the sixth and seventh, the texts of files were in the chat's record; in the eighth, no tool was called; in the ninth, no answer was JSON by order
const MAX_NESTED = 4; // facts in facts of a note
const MAX_TITLE = 200;
const STATES = ["asked", "running", "done", "failed", "refused", "stopped"]; // of a call

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
  const { id, title = "", system = "", notebook, folder, tools, json, set, updated, deleted, messages, version, stamp } = record ?? {};
  check(!(version > VERSION), t`${name} was written by a newer version of this page: reload the page`);
  check(areTexts(title, system), t`the title or system prompt of ${name} is not text`);
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
    folder: areTexts(folder) ? folder.slice(0, MAX_TITLE) : "",
    tools: { isOn: tools?.isOn === true, always: Array.isArray(tools?.always) ? tools.always.filter((/** @type {unknown} */ each) => areTexts(each)) : [] },
    json: isSchema(json?.schema) ? { isOn: json.isOn === true, schema: json.schema } : { isOn: false, schema: "" },
    set: { title: whole(set?.title), system: whole(set?.system), notebook: whole(set?.notebook), folder: whole(set?.folder), tools: whole(set?.tools), json: whole(set?.json) },
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
const isRecord = (value) => typeof value === "object" && !!value && Object.values(value).every((each) => (each ?? null) === null || isFact(each));

/**
 * @param {any} message
 * @param {string} name
 * @param {number} at
 * @returns {ChatMessage}
 */
function readMessage(message, name, at) {
  const { id = `old-${at}`, born, version, role, content, attachments = [], sources, calls, thought, note = "", error = "", code = "", reason, facts, parent, slot, picked, gone, tokens, made, settings, certain } = message;
  const sound = ["user", "assistant"].includes(role) && areTexts(id, content, error, code) && Array.isArray(attachments)
    && attachments.every((file) => areTexts(file?.name, file?.title, file?.kind, file?.text));
  check(sound, t`message ${at + 1} of ${name} is not text from the user or the assistant`);
  return {
    id, born: whole(born, at), version: whole(version), role, content, thought: whole(thought), note: isFact(note) ? note : "", error, code,
    ...(attachments.length ? { attachments: attachments.map(readFile) } : {}),
    ...readSources(sources),
    ...readCalls(calls, content),
    ...(areTexts(reason) && isFact({ code: reason, facts }) ? { reason, facts } : {}),
    parent: areTexts(parent) ? parent : undefined, slot: areTexts(slot) ? slot : undefined,
    picked: whole(picked), gone: whole(gone), certain: whole(certain),
    ...(/^([\da-z]{1,6}\.)*$/.test(tokens) ? { tokens } : {}),
    ...(isRecord(made) && isRecord(settings) && (made?.json === undefined || isSchema(made.json)) ? { made, settings } : {}),
  };
}

/** @param {any} file @returns {Attachment} */
const readFile = ({ name, title, kind, text, bytes, pages, starts, tokens, whole: most, search, inParts, names, kept }) => ({
  name, title, kind, text, bytes: whole(bytes), pages: whole(pages), tokens: whole(tokens), whole: whole(most),
  starts: Array.isArray(starts) ? starts.map((start) => whole(start)) : [],
  ...(areTexts(search) ? { search, inParts: whole(inParts) } : {}),
  ...(Array.isArray(names) ? { names: names.map(String) } : {}),
  ...(areTexts(kept) ? { kept } : {}),
});

/** @param {any} sources @returns {Pick<ChatMessage, "sources">} */
function readSources(sources) {
  if (!areTexts(sources?.text) || !Array.isArray(sources.passages)) return {};
  /** @type {any[]} */
  const passages = sources.passages.filter((/** @type {any} */ each) => areTexts(each?.search, each?.name, each?.unit, each?.label, each?.text));
  return {
    sources: {
      text: sources.text,
      passages: passages.map(({ search, name, unit, first, last, start, end, label, text }) => (
        { search, name, unit, first: whole(first), last: whole(last), start: whole(start), end: whole(end), label, text })),
      inParts: whole(sources.inParts),
    },
  };
}

/** Reads calls of tools: each round stands behind the one before it, and no two calls have one id. @type {(calls: any, content: string) => Pick<ChatMessage, "calls">} */
function readCalls(calls, content) {
  if (!Array.isArray(calls) || !calls.length) return {};
  const sound = calls.every((call, index) => areTexts(call?.id, call?.name, call?.title, call?.arguments, call?.result) && STATES.includes(call.state)
    && isObject(call.arguments) && whole(call.at, -1) >= (calls[index - 1]?.at ?? 0) && call.at <= content.length
    && whole(call.round) >= (calls[index - 1]?.round ?? 1));
  return sound ? { calls: calls.map(({ id, name, title, arguments: given, round, at, state, result }) => ({ id, name, title, arguments: given, round, at, state, result })) } : {};
}

/** Whether it is a schema as a chat has it: the JSON of an object, or nothing. @param {unknown} value */
const isSchema = (value) => areTexts(value) && (!value || isObject(/** @type {string} */ (value)));

/** Whether a text is the JSON of an object, as the engine wants arguments. @param {string} text */
function isObject(text) {
  try {
    const found = JSON.parse(text);
    return typeof found === "object" && !!found && !Array.isArray(found);
  } catch {
    return false;
  }
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
    if (gone % 2) Object.assign(own, WITHOUT_TEXT);
    merged.set(own.id, own);
  }
  for (const field of /** @type {const} */ (["title", "system", "notebook", "folder", "tools", "json"])) {
    if (other.set[field] <= chat.set[field]) continue;
    Object.assign(chat, { [field]: other[field] });
    chat.set[field] = other.set[field];
  }
  chat.messages = [...merged.values()].sort(byAge);
  chat.updated = Math.max(chat.updated, other.updated);
  chat.deleted = Math.max(chat.deleted, other.deleted);
  chat.stamp = other.stamp;
}
