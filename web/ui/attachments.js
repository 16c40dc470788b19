// Files that are attached or dropped: the text of some is put before the message, chats are imported, models are opened.
// For any other file, a notice says which kinds can be opened.

import { copyOf, page, partOf } from "./elements.js";
import { lazy } from "./lazy.js";
import { arrived, notify } from "./notices.js";
import { faultOf, inWords, line, t } from "./wording.js";

const MAX_BYTES = 2_000_000;
const MAX_PDF_BYTES = 50_000_000;
const MODEL = /\.(gguf|pte|ptd|safetensors)$/i;

const { attachFiles, attached, composer, draft, dropZone } = page;
const loadFiles = lazy(() => import("./chat_files.js"));
const loadPdf = lazy(() => import("./pdf.js"));
const loadModelFiles = lazy(() => import("./model_files.js"));

/** @type {Map<Element, string>} */
const attachments = new Map(); // the row of each, and what it adds to the message; nothing while it is being read

/** Takes a file in, as what it holds. @param {File} file */
async function take(file) {
  const { name, size } = file;
  const isPdf = /\.pdf$/i.test(name);
  const most = isPdf ? MAX_PDF_BYTES : MAX_BYTES;
  const text = isPdf || size > most ? undefined : await textOf(file);
  if (size > most) notify(t`${name} is too large to attach: it has ${inWords(size)}, and the limit is ${inWords(most)}.`);
  else if (isPdf) takePdf(file);
  else if (text === undefined) notify(t`${name} is not a text. What can be dropped: models (.gguf, .pte), exported chats, and text, Markdown, code, CSV or PDF files.`);
  else if (/^\s*\{\s*"format":\s*"inpage-chats"/.test(text)) (await arrived(loadFiles()))?.importFile(file);
  else if (text.trim()) fill(rowOf(name), name, text, /\.(\w+)$/.exec(name)?.[1].toLowerCase() ?? "text");
  else notify(t`${name} is empty.`);
}

/** Reads a file's text; undefined where it is none. @param {File} file */
async function textOf(file) {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
    return text.includes("\0") ? undefined : text;
  } catch {
    return undefined;
  }
}

/** @param {File} file */
async function takePdf(file) {
  const { name } = file;
  const removed = new AbortController();
  const row = rowOf(name, removed);
  partOf(row, "words").textContent = t`Reading ${name}…`;
  try {
    const { textOfPdf } = await loadPdf();
    const { text, read, pages } = await textOfPdf(file, removed.signal);
    if (removed.signal.aborted) return;
    const isCut = read < pages;
    await fill(row, isCut ? line(name, t`the first ${read} of ${pages} pages`) : name, text, "text");
  } catch (error) {
    remove(row);
    if (!removed.signal.aborted) notify(t`${name} was not attached: ${faultOf(error)}.`, { stays: true });
  }
}

/**
 * Adds a row for a file, which can be removed.
 * @param {string} name
 * @param {AbortController} [removed]
 */
function rowOf(name, removed) {
  const row = copyOf(page.attachment);
  const button = partOf(row, "icon");
  button.ariaLabel = t`Remove ${name}`;
  button.onclick = () => { removed?.abort(); remove(row); draft.focus(); };
  attachments.set(row, "");
  attached.append(row);
  draft.focus();
  return row;
}

/** @param {Element} row */
function remove(row) {
  attachments.delete(row);
  row.remove();
}

/**
 * Puts a text into a file's row, where the next message takes it from.
 * @param {HTMLElement} row
 * @param {string} title
 * @param {string} text
 * @param {string} language
 */
async function fill(row, title, text, language) {
  const fence = "`".repeat((text.match(/`+/g) ?? []).reduce((most, { length }) => Math.max(most, length + 1), 3));
  const content = `${title}:\n\n${fence}${language}\n${text.trimEnd()}\n${fence}`;
  const words = partOf(row, "words");
  words.textContent = title;
  attachments.set(row, content);
  if (!inpage.loaded) return;
  const { context } = inpage.loaded;
  const { prompt_tokens: tokens } = await inpage.countTokens([{ role: "user", content }]).catch(() => ({ prompt_tokens: 0 }));
  const isTooLong = tokens > context;
  words.textContent = isTooLong
    ? line(title, t`too long: ${tokens} tokens, and this model's context holds ${context}`)
    : line(title, tokens > 0 && t`${tokens} token|${tokens} tokens`);
  row.toggleAttribute("data-too-long", isTooLong);
}

attachFiles.onchange = () => {
  for (const file of attachFiles.files ?? []) take(file);
  attachFiles.value = "";
};
page.attach.hidden = false;

composer.addEventListener("submit", (event) => {
  const contents = [...attachments.values()];
  if (!contents.length) return;
  if (contents.includes("")) { // the page's own listener does not hear of it
    event.preventDefault();
    event.stopImmediatePropagation();
    notify(t`A file is still being read: send your message when it is done.`);
    return;
  }
  draft.value = [...contents, draft.value.trim()].filter(Boolean).join("\n\n");
  attachments.clear();
  attached.replaceChildren();
}, { capture: true });

// ---- dropping

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
  if (!dropped.length || event.defaultPrevented) return; // but a text, say; or a panel took them
  event.preventDefault();
  if (!dropped.some(({ name }) => MODEL.test(name))) for (const file of dropped) take(file);
  else openModelFiles(dropped, [...items].map((item) => /** @type {any} */ (item).getAsFileSystemHandle?.()));
});

/** Opens models, by the script that knows them. @type {(files: File[], given?: Promise<FileSystemHandle | null>[]) => Promise<void>} */
async function openModelFiles(files, given) {
  const modelFiles = await arrived(loadModelFiles());
  await modelFiles?.openFiles(files, given);
}

page.files.onchange = () => {
  openModelFiles([...page.files.files ?? []]); // the browser takes the list back
  page.files.value = ""; // or the same file, chosen again, would be no change
};
