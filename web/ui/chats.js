// The user's chats in memory: their messages, which of them is open, and which are pinned.

/** @import { EngineMessage } from "../inpage.js" */

import { emit } from "./events.js";
import { t } from "./wording.js";

/**
 * @typedef {object} ChatMessage
 * @property {string} id
 * @property {number} born when it was added: messages stand in this order
 * @property {number} version counts its changes: an answer grows
 * @property {"user" | "assistant"} role
 * @property {string} content
 * @property {Attachment[]} [attachments] the files that go with a question; in chats of older versions its text begins with theirs
 * @property {Sources} [sources] what was found for a question in files that are searched
 * @property {ToolCall[]} [calls] the tools that an answer called, in their order
 * @property {number} [thought] how many seconds it reasoned, where that is known
 * @property {string | EngineMessage[]} [note] how an answer went; a text in chats of older versions
 * @property {string} [error] why it ended early, in English; in the user's language by its reason and facts, where it has them
 * @property {string} [reason]
 * @property {EngineMessage["facts"]} [facts]
 * @property {string} [tokens] of an answer, packed (answers.js), where all of them are known
 * @property {Record<string, any>} [made] what wrote it, and how that went
 * @property {Record<string, any>} [settings] what it was asked with, by their names in a request
 * @property {number} [certain] 1 where its tokens are shown in place of its text
 * @property {string} [code] the error's code, for programs; "length" where it can be continued, "full" where something has to leave the context for that
 * @property {string} [parent] the message before it, if there is one
 * @property {string} [slot] the first of its versions, where it is not the first itself
 * @property {number} [picked] when the user last chose it among its versions
 * @property {number} [gone] counts deletions and what took them back: it is deleted where this is odd
 */

/**
 * A file that goes with a question, as its text, or an image.
 * @typedef {object} Attachment
 * @property {string} name
 * @property {string} title what the model reads of it before its text: the name, and which part of the file it is
 * @property {string} kind "pdf", "image", or else the language of its text
 * @property {string} text of an image, its data: address
 * @property {number} bytes of the file
 * @property {number} pages of the file; none where it has no pages
 * @property {number[]} starts where in the text each page begins, of those that are in it
 * @property {number} tokens of the text, for the model that counted them; 0 where none has
 * @property {number} whole tokens of the file's text, where this is only its beginning
 * @property {string} [search] its id, where each question is given passages of it instead of the whole
 * @property {number} [inParts] 1 where the question that it came with is answered from summaries of all its parts
 * @property {string[]} [names] of a folder's files, which begin at `starts`
 * @property {string} [kept] names its text among those that this browser keeps beside the chat (chat_storage.js)
 */

/**
 * What a question was given of files that are searched.
 * @typedef {object} Sources
 * @property {string} text as the model reads it
 * @property {Passage[]} passages in the order of their numbers
 * @property {number} [inParts] how many parts were summarised, where they were
 */

/**
 * A part of a file that is searched.
 * @typedef {object} Passage
 * @property {string} search the file's id
 * @property {string} name of the file, or of the one in a folder
 * @property {"page" | "line" | "row"} unit
 * @property {number} first
 * @property {number} last
 * @property {number} start in the file's text
 * @property {number} end
 * @property {string} label which it is, as a model reads it
 * @property {string} text its own, or its summary
 */

/**
 * A tool that an answer called.
 * @typedef {object} ToolCall
 * @property {string} id
 * @property {string} name as the model knows the tool
 * @property {string} title as people do
 * @property {string} arguments as JSON
 * @property {number} round calls of one round were made together
 * @property {number} at how much of the answer's text was written before them
 * @property {"asked" | "running" | "done" | "failed" | "refused" | "stopped"} state
 * @property {string} result as the model reads it
 */

