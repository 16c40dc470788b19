// The user's chats, in memory, and which of them is open.

/** @import { EngineMessage } from "../inpage.js" */

import { isGone, pathOf } from "./message_tree.js";
import { t } from "./wording.js";

/**
 * A message as it is kept and shown; inpage.d.ts has what a model is sent.
 * @typedef {object} ChatMessage
 * @property {string} id
 * @property {number} born when it was added: messages stand in this order
 * @property {number} version counts its changes: an answer grows
 * @property {"user" | "assistant"} role
 * @property {string} content
 * @property {Attachment[]} [attachments] the files that go with a question; in chats of older versions its text begins with theirs
 * @property {Sources} [sources] what was found for a question in files that are searched
 * @property {number} [thought] how many seconds it reasoned, where that is known
 * @property {string | EngineMessage[]} [note] how an answer went; a text in chats of older versions
 * @property {string} [error] why it ended early, in English; in the user's language by its reason and facts, where it has them
 * @property {string} [reason]
 * @property {EngineMessage["facts"]} [facts]
 * @property {string} [tokens] of an answer, packed (answers.js), where all of them are known
 * @property {Record<string, any>} [made] what wrote it, and how that went
 * @property {Record<string, any>} [settings] it was asked with, by their names in a request
 * @property {number} [certain] 1 where its tokens are shown in place of its text
 * @property {string} [code] the same for programs; "length" where it can be continued
 * @property {string} [parent] the message before it, if there is one
 * @property {string} [slot] the first of its versions, where it is not the first itself
 * @property {number} [picked] when the user last chose it among its versions
 * @property {number} [gone] counts deletions and what took them back: it is deleted where this is odd
 */

/**
 * A file that goes with a question, as its text.
 * @typedef {object} Attachment
 * @property {string} name
 * @property {string} title what the model reads of it before its text: the name, and which part of the file it is
 * @property {string} kind "pdf", or else the language of its text
 * @property {string} text
 * @property {number} bytes of the file
 * @property {number} pages of the file; none where it has no pages
 * @property {number[]} starts where in the text each page begins, of those that are in it
 * @property {number} tokens of the text, for the model that counted them; 0 where none has
 * @property {number} whole tokens of the file's text, where this is only its beginning
 * @property {string} [search] its id, where each question is given passages of it instead of the whole
 * @property {number} [inParts] 1 where the question that it came with is answered from summaries of all its parts
 * @property {string[]} [names] of a folder's files, which begin at `starts`
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
 * @property {number} first of these
 * @property {number} last
 * @property {number} start in the file's text
 * @property {number} end
 * @property {string} label which it is, as a model reads it
 * @property {string} text of it, or its summary
 */

/**
 * @typedef {object} Chat
 * @property {string} id
 * @property {string} title
 * @property {string} system
 * @property {{ title: number, system: number, notebook: number }} set when title, system prompt and notebook were last set
 * @property {string} notebook as an .ipynb, or nothing
 * @property {number} updated when the user last went on with it
 * @property {number} deleted when it was deleted; going on later takes that back
 * @property {ChatMessage[]} messages by age; deleted ones stay, without their text
 * @property {string} [stamp] changes whenever it is written: another one means that another tab wrote it
 */

/** What is left of a message's text when it is deleted. */
export const WITHOUT_TEXT = { content: "", attachments: undefined, sources: undefined, tokens: undefined, made: undefined, settings: undefined };

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
  id: crypto.randomUUID(), title: "", system: "", notebook: "", set: { title: 0, system: 0, notebook: 0 }, updated: Date.now(), deleted: 0, messages: [],
});

export let shown = newChat(); // the one that is open

/** Changes which chat is open; conversation.js shows it. @param {Chat} chat */
export function setShown(chat) {
  shown = chat;
}

/** Writes a file as the model reads it, between fences that nothing in it closes; a folder file by file. @type {(file: Attachment) => string} */
function fenced({ title, kind, text, names, starts }) {
  if (names) return names.map((name, at) => fenced(/** @type {Attachment} */ ({ title: name, kind: name.split(".").at(-1), text: text.slice(starts[at], starts[at + 1]) }))).join("\n\n");
  const fence = "`".repeat((text.match(/`+/g) ?? []).reduce((most, { length }) => Math.max(most, length + 1), 3));
  return `${title}:\n\n${fence}${kind === "pdf" ? "text" : kind}\n${text.trimEnd()}\n${fence}`;
}

/** Gives what the model reads of a message: its files, what was found in those that are searched, and then its text. @param {Pick<ChatMessage, "content" | "attachments" | "sources">} message */
export const wholeOf = ({ content, attachments = [], sources }) => [...attachments.map((file) => (file.search ? "" : fenced(file))), sources?.text, content].filter(Boolean).join("\n\n");

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
