// Chats that the user has pinned: they stand first in the list.

/** @import { Chat } from "./chats.js" */

import { emit } from "./events.js";

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
