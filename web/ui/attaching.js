// Files that go with the message in the composer: the text of each is read and counted, and a chip shows it. Exported chats
// are imported. For any other file, a notice says which kinds can be opened.

/** @import { DraftFile } from "./composer.js" */
/** @import { Found } from "./folders.js" */

import { promptOf } from "./answers.js";
import { files, setFiles } from "./composer.js";
import { page, partOf } from "./elements.js";
import { emit, on } from "./events.js";
import { chipOf, factsOf, loadStyles, showPicture } from "./file_chips.js";
import { chosenFolder, filesIn, textOf, textOfFolder } from "./folders.js";
import { script } from "./lazy.js";
import { arrived, notify } from "./notices.js";
import { faultOf, inWords, line, t } from "./wording.js";

const MAX_BYTES = 5_000_000;
const MAX_PDF_BYTES = 50_000_000;
const IMAGE = /\.(png|jpe?g|webp|gif)$/i; // by its name, or, pasted, by its type

const { attached, draft } = page;
const loadFiles = script(() => import("./chat_files.js"));
const loadImages = script(() => import("./image_files.js"));
const loadPdf = script(() => import("./pdf.js"));

/** Takes files and folders in, as what they hold, in their order. @type {(given: File[], entries?: (FileSystemEntry | null)[]) => Promise<void>} */
export async function attach(given, entries = []) {
  if (given[0]?.webkitRelativePath) {
    const { name, found } = chosenFolder(given);
    return takeFolder(name, async () => found);
  }
  for (const [at, file] of given.entries()) {
    const entry = entries[at];
    if (entry?.isDirectory) takeFolder(entry.name, () => filesIn(/** @type {FileSystemDirectoryEntry} */ (entry)));
    else await take(file);
  }
}

