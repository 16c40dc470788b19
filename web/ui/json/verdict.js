// Answers in JSON: below each stands whether it is whole, and so follows its schema. One that is not can be continued.

/** @import { ChatMessage } from "../chats.js" */

import { writtenElsewhere } from "../answers.js";
import { styleSheet } from "../elements.js";
import { t } from "../wording.js";

const loadStyles = styleSheet("json.css");

/** Says below an answer whether its JSON is whole; of nothing, there is nothing to say. @type {(article: HTMLElement, message: ChatMessage) => void} */
export function show(article, { id, content, made, error }) {
  loadStyles().catch(() => {}); // plain, it can be read
  const verdict = /** @type {HTMLElement | null} */ (article.querySelector(":scope > .json-verdict")) ?? verdictIn(article);
  const isWhole = isWholeJson(content, made?.finish);
  verdict.hidden = !content || writtenElsewhere.has(id);
  if (!isWhole && content && !error) article.dataset.code = "length";
  verdict.dataset.outcome = isWhole ? "good" : "bad";
  verdict.textContent = !isWhole ? t`The JSON is cut off, so it is not valid.` : made?.json ? t`Valid against the schema` : t`Valid JSON`;
}

/** @param {HTMLElement} article */
function verdictIn(article) {
  const verdict = Object.assign(document.createElement("p"), { className: "json-verdict" });
  article.querySelector(":scope > .text")?.after(verdict);
  return verdict;
}

/** Whether an answer has come to its end: the engine writes nothing that its schema forbids. Of a number, more digits may be missing. @type {(text: string, finish?: string) => boolean} */
function isWholeJson(text, finish) {
  try {
    return typeof JSON.parse(text) !== "number" || finish === "stop";
  } catch {
    return false;
  }
}
