// A model for people who never heard of parameters, and words for the button that loads it.

/** @import { LoadedModel, OfferedModel } from "../inpage.js" */

import { inWords, line, t, tell } from "./page.js";

const WORDS_PER_TOKEN = 0.75;
const SMALL = 300e6; // bytes
const MEDIUM = 1500e6;

/** @param {number} size */
function kindOf(size) {
  if (size < SMALL) return t`small and fast`;
  return size < MEDIUM ? t`medium-sized` : t`large and slower`;
}

/** "small and fast · 101 MB · remembers about 1,500 words"; what is not known is left out. @param {LoadedModel | OfferedModel} model */
export function plainOf(model) {
  const { size, context, messages } = model;
  if ("error" in model) return tell(messages) ?? "";
  const words = Number(((context ?? 0) * WORDS_PER_TOKEN).toPrecision(2)); // nobody remembers 1,536 words
  return line(size && kindOf(size), size && inWords(size), words && t`remembers about ${words} words`);
}

/** @param {OfferedModel} model */
export function actionOf({ stored, size, kept_bytes: kept }) {
  if (stored || !size) return t`Start chatting`;
  return kept ? t`Resume download (${inWords(kept)} of ${inWords(size)})` : t`Start chatting (${inWords(size)} download)`;
}