/** @param {File} file */
async function take(file) {
  const { name, size, type } = file;
  if (IMAGE.test(name) || IMAGE.test(type.replace("image/", "."))) return takeImage(file);
  const isPdf = /\.pdf$/i.test(name);
  const most = isPdf ? MAX_PDF_BYTES : MAX_BYTES;
  const text = isPdf || size > most ? undefined : await textOf(file);
  if (size > most) notify(t`${name} is too large to attach: it has ${inWords(size)}, and the limit is ${inWords(most)}.`);
  else if (isPdf) takePdf(file);
  else if (text === undefined) notify(t`${name} is not a text. What can be dropped: models (.gguf, .pte), exported chats, images, and text, Markdown, code, CSV or PDF files.`);
  else if (/^\s*\{\s*"format":\s*"inpage-chats"/.test(text)) (await arrived(loadFiles()))?.importFile(file);
  else if (text.trim()) add({ ...fileOf(file, /\.(\w+)$/.exec(name)?.[1].toLowerCase() ?? "text"), text });
  else notify(t`${name} is empty.`);
}

/** @type {(file: { name: string, size: number }, kind: string) => DraftFile} */
const fileOf = ({ name, size }, kind) => ({ name, title: name, kind, text: "", bytes: size, pages: 0, starts: [], tokens: 0, whole: 0 });

/** @param {File} given */
async function takeImage(given) {
  const { name, size } = given;
  const { loaded } = inpage;
  if (loaded && !loaded.sees) notify(t`${loaded.name} cannot see images.`);
  else if (size > MAX_PDF_BYTES) notify(t`${name} is too large to attach: it has ${inWords(size)}, and the limit is ${inWords(MAX_PDF_BYTES)}.`);
  else {
    const file = add({ ...fileOf(given, "image"), reading: new AbortController() });
    try {
      file.text = await (await loadImages()).imageOf(given);
      delete file.reading;
    } catch (error) {
      notify(t`${name} was not attached: ${faultOf(error)}.`, { stays: true });
      file.reading?.abort();
    }
    emit("fileschange");
  }
}

/** @param {File} given */
const takePdf = (given) => takeSlowly(fileOf(given, "pdf"), async (signal) => {
  const { textOfPdf } = await loadPdf();
  const { text, starts, pages } = await textOfPdf(given, signal);
  return { text, starts, pages, title: starts.length < pages ? line(given.name, t`the first ${starts.length} of ${pages} pages`) : given.name };
});

/** @type {(name: string, find: () => Promise<Found[]>) => Promise<void>} */
const takeFolder = (name, find) => takeSlowly({ ...fileOf({ name, size: 0 }, "folder"), names: [] }, async (signal) => {
  const { left, ...folder } = await textOfFolder(await find(), signal);
  if (!folder.names.length) throw new Error(t`there is no text in it that could be read`);
  if (left) notify(t`${left} file of ${name} is left out: it is no text, or too long.|${left} files of ${name} are left out: they are no texts, or too long.`);
  return folder;
});

/** Adds a file at once, and what it holds when that is read. @type {(empty: DraftFile, read: (signal: AbortSignal) => Promise<Partial<DraftFile>>) => Promise<void>} */
async function takeSlowly(empty, read) {
  const reading = new AbortController();
  const file = add({ ...empty, reading });
  try {
    Object.assign(file, await read(reading.signal));
    if (!reading.signal.aborted) delete file.reading;
  } catch (error) {
    if (!reading.signal.aborted) notify(t`${file.name} was not attached: ${faultOf(error)}.`, { stays: true });
    reading.abort();
  }
  emit("fileschange");
}

/** @param {DraftFile} file */
function add(file) {
  setFiles([...files, file]);
  draft.focus();
  return file;
}

/** Has a file no longer go with the message. @param {DraftFile} file */
export function remove(file) {
  file.reading?.abort();
  setFiles(files.filter((each) => each !== file));
  draft.focus();
}

// ---- chips

/** @type {WeakMap<DraftFile, HTMLElement>} */
const chips = new WeakMap();

/** Shows which files go with the message. */
export async function showFiles() {
  await loadStyles().catch(() => {}); // plain, they can be read
  if (files.some(({ reading }) => reading?.signal.aborted)) return setFiles(files.filter(({ reading }) => !reading?.signal.aborted));
  const shown = files.map((file) => {
    const chip = chips.get(file) ?? newChip(file);
    fill(chip, file);
    if (!file.reading && !file.search) count(file);
    return chip;
  });
  if (shown.some((chip, at) => chip !== attached.children[at]) || shown.length !== attached.children.length) attached.replaceChildren(...shown);
}

/** @param {DraftFile} file */
function newChip(file) {
  const chip = chipOf(file);
  const button = partOf(chip, "remove");
  button.hidden = false;
  button.ariaLabel = t`Remove ${file.name}`;
  button.onclick = () => remove(file);
  chips.set(file, chip);
  return chip;
}

/** @type {(chip: HTMLElement, file: DraftFile) => void} */
function fill(chip, file) {
  const { name, reading, tokens } = file;
  const isTooLong = tokens > 0 && tokens >= (inpage.loaded?.context ?? Infinity);
  partOf(chip, "name").textContent = reading ? "" : name;
  partOf(chip, "between").textContent = reading ? "" : " · ";
  if (!reading) showPicture(chip, file);
  partOf(chip, "facts").textContent = reading ? t`Reading ${name}…` : factsOf(file, isTooLong);
  /** @type {HTMLButtonElement} */ (partOf(chip, "open")).disabled = !!reading;
  chip.toggleAttribute("data-too-long", isTooLong);
}

// ---- tokens

/** @type {WeakMap<DraftFile, unknown>} */
const counted = new WeakMap(); // the model that counted a file

/** Counts a file's tokens, unless this model has. @param {DraftFile} file */
async function count(file) {
  const { loaded } = inpage;
  if (!loaded || counted.get(file) === loaded) return;
  file.tokens = await tokensOf(file);
  emit("fileschange");
}

/** How many tokens a file takes, alone in a message; its name counts, and not which part of it this is. @param {DraftFile} file */
export async function tokensOf(file) {
  counted.set(file, inpage.loaded);
  const messages = promptOf("", [{ role: "user", content: "", attachments: [{ ...file, title: file.name }] }]);
  const { prompt_tokens: tokens } = await inpage.countTokens(messages).catch(() => ({ prompt_tokens: 0 }));
  return tokens;
}

on("modelchange", showFiles);