/**
 * @typedef {object} Chat
 * @property {string} id
 * @property {string} title
 * @property {string} system
 * @property {string} folder the folder that it is in, or nothing
 * @property {boolean} [temporary] never kept: it lasts as long as the page
 * @property {{ title: number; system: number; notebook: number; folder: number; tools: number; json: number }} set when title, system prompt, notebook, folder, tools and the form of answers were last set
 * @property {string} notebook as an .ipynb, or nothing
 * @property {{ isOn: boolean, always: string[] }} tools whether the model may call tools, and the ids of those that run without asking
 * @property {{ isOn: boolean, schema: string }} json whether answers are JSON, and the JSON schema that they follow; none for any object
 * @property {number} updated when the user last went on with it
 * @property {number} deleted when it was deleted; going on later takes that back
 * @property {ChatMessage[]} messages by age; deleted ones stay, without their text
 * @property {string} [stamp] changes whenever it is written: another one means that another tab wrote it
 */

/** What is left of a message's text when it is deleted. */
export const WITHOUT_TEXT = { content: "", attachments: undefined, sources: undefined, calls: undefined, tokens: undefined, made: undefined, settings: undefined };

/** @typedef {Pick<ChatMessage, "parent" | "slot">} Place where a message belongs */

const MAX_READ = 500; // characters: a message may be long, and all chats are listed often

/** @type {Map<string, Chat>} */
export const chats = new Map();
/** @type {Map<Chat, object>} */
export const unsaved = new Map(); // with its last change

/** Lists all chats, the last used first. */
export const allChats = () => [...chats.values()].filter((chat) => !isDeleted(chat)).sort((a, b) => b.updated - a.updated);

/** @returns {Chat} */
export const newChat = () => ({
  id: crypto.randomUUID(), title: "", system: "", notebook: "", folder: "", tools: { isOn: false, always: [] }, json: { isOn: false, schema: "" }, set: { title: 0, system: 0, notebook: 0, folder: 0, tools: 0, json: 0 }, updated: Date.now(), deleted: 0, messages: [],
});

export let shown = newChat(); // the one that is open

/** Changes which chat is open; conversation.js shows it. @param {Chat} chat */
export function setShown(chat) {
  shown = chat;
}

/** Tells an image, whose text is its data: address. @param {Attachment} file */
export const isImage = ({ kind }) => kind === "image";

