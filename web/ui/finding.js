// Finding words in chats: the line in which they stand, and the way to it.

/** @import { Chat, ChatMessage } from "./chats.js" */

import { store } from "./chat_storage.js";
import { isGone, isImage, pathOf, timeAfter } from "./chats.js";
import { mainTextOf, page } from "./elements.js";
import { showChat } from "./conversation.js";

/** @typedef {{ message?: ChatMessage, before: string, hit: string, after: string }} Found where words stand; without a message, in the title */

const BEFORE = 24; // characters of the line that are shown before the words
const AFTER = 80;
const LOOKS = 200; // frames, until the message is in the page

/** Finds words in a chat: in what is shown of it first. @type {(chat: Chat, words: string) => Found | undefined} */
export function find(chat, words) {
  const path = pathOf(chat);
  for (const message of [...path, ...chat.messages.filter((each) => !isGone(each) && !path.includes(each))]) {
    for (const text of [message.content, ...(message.attachments ?? []).flatMap((file) => [file.name, isImage(file) ? "" : file.text])]) {
      const found = lineOf(text, words);
      if (found) return { message, ...found };
    }
  }
  return lineOf(chat.title, words);
}

/** @type {(text: string, words: string) => Found | undefined} */
function lineOf(text, words) {
  const at = text.toLocaleLowerCase().indexOf(words);
  if (at < 0) return undefined;
  const line = text.lastIndexOf("\n", at - 1) + 1;
  const start = at - line > BEFORE ? Math.max(line, text.slice(0, at - BEFORE).lastIndexOf(" ") + 1, at - 2 * BEFORE) : line;
  const end = at + words.length;
  const [after] = text.slice(end, end + AFTER).split("\n", 1);
  return { before: `${start > line ? "…" : ""}${text.slice(start, at)}`, hit: text.slice(at, end), after };
}

/** Makes the line, with the words marked. @param {Found} found */
export function lineIn({ before, hit, after }) {
  const line = Object.assign(document.createElement("small"), { className: "found", dir: "auto" });
  line.append(before, Object.assign(document.createElement("mark"), { textContent: hit }), after);
  return line;
}

/** Shows the message of the open chat in which words were found. @type {(chat: Chat, found: Found, words: string) => void} */
export function reveal(chat, { message }, words) {
  if (!message) return;
  if (!pathOf(chat).includes(message)) {
    message.picked = timeAfter(chat);
    showChat();
    store(chat);
  }
  look(message.id, words, LOOKS);
}

/** @type {(id: string, words: string, left: number) => void} */
function look(id, words, left) {
  const article = page.messages.querySelector(`[data-id="${CSS.escape(id)}"]`);
  if (!article) {
    if (left) requestAnimationFrame(() => look(id, words, left - 1));
    return;
  }
  article.scrollIntoView({ block: "center" });
  const range = rangeOf(mainTextOf(article), words);
  globalThis.CSS.highlights?.delete("found");
  if (!range) return;
  globalThis.CSS.highlights?.set("found", new Highlight(range));
  const { top, height } = range.getBoundingClientRect();
  page.scroller.scrollBy(0, top + height / 2 - page.scroller.getBoundingClientRect().top - page.scroller.clientHeight / 2);
}

/** @type {(element: Element, words: string) => Range | undefined} */
function rangeOf(element, words) {
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  for (let node; (node = walker.nextNode());) {
    const at = node.textContent?.toLocaleLowerCase().indexOf(words) ?? -1;
    if (at < 0) continue;
    const range = new Range();
    range.setStart(node, at);
    range.setEnd(node, at + words.length);
    return range;
  }
  return undefined;
}
