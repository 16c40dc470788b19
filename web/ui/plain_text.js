// Texts as they were written: questions, and answers until what renders Markdown has arrived.

import { t } from "./wording.js";

const MAX_SHOWN = 200_000; // characters of one text, which browsers lay out in a moment

/** Gives as much of a text as can be shown. @param {string} text */
export const excerptOf = (text) => (text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}\n\n${t`The rest is too long to show: copy the message to get all of it.`}` : text);

/** Makes a paragraph of a text. @param {string} text */
export function plain(text) {
  const paragraph = document.createElement("p");
  paragraph.className = "plain";
  paragraph.dir = "auto";
  paragraph.textContent = excerptOf(text);
  return paragraph;
}
