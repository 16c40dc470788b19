// The page's wording, in the user's language. Texts of the page stand in English where they are used and are the keys to
// other languages; what the engine tells comes as a code with facts. languages/ has a table for each language.

/** @import { EngineMessage, InpageError } from "../inpage.js" */

import * as english from "./languages/en.js";
import { script } from "./lazy.js";

/** @typedef {EngineMessage["facts"][string]} Fact */

/**
 * A file of languages/.
 * @typedef {object} Table
 * @property {Record<string, string>} texts the page's texts, by their English
 * @property {Record<string, string>} messages the engine's messages, by their codes
 */

/** @type {Record<string, () => Promise<Table>>} */
const loadTable = { en: script(() => import("./languages/en.js")), de: script(() => import("./languages/de.js")) };
const MAX_REMEMBERED = 5000; // texts with values in them: what is shown is among the last

/** @type {Table} */
let table = english;
export let language = "en"; // a tag, as Intl has them
/** @type {Map<string, () => string>} */
const fixed = new Map(); // texts of the page → how to say them in another language
/** @type {Map<string, () => string>} */
const remembered = new Map(); // the same of texts with values in them

/** @type {(text: string, again: () => string) => string} */
function remember(text, again) {
  remembered.delete(text);
  remembered.set(text, again);
  if (remembered.size > MAX_REMEMBERED) remembered.delete(/** @type {string} */ (remembered.keys().next().value));
  return text;
}

/** Says a text in the language that the page has now; one that is not the page's stays. @param {string} text @returns {string} */
function sayAgain(text) {
  const again = remembered.get(text) ?? fixed.get(text);
  if (again) return again();
  if (Object.hasOwn(table.texts, text)) return say([text], []);
  const parts = text.split(" · ");
  return parts.length > 1 ? parts.map(sayAgain).join(" · ") : text;
}

/** @type {(value: number, digits?: number) => string} */
export function decimal(value, digits) {
  const text = value.toLocaleString(language, { minimumFractionDigits: digits, maximumFractionDigits: digits });
  return remember(text, () => decimal(value, digits));
}

/** Words a size, as py_runtime/base/sizes.py does: a megabyte is a million bytes. @param {number} bytes @returns {string} */
export function inWords(bytes) {
  let [size, unit] = [bytes, "bytes"];
  for (const larger of ["kB", "MB", "GB", "TB"]) if (size >= 1000) [size, unit] = [size / 1000, larger];
  return unit === "bytes" ? t`${Math.round(size)} bytes` : remember(`${decimal(size, size >= 100 ? 0 : 1)} ${unit}`, () => inWords(bytes));
}

/** Words a text of the page: a tag of templates, where "|" parts the forms of a plural, for one and for more. @type {(parts: TemplateStringsArray, ...values: (string | number)[]) => string} */
export const t = (parts, ...values) => say(parts, values);

/** @type {(parts: readonly string[], values: (string | number)[]) => string} */
function say(parts, values) {
  const key = parts.reduce((text, part, at) => `${text}{${at - 1}}${part}`);
  const [one, many = one] = (table.texts[key] ?? key).split("|");
  const form = values[0] === 1 ? one : many;
  const text = form.replace(/{(\d)}/g, (_, at) => (typeof values[at] === "number" ? decimal(values[at]) : values[at]));
  if (values.length) return remember(text, () => say(parts, values.map((value) => (typeof value === "string" ? sayAgain(value) : value))));
  fixed.set(text, () => say(parts, values));
  return text;
}

/** Joins the parts that are there. @param {(string | 0 | false | null | undefined)[]} parts */
export const line = (...parts) => parts.filter(Boolean).join(" · ");

/**
 * Words a message of the engine's, or several as a line; undefined where this page has no words for it.
 * @param {EngineMessage | EngineMessage[]} message
 * @returns {string | undefined}
 */
