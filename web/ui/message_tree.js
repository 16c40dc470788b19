// A chat's messages are a tree: edited questions and regenerated answers stay. What two tabs add is shown one after the other.

/** @import { Chat, ChatMessage } from "./chats.js" */

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
