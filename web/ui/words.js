// The page's words. English stands where it is used, and is the key to the tables of other languages.

import { lazy } from "./lazy.js";

const loadTranslating = lazy(() => import("./translating.js"));
/** @type {Record<string, string>} */
let table = {};
/** @type {((text: string) => string) | undefined} */
let retell; // texts that are whole already
export let language = "en"; // a tag, as Intl has them

/** @type {(value: number, digits?: number) => string} */
export const decimal = (value, digits) => value.toLocaleString(language, { minimumFractionDigits: digits, maximumFractionDigits: digits });

/**
 * A tag of templates, where "|" parts the forms of a plural: for one, for more. Also tells a text of the engine's, or one that was kept.
 * @type {(parts: TemplateStringsArray | string, ...values: (string | number)[]) => string}
 */
export function t(parts, ...values) {
  if (typeof parts === "string") return retell?.(parts) ?? parts;
  const key = parts.reduce((text, part, at) => `${text}{${at - 1}}${part}`);
  const [one, many = one] = (table[key] ?? key).split("|");
  const form = values[0] === 1 ? one : many;
  return form.replace(/{(\d)}/g, (_, at) => (typeof values[at] === "number" ? decimal(values[at]) : values[at]));
}

/** Joins what is there. @param {(string | false | null | undefined)[]} parts */
export const line = (...parts) => parts.filter(Boolean).join(" · ");

/** Writes bytes as py_runtime/base/sizes.py does: a megabyte is a million. @param {number} bytes */
export function inWords(bytes) {
  let [size, unit] = [bytes, "bytes"];
  for (const larger of ["kB", "MB", "GB", "TB"]) if (size >= 1000) [size, unit] = [size / 1000, larger];
  return unit === "bytes" ? t`${size} bytes` : `${decimal(size, size >= 100 ? 0 : 1)} ${unit}`;
}

/** What the user chose, or else the first of the browser's languages that there is. */
export async function speak(choice = localStorage.getItem("inpageLanguage")) {
  const tag = [choice ?? "", ...navigator.languages].find((each) => /^(en|de)\b/.test(each)) ?? "en";
  if (tag.slice(0, 2) !== language.slice(0, 2)) ({ table, retell } = await (await loadTranslating()).translate(tag));
  language = document.documentElement.lang = tag;
}

const { dataset } = document.documentElement;
dataset.words = "coming"; // nobody sees others meanwhile
await speak().catch(() => speak("")).catch(() => {}); // storage is switched off, or they did not arrive
delete dataset.words;
