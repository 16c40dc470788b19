// The user's chats, in memory.

/** @import { AddMessage, Chat } from "./records.js" */

import { pathOf } from "./tree.js";

/** @type {Map<string, Chat>} */
export const chats = new Map();
/** @type {Map<Chat, object>} */
export const unsaved = new Map(); // with its last change

export const allChats = () => [...chats.values()].filter((chat) => !isDeleted(chat)).sort((a, b) => b.updated - a.updated);

/** @returns {Chat} */
export const newChat = () => ({
  id: crypto.randomUUID(), title: "", system: "", set: { title: 0, system: 0 }, updated: Date.now(), deleted: 0, messages: [],
});

/** At the end, or where `place` says. @type {AddMessage} */
export function addMessage(chat, role, content, place = { parent: pathOf(chat).at(-1)?.id ?? "" }) {
  const born = Math.max(Date.now(), (chat.messages.at(-1)?.born ?? 0) + 1);
  const message = { id: crypto.randomUUID(), born, version: 0, role, content, ...place };
  chat.messages.push(message);
  return message;
}

/** @param {Chat} chat */
export const isDeleted = ({ updated, deleted }) => deleted > updated;