/** Writes a file as the model reads it, between fences that nothing in it closes; a folder file by file. @type {(file: Attachment) => string} */
function fenced({ title, kind, text, names, starts }) {
  if (names) return names.map((name, at) => fenced(/** @type {Attachment} */ ({ title: name, kind: name.split(".").at(-1), text: text.slice(starts[at], starts[at + 1]) }))).join("\n\n");
  const fence = "`".repeat((text.match(/`+/g) ?? []).reduce((most, { length }) => Math.max(most, length + 1), 3));
  return `${title}:\n\n${fence}${kind === "pdf" ? "text" : kind}\n${text.trimEnd()}\n${fence}`;
}

/** Gives the text that the model reads of a message: its files, what was found in those that are searched, and its own. @param {Pick<ChatMessage, "content" | "attachments" | "sources">} message */
export const wholeOf = ({ content, attachments = [], sources }) => [...attachments.filter((file) => !file.search && !isImage(file)).map(fenced), sources?.text, content].filter(Boolean).join("\n\n");

/** Gives what an answer says after the last of its calls. @param {Pick<ChatMessage, "content" | "calls">} message */
export const lastPartOf = ({ content, calls }) => content.slice(calls?.at(-1)?.at);

/**
 * Adds a message at the end, or where `place` says.
 * @type {(chat: Chat, role: ChatMessage["role"], content: string, place?: Place) => ChatMessage}
 */
export function addMessage(chat, role, content, place = { parent: pathOf(chat).at(-1)?.id ?? "" }) {
  const born = Math.max(Date.now(), (chat.messages.at(-1)?.born ?? 0) + 1);
  const message = { id: crypto.randomUUID(), born, version: 0, role, content, ...place };
  chat.messages.push(message);
  return message;
}

/** @param {Chat} chat */
export const isDeleted = ({ updated, deleted }) => deleted > updated;

/** Names a chat: by its own title, by the first words, by the file that has none with it, or by the notebook that it has before any. @param {Chat} chat */
export const titleOf = ({ title, messages, notebook }) => title
  || messages.map((message) => (isGone(message) ? "" : message.content || message.attachments?.[0].name || "")).find(Boolean)?.trimStart().slice(0, MAX_READ).trimEnd().replace(/\s+/g, " ").replace(/^(?=.{61})(.{1,60}) .*/, "$1…")
  || (notebook ? t`Notebook` : t`New chat`);

// ---- a chat's messages are a tree: edited questions and regenerated answers stay; what two tabs add is shown one after the other

/** @param {ChatMessage} message */
export const isGone = ({ gone = 0 }) => gone % 2 === 1;

/** @param {ChatMessage} message */
export const slotOf = ({ slot, id }) => slot || id;

/** @param {ChatMessage} message */
const chosenAt = ({ picked = 0, born }) => Math.max(picked, born);

/** A time after all that was written or chosen in a chat. @param {Chat} chat */
export const timeAfter = ({ messages }) => messages.reduce((time, message) => Math.max(time, chosenAt(message) + 1), Date.now());

/** What is shown of a chat: of each slot the version in whose branch something was chosen or written last. @param {Chat} chat */
export function pathOf({ messages }) {
  /** @type {Map<string, string>} */
  const homes = new Map(); // id → the message itself, or the one before it where it is deleted
  /** @type {[ChatMessage, string][]} */
  const there = []; // with the id before it
  for (const message of messages) { // by age: what came before is known, or never will be
    const before = homes.get(message.parent ?? "") ?? "";
    homes.set(message.id, isGone(message) ? before : message.id);
    if (!isGone(message)) there.push([message, before]);
  }
  /** @type {Map<string, number>} */
  const latest = new Map(); // id → the last change of its branch
  for (const [message, before] of there.toReversed()) {
    const changed = Math.max(latest.get(message.id) ?? 0, chosenAt(message));
    latest.set(message.id, changed);
    latest.set(before, Math.max(latest.get(before) ?? 0, changed));
  }
  const changeOf = (/** @type {ChatMessage} */ { id }) => latest.get(id) ?? 0;
  /** @type {Map<string, Map<string, ChatMessage>>} */
  const slots = new Map(); // id → slot after it → the version that is shown
  for (const [message, before] of there) {
    const after = slots.get(before) ?? new Map();
    const other = after.get(slotOf(message));
    slots.set(before, after);
    if (!other || changeOf(message) >= changeOf(other)) after.set(slotOf(message), message);
  }
  const chosenAfter = (/** @type {string} */ id) => [...slots.get(id)?.values() ?? []].reverse();
  const path = [];
  const left = chosenAfter("");
  for (let next; (next = left.pop()); left.push(...chosenAfter(next.id))) path.push(next);
  return path;
}

/** @type {(chat: Chat, message: ChatMessage) => ChatMessage[]} */
export const versionsOf = ({ messages }, message) => messages.filter((each) => slotOf(each) === slotOf(message) && !isGone(each));

/** How many versions each slot has. @param {Chat} chat */
export function countVersions({ messages }) {
  /** @type {Map<string, number>} */
  const counts = new Map();
  for (const message of messages) if (!isGone(message)) counts.set(slotOf(message), (counts.get(slotOf(message)) ?? 0) + 1);
  return counts;
}

// ---- chats that the user has pinned: they stand first in the list

const PINS = "inpagePins";
const MAX_PINS = 200;

/** @returns {string[]} ids of chats */
function pins() {
  try {
    const found = JSON.parse(localStorage.getItem(PINS) ?? "[]");
    return Array.isArray(found) ? found.filter((id) => typeof id === "string") : [];
  } catch {
    return []; // storage is switched off, or somebody else's
  }
}

/** @param {Chat} chat */
export const isPinned = ({ id }) => pins().includes(id);

/** Pins a chat, or takes its pin away. @param {Chat} chat */
export function pin({ id }) {
  const others = pins().filter((each) => each !== id);
  try {
    localStorage.setItem(PINS, JSON.stringify(pins().includes(id) ? others : [...others, id].slice(-MAX_PINS)));
  } catch { /* switched off, or full: nothing is pinned */ }
  emit("chatschange");
}
