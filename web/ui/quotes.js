// The passages that an answer was given, as quotes below it: a click opens the file where one stands.

/** @import { Passage, Sources } from "./chats.js" */

import { pathOf, shown } from "./chats.js";
import { copyOf, page, partOf } from "./elements.js";
import { emit } from "./events.js";
import { loadStyles, read } from "./file_chips.js";
import { searchedIn } from "./searching.js";
import { line, t } from "./wording.js";

/** Shows the passages that an answer was given. @param {HTMLElement} article */
export async function showQuotes(article) {
  await loadStyles().catch(() => {}); // plain, they can be read
  const path = pathOf(shown);
  const at = path.findIndex(({ id }) => id === article.dataset.id);
  if (at < 0) return; // it is gone by now
  const sources = path.slice(0, at).findLast(({ role }) => role === "user")?.sources;
  article.querySelector(".quotes")?.remove();
  if (!sources?.passages.length) return;
  const files = searchedIn(path.slice(0, at));
  const view = copyOf(page.quotes);
  partOf(view, "summary").textContent = summaryOf(sources);
  partOf(view, "list").append(...sources.passages.map((passage, index) => rowOf(passage, index + 1, isCited(path[at].content, index + 1))));
  for (const [index, row] of [...view.querySelectorAll("button")].entries()) {
    const { search, start, end } = sources.passages[index];
    const file = files.find((each) => each.search === search);
    row.disabled = !file;
    row.onclick = () => { if (file) read(file, { start, end }); };
  }
  partOf(article, "text").after(view);
  emit("textdrawn");
}

/** @param {Sources} sources */
const summaryOf = ({ passages, inParts }) => (inParts
  ? t`From summaries of ${inParts} part|From summaries of all ${inParts} parts`
  : t`From ${passages.length} passage|From ${passages.length} passages`);

/** @type {(content: string, number: number) => boolean} */
const isCited = (content, number) => new RegExp(`\\[(?:\\d+, ?)*${number}(?:, ?\\d+)*\\]`).test(content);

/** @type {(passage: Passage, number: number, isNamed: boolean) => HTMLElement} */
function rowOf(passage, number, isNamed) {
  const row = copyOf(page.quoteRow);
  partOf(row, "number").textContent = String(number);
  partOf(row, "where").textContent = line(passage.name, placeOf(passage));
  partOf(row, "words").textContent = passage.text.replace(/\s+/g, " ");
  row.toggleAttribute("data-cited", isNamed);
  return row;
}

/** Words where a passage is. @param {Passage} passage */
function placeOf({ unit, first, last }) {
  const isOne = first === last;
  if (unit === "page") return isOne ? t`page ${first}` : t`pages ${first}–${last}`;
  if (unit === "row") return isOne ? t`row ${first}` : t`rows ${first}–${last}`;
  return isOne ? t`line ${first}` : t`lines ${first}–${last}`;
}
