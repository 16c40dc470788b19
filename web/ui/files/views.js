// Files that go with messages, as they are seen: chips, the dialog in which a file is read, and the passages that an answer
// was given, as quotes below it: a click opens the file where one stands.

/** @import { Attachment, ChatMessage, Passage, Sources } from "../chats.js" */

import { isImage, pathOf, shown } from "../chats.js";
import { copyOf, mainTextOf, page, partOf, styleSheet } from "../elements.js";
import { emit } from "../events.js";
import { copyText } from "../notices.js";
import { inWords, line, t } from "../wording.js";

const PROSE = ["image", "pdf", "text", "txt", "md", "markdown"]; // kinds that are not code
const BLOCK = 4000; // characters that a browser lays out together, or a few more
const FRAMES = 5; // until a place in a long text stands still
const AT_ONCE = 50; // blocks between two looks of the browser at the user

const { reader, readerCopy, readerFacts, readerName, readerText } = page;
export const loadStyles = styleSheet("files.css");

/** Shows the files that go with a message. @type {(article: HTMLElement, files: Attachment[]) => Promise<void>} */
export async function show(article, files) {
  await loadStyles().catch(() => {}); // plain, they can be read
  const list = partOf(article, "files");
  list.replaceChildren(...files.map(chipOf));
  list.hidden = false;
  emit("textdrawn");
}

/** Makes a file's chip. @param {Attachment} file */
export function chipOf(file) {
  const chip = copyOf(page.attachment);
  const open = partOf(chip, "open");
  partOf(chip, "name").textContent = open.title = file.name;
  partOf(chip, "facts").textContent = factsOf(file);
  open.onclick = () => read(file);
  showPicture(chip, file);
  return chip;
}

/** Puts a small picture of an image into its chip. @type {(chip: HTMLElement, file: Attachment) => void} */
export function showPicture(chip, file) {
  if (isImage(file) && file.text && !chip.querySelector("img")) partOf(chip, "open").prepend(pictureOf(file));
}

/** @type {(file: Attachment) => HTMLImageElement} */
const pictureOf = ({ name, text }) => Object.assign(new Image(), { alt: name, src: text });

/** Words a file's length, and how much of it this is. @type {(file: Attachment, isTooLong?: boolean) => string} */
export function factsOf({ bytes, inParts, names, pages, search, starts, tokens, whole }, isTooLong = false) {
  const isFirst = !whole && starts.length < pages;
  const length = isFirst ? t`the first ${starts.length} of ${pages} pages` : pages ? t`${pages} page|${pages} pages`
    : names ? t`${names.length} file|${names.length} files` : inWords(bytes);
  if (search) return line(length, inParts ? t`summarised in parts` : t`searched for each question`);
  const part = whole > 0 && t`the first ${tokens} of ${whole} tokens`;
  return line(length, part || (tokens > 0 && (isTooLong ? t`${tokens} tokens, too long` : t`${tokens} token|${tokens} tokens`)));
}

// ---- reading

let turn = 0;

/** @typedef {{ start: number, end: number }} Span of a file's text */

/** Opens a file, at a part of it if one is given. @type {(file: Attachment, span?: Span) => void} */
export function read(file, span = { start: 0, end: 0 }) {
  const { kind, name, starts, text } = file;
  const mine = ++turn;
  readerName.textContent = name;
  readerFacts.textContent = factsOf(file);
  readerText.replaceChildren();
  readerText.classList.toggle("code", !PROSE.includes(kind));
  readerCopy.onclick = () => copyText(text);
  readerCopy.hidden = isImage(file);
  reader.showModal();
  readerText.scrollTop = 0;
  if (isImage(file)) {
    readerText.append(pictureOf(file));
    return;
  }
  const blocks = starts.length ? pagesOf(file, span) : blocksOf(text, 0, text.length, span);
  let isSought = span.end > 0;
  const slice = () => {
    if (mine !== turn || !reader.open) return;
    for (let left = AT_ONCE; left; left--) {
      const { value, done } = blocks.next();
      if (done) return;
      readerText.append(value);
      const mark = isSought && value.querySelector("mark");
      if (!mark) continue;
      isSought = false;
      showPlace(mark);
    }
    setTimeout(slice);
  };
  slice();
}

/** Scrolls to a place, more than once: what is above it is laid out, and gets its height, as it comes near. */
function showPlace(/** @type {Element} */ mark, left = FRAMES) {
  mark.scrollIntoView({ block: "center" });
  if (left) requestAnimationFrame(() => showPlace(mark, left - 1));
}

/** @type {(file: Attachment, span: Span) => Generator<HTMLElement, void>} */
function* pagesOf({ names, starts, text }, span) {
  for (const [at, start] of starts.entries()) {
    const end = starts[at + 1] ?? text.length;
    const section = document.createElement("section");
    const heading = Object.assign(document.createElement("h3"), { textContent: names?.[at] ?? t`Page ${at + 1}` });
    const whole = text.slice(start, end);
    const begin = names ? start : start + whole.length - whole.trimStart().length;
    section.append(heading, ...blocksOf(text, begin, begin + whole.trim().length, span));
    yield section;
  }
}

/** @type {(text: string, start: number, stop: number, span: Span) => Generator<HTMLElement, void>} */
function* blocksOf(text, start, stop, span) {
  for (let at = start; at < stop || at === start;) {
    const lineEnd = text.indexOf("\n", at + BLOCK) + 1;
    const end = Math.min(stop, 0 < lineEnd && lineEnd < at + 2 * BLOCK ? lineEnd : at + BLOCK);
    yield blockOf(text, at, end, span);
    at = Math.max(end, at + 1);
  }
}

/** Shows a part of a text; what is in the span is marked. @type {(text: string, start: number, end: number, span: Span) => HTMLElement} */
function blockOf(text, start, end, span) {
  const block = Object.assign(document.createElement("div"), { className: "block", dir: "auto" });
  const [from, to] = [Math.max(start, span.start), Math.min(end, span.end)];
  if (from >= to) block.textContent = text.slice(start, end);
  else {
    const mark = Object.assign(document.createElement("mark"), { textContent: text.slice(from, to) });
    block.append(text.slice(start, from), mark, text.slice(to, end));
  }
  return block;
}

// ---- quotes

/** Gives the files that a question can ask about. @param {ChatMessage[]} path */
export const searchedIn = (path) => path.flatMap(({ attachments = [] }) => attachments.filter(({ search }) => search));

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
  mainTextOf(article).after(view);
  emit("textdrawn");
}

/** @param {Sources} sources */
const summaryOf = ({ passages, inParts }) => (inParts
  ? t`Based on the summary of ${inParts} part|Based on summaries of all ${inParts} parts`
  : t`Based on ${passages.length} passage|Based on ${passages.length} passages`);

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
