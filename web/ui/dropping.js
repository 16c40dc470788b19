// Files that are dropped: chats are imported, text is attached to the message, models are opened.

import { copyOf, lazy, notify, page, partOf } from "./page.js";
import { inWords } from "./sizes.js";

const MODEL = /\.(gguf|pte|ptd|safetensors)$/i;
const MOST_BYTES = 2_000_000;
const CAN_BE = "What can be dropped: models (.gguf, .pte), exported chats, and text, Markdown, code or CSV files";
const opening = lazy(() => import("./opening.js"));
const chatFiles = lazy(() => import("./chat_files.js"));
const { attached, composer, draft, dropZone } = page;

/** @type {Map<Element, string>} */
const attachments = new Map(); // the row of each, and what it adds to the message

/** @param {File} file */
async function take(file) {
  const { name, size } = file;
  const text = size > MOST_BYTES ? undefined : await textOf(file);
  if (size > MOST_BYTES) notify(`${name} is too large to attach: ${inWords(size)}, and ${inWords(MOST_BYTES)} are the most.`);
  else if (text === undefined) notify(`${name} is not a text. ${CAN_BE}.`);
  else if (/^\s*\{\s*"format":\s*"inpage-chats"/.test(text)) chatFiles.importFile(file);
  else if (text.trim()) attach(name, text);
  else notify(`${name} is empty.`);
}

/**
 * Undefined where it is not one.
 * @param {File} file
 */
async function textOf(file) {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
    return text.includes("\0") ? undefined : text;
  } catch {
    return undefined;
  }
}

/**
 * @param {string} name
 * @param {string} text
 */
async function attach(name, text) {
  const row = copyOf(page.attachment);
  const [words, remove] = [partOf(row, "words"), partOf(row, "icon")];
  const fence = "`".repeat(Math.max(3, ...(text.match(/`+/g) ?? []).map(({ length }) => length + 1)));
  const ending = /\.(\w+)$/.exec(name)?.[1] ?? "text";
  const content = `${name}:\n\n${fence}${ending.toLowerCase()}\n${text.replace(/\s+$/, "")}\n${fence}`;
  words.textContent = name;
  remove.ariaLabel = `Remove ${name}`;
  remove.onclick = () => { attachments.delete(row); row.remove(); draft.focus(); };
  attachments.set(row, content);
  attached.append(row);
  draft.focus();
  await tellSize(row, words, name, content);
}

/**
 * @param {HTMLElement} row
 * @param {HTMLElement} words
 * @param {string} name
 * @param {string} content
 */
async function tellSize(row, words, name, content) {
  if (!inpage.loaded) return;
  const { context } = inpage.loaded;
  const { prompt_tokens: tokens } = await inpage.countTokens([{ role: "user", content }]).catch(() => ({ prompt_tokens: 0 }));
  const isTooLong = tokens > context;
  words.textContent = isTooLong
    ? `${name} · does not fit: ${tokens.toLocaleString()} tokens, and this model holds ${context.toLocaleString()}`
    : tokens ? `${name} · ${tokens.toLocaleString()} ${tokens === 1 ? "token" : "tokens"}` : name;
  row.toggleAttribute("data-too-long", isTooLong);
}

/** @param {DataTransfer | null} transfer */
const hasFiles = (transfer) => !!transfer?.types.includes("Files");

let inside = 0; // elements that a drag has entered and not left
addEventListener("dragenter", ({ dataTransfer }) => {
  if (hasFiles(dataTransfer)) inside++;
  dropZone.hidden = !inside;
});
addEventListener("dragleave", ({ dataTransfer }) => {
  if (hasFiles(dataTransfer)) inside = Math.max(0, inside - 1);
  dropZone.hidden = !inside;
});
addEventListener("dragover", (event) => { if (hasFiles(event.dataTransfer)) event.preventDefault(); });
addEventListener("drop", (event) => {
  inside = 0;
  dropZone.hidden = true;
  const { files, items } = /** @type {DataTransfer} */ (event.dataTransfer);
  const dropped = [...files]; // the browser takes the lists back
  if (!dropped.length) return; // but a text, say
  event.preventDefault();
  if (!dropped.some(({ name }) => MODEL.test(name))) for (const file of dropped) take(file);
  else opening.openFiles(dropped, [...items].map((item) => /** @type {any} */ (item).getAsFileSystemHandle?.()));
});
page.files.onchange = () => { opening.openFiles([...page.files.files ?? []]); }; // the browser takes the list back

composer.addEventListener("submit", () => {
  if (!attachments.size) return;
  draft.value = [...attachments.values(), draft.value.trim()].filter(Boolean).join("\n\n");
  attachments.clear();
  attached.replaceChildren();
}, { capture: true });
