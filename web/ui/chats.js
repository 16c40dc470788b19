// The user's chats, in memory, and which of them is open.

import { isGone, pathOf } from "./message_tree.js";
import { t } from "./wording.js";

/** @typedef {import("./chat_types.js").Attachment} Attachment */
/** @typedef {import("./chat_types.js").Chat} Chat */
/** @typedef {import("./chat_types.js").ChatMessage} ChatMessage */

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
  id: crypto.randomUUID(), title: "", system: "", notebook: "", folder: "", set: { title: 0, system: 0, notebook: 0, folder: 0 }, updated: Date.now(), deleted: 0, messages: [],
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
