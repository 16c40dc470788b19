// The texts of a map: the user's chats, or the lines of a file; and the words that set a group of them apart.

/** @import { Chat } from "../chats.js" */

import { allChats, pathOf, titleOf } from "../chats.js";
import { splitReasoning } from "../markdown/reasoning.js";
import { t } from "../wording.js";

/**
 * A text on the map.
 * @typedef {object} Spot
 * @property {string} text
 * @property {string} label its first words, or the chat's title
 * @property {Chat} [chat]
 * @property {"user" | "assistant"} [role]
 * @property {number} [line] counted from 1
 */

/** Those that are shown, and how many there are. @typedef {{ spots: Spot[], all: number }} Texts */

export const MOST = 2000; // texts, as py_runtime/glass/views/map.py has it
export const LISTS = /\.(?:txt|text|md|markdown|csv|tsv|jsonl|ndjson|log)$/i;
const MOST_LETTERS = 8192; // of a text: the engine reads no more
const LABEL = 60;
const MAX_BYTES = 20_000_000;
const TEXT_FIELDS = ["text", "content", "prompt", "question", "title", "body"]; // of JSON, the first that is there

/** @param {string} text */
const short = (text) => text.slice(0, MOST_LETTERS).toWellFormed();

/** @param {string} text */
const labelOf = (text) => short(text.trimStart().slice(0, LABEL).replace(/\s+/g, " "));

/** Takes the first of them: chats stand by when they were used last. @type {(spots: Spot[]) => Texts} */
const firstOf = (spots) => ({ spots: spots.slice(0, MOST), all: spots.length });

/** What an answer says, without its reasoning. @param {string} content */
const said = (content) => splitReasoning(content)?.answer ?? content;

/** A text for each chat: all that is shown of it. */
export function ofChats() {
  return firstOf(allChats().map((chat) => {
    const words = pathOf(chat).map(({ content }) => said(content));
    return { text: short([chat.title, ...words].join("\n\n").trim()), label: labelOf(titleOf(chat)), chat };
  }).filter(({ text }) => text));
}

/** A text for each message of each chat. */
export function ofMessages() {
  return firstOf(allChats().flatMap((chat) => pathOf(chat).map(({ role, content }) => {
    const text = said(content);
    return { text: short(text), label: labelOf(text), chat, role };
  })).filter(({ text }) => text.trim()));
}

/** A text for each line that is not blank; where there are too many, evenly spread ones. @type {(whole: string, isJson?: boolean) => Texts} */
export function ofLines(whole, isJson = false) {
  const lines = whole.split(/\r\n|\n|\r/).map((line, at) => ({ text: isJson ? textOfJson(line) : line, line: at + 1 })).filter(({ text }) => text.trim());
  const count = Math.min(lines.length, MOST);
  const chosen = Array.from({ length: count }, (_, at) => lines[Math.floor(at * lines.length / count)]);
  return { spots: chosen.map(({ text, line }) => ({ text: short(text.trim()), label: labelOf(text), line })), all: lines.length };
}

/** The text in a line of JSON: a field's that is called so, messages', or else the longest one. @param {string} line */
function textOfJson(line) {
  try {
    const value = JSON.parse(line);
    if (typeof value === "string") return value;
    const list = Array.isArray(value) ? value : value?.messages ?? value?.conversations;
    if (Array.isArray(list)) return list.map((each) => (typeof each === "string" ? each : each?.content ?? each?.value)).filter((each) => typeof each === "string").join("\n\n") || line;
    const texts = Object.entries(value).filter(([, each]) => typeof each === "string" && each.trim());
    const named = TEXT_FIELDS.map((name) => texts.find(([key]) => key.toLowerCase() === name)).find(Boolean);
    return (named ?? texts.sort(([, a], [, b]) => b.length - a.length)[0])?.[1] ?? line;
  } catch {
    return line; // it is text all the same
  }
}

/** Reads a file's lines, or rejects in words. @param {File} file */
export async function ofFile(file) {
  const { name, size } = file;
  if (size > MAX_BYTES) throw new Error(t`${name} is too large for a map: the limit is 20 MB`);
  const bytes = await file.arrayBuffer();
  let whole;
  try {
    whole = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new Error(t`${name} is not UTF-8 text`);
  }
  return ofLines(whole, /\.(?:jsonl|ndjson)$/i.test(name));
}

// ---- groups

const WORDS = 3; // that name a group
const WORD = /[\p{L}\p{M}]{4,}/gu; // shorter ones tell little
const LEAST_MORE = 0.15; // the share of its texts that have a word, less that of the others
const LEAST_OWN = 0.7; // of the texts that have it

/**
 * The words that name each group: more of its texts have them than of all others.
 * @type {(spots: Spot[], groups: ArrayLike<number>, count: number) => string[]}
 */
export function namesOf(spots, groups, count) {
  /** @type {Map<string, number[]>} */
  const found = new Map(); // word → how many texts of each group have it
  const sizes = Array(count).fill(0);
  spots.forEach(({ text }, at) => {
    sizes[groups[at]]++;
    for (const word of new Set(text.toLocaleLowerCase().match(WORD))) {
      const texts = found.get(word) ?? Array(count).fill(0);
      texts[groups[at]]++;
      found.set(word, texts);
    }
  });
  return sizes.map((size, group) => {
    const others = spots.length - size;
    const scored = [...found].map(([word, texts]) => {
      const all = texts.reduce((/** @type {number} */ sum, /** @type {number} */ each) => sum + each, 0);
      return { word, own: texts[group] / all, more: texts[group] / size - (others ? (all - texts[group]) / others : 0), texts: texts[group] };
    });
    const best = scored.filter(({ more, own, texts }) => more >= LEAST_MORE && own >= LEAST_OWN && texts > 1).sort((a, b) => b.more - a.more);
    return best.slice(0, WORDS).map(({ word }) => word).join(", ");
  });
}