export function tell(message) {
  if (Array.isArray(message)) return message.map(tell).filter(Boolean).join(" · ");
  const { code, facts } = message;
  if (!Object.hasOwn(table.messages, code)) return undefined;
  let isWhole = true;
  const text = table.messages[code].replace(/{(\w+)(?::([^{}]*))?}/g, (_, name, format) => {
    const fact = facts?.[name] ?? undefined;
    isWhole &&= fact !== undefined;
    return fact === undefined ? "" : formatted(fact, format);
  });
  return isWhole ? remember(text, () => tell(message) ?? text) : undefined;
}

/** Words an error of the engine's, or of the page's own. @param {unknown} error */
export function faultOf(error) {
  const { reason, facts = {}, message } = /** @type {InpageError} */ (error);
  return (reason && tell({ code: reason, facts })) || message;
}

/** @type {Record<string, (value: number) => string>} */
const FORMATS = {
  bytes: inWords,
  duration(seconds) {
    const minutes = Math.round(seconds / 60);
    if (seconds < 90) return `${decimal(Math.max(Math.round(seconds), 1))} s`;
    return minutes < 90 ? `${decimal(minutes)} min` : `${decimal(minutes / 60, 1)} h`;
  },
  millions: (count) => decimal(count / 1e6, 1),
  percent: (share) => `${share ? decimal(share * 100, Math.max(0, 1 - Math.floor(Math.log10(share * 100)))) : "0"} %`, // two digits
  ".1f": (value) => decimal(value, 1),
  ".0%": (share) => `${decimal(Math.round(share * 100))} %`,
};

/** Puts a fact into words, in the formats of py_runtime/base/messages.py. @type {(fact: Fact, format?: string) => string} */
function formatted(fact, format = "") {
  if (Array.isArray(fact)) return fact.map((each) => formatted(each)).join(format || ", ");
  if (typeof fact === "object") return tell(fact) ?? "";
  if (typeof fact === "string") return fact;
  const [one, many] = format.split("|");
  if (many !== undefined) return fact === 1 ? one : many;
  return FORMATS[format]?.(fact) ?? decimal(fact);
}

// ---- the texts that index.html already has

const ATTRIBUTES = ["aria-label", "placeholder", "title"];
const USERS_TEXT = "[dir=auto], [lang]:not(html), .text, code, pre, script, style"; // not the page's own texts

/** Waits for all of the page's HTML. @returns {Promise<void>} */
const parsed = () => new Promise((resolve) => {
  const look = () => { if (document.readyState !== "loading") resolve(); };
  document.addEventListener("readystatechange", look);
  look();
});

/** Says each text and each attribute again. @param {ParentNode & Node} root */
function rewrite(root) {
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = /** @type {Text} */ (walker.currentNode);
    if (!node.data.trim() || node.parentElement?.closest(USERS_TEXT)) continue;
    const said = around(node.data);
    if (said !== node.data) node.data = said;
  }
  for (const name of ATTRIBUTES) {
    for (const element of root.querySelectorAll(`[${name}]`)) {
      const text = element.getAttribute(name) ?? "";
      const said = sayAgain(text);
      if (said !== text) element.setAttribute(name, said);
    }
  }
  for (const { content } of root.querySelectorAll("template")) rewrite(content);
}

/** Says a text again, and keeps the spaces around it. @param {string} text */
const around = (text) => text.replace(/\S(?:[^]*\S)?/, (words) => sayAgain(words.replace(/\s+/g, " ")));

// ---- the language

/** What the user chose, or else the first of the browser's languages that there is. */
export async function speak(choice = localStorage.getItem("inpageLanguage")) {
  const tag = [choice ?? "", ...navigator.languages].find((each) => /^(en|de)\b/.test(each)) ?? "en";
  const name = tag.slice(0, 2);
  if (name !== language.slice(0, 2)) {
    const other = await loadTable[name]();
    await parsed();
    [table, language] = [other, tag];
    rewrite(document);
  }
  language = document.documentElement.lang = tag;
}

const { dataset } = document.documentElement;
dataset.wording = "coming"; // nobody sees another language meanwhile
await speak().catch(() => speak("")).catch(() => {}); // storage is switched off, or the table did not arrive
delete dataset.wording;
