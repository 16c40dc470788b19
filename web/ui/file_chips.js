// Chips of files that go with messages, and the dialog in which a file is read.

/** @import { Attachment } from "./chats.js" */

import { isImage } from "./chats.js";
import { copyOf, page, partOf } from "./elements.js";
import { emit } from "./events.js";
import { copyText } from "./notices.js";
import { styleSheet } from "./styles.js";
import { inWords, line, t } from "./wording.js";

const PROSE = ["image", "pdf", "text", "txt", "md", "markdown"]; // kinds that are not code
const BLOCK = 4000; // characters that a browser lays out together, or a few more
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
export function factsOf({ bytes, pages, starts, tokens, whole }, isTooLong = false) {
  const isFirst = !whole && starts.length < pages;
  const length = isFirst ? t`the first ${starts.length} of ${pages} pages` : pages ? t`${pages} page|${pages} pages` : inWords(bytes);
  const part = whole > 0 && t`the first ${tokens} of ${whole} tokens`;
  return line(length, part || (tokens > 0 && (isTooLong ? t`${tokens} tokens, too long` : t`${tokens} token|${tokens} tokens`)));
}

// ---- reading

let turn = 0;

/** @param {Attachment} file */
function read(file) {
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
  const blocks = starts.length ? pagesOf(text, starts) : blocksOf(text);
  const slice = () => {
    if (mine !== turn || !reader.open) return;
    for (let left = AT_ONCE; left; left--) {
      const { value, done } = blocks.next();
      if (done) return;
      readerText.append(value);
    }
    setTimeout(slice);
  };
  slice();
}

/** @type {(text: string, starts: number[]) => Generator<HTMLElement, void>} */
function* pagesOf(text, starts) {
  for (const [at, start] of starts.entries()) {
    const section = document.createElement("section");
    const heading = Object.assign(document.createElement("h3"), { textContent: t`Page ${at + 1}` });
    section.append(heading, blockOf(text.slice(start, starts[at + 1]).trim()));
    yield section;
  }
}

/** @type {(text: string) => Generator<HTMLElement, void>} */
function* blocksOf(text) {
  for (let at = 0; at < text.length;) {
    const lineEnd = text.indexOf("\n", at + BLOCK) + 1;
    const end = 0 < lineEnd && lineEnd < at + 2 * BLOCK ? lineEnd : at + BLOCK;
    yield blockOf(text.slice(at, end));
    at = end;
  }
}

/** @param {string} text */
const blockOf = (text) => Object.assign(document.createElement("div"), { className: "block", dir: "auto", textContent: text });
