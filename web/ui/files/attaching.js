// Files that go with the message in the composer: the text of each is read and counted, and a chip shows it. Exported chats
// are imported; for any other file, a notice says which kinds can be opened. A message that does not fit the model's context
// is not sent: a box says by how much, and offers what can be done.

/** @import { DraftFile } from "../composer.js" */
/** @import { FolderFile } from "./contents.js" */

import { answers, promptOf } from "../answers.js";
import { isImage } from "../chats.js";
import { countDraft, files, send, setFiles, write } from "../composer.js";
import { page, partOf } from "../elements.js";
import { emit, on } from "../events.js";
import { chosenFolder, filesIn, imageOf, textOf, textOfFolder, textOfPdf } from "./contents.js";
import { chipOf, factsOf, loadStyles, showPicture } from "./views.js";
import { script } from "../lazy.js";
import { arrived, notify } from "../notices.js";
import { requestOptions } from "../settings/settings.js";
import { faultOf, inWords, line, t } from "../wording.js";

const MAX_BYTES = 5_000_000;
const MAX_PDF_BYTES = 50_000_000;
const IMAGE = /\.(png|jpe?g|webp|gif)$/i; // by its name, or, pasted, by its type

const { attached, draft, tooLong } = page;
const loadFiles = script(() => import("../chat_files.js"));

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
  else if (text === undefined) notify(t`${name} cannot be attached. You can drop models (.gguf, .pte), exported chats, images, and text, Markdown, code, CSV or PDF files.`);
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
      file.text = await imageOf(given);
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
  const { text, starts, pages } = await textOfPdf(given, signal);
  return { text, starts, pages, title: starts.length < pages ? line(given.name, t`the first ${starts.length} of ${pages} pages`) : given.name };
});

/** @type {(name: string, find: () => Promise<FolderFile[]>) => Promise<void>} */
const takeFolder = (name, find) => takeSlowly({ ...fileOf({ name, size: 0 }, "folder"), names: [] }, async (signal) => {
  const { left, ...folder } = await textOfFolder(await find(), signal);
  if (!folder.names.length) throw new Error(t`it contains no readable text`);
  if (left) notify(t`${left} file in ${name} is left out: it is not text, or too long.|${left} files in ${name} are left out: they are not text, or too long.`);
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
function remove(file) {
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
    if (!file.reading && !file.search) countFile(file);
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
  const isLong = tokens > 0 && tokens >= (inpage.loaded?.context ?? Infinity);
  partOf(chip, "name").textContent = reading ? "" : name;
  partOf(chip, "between").textContent = reading ? "" : " · ";
  if (!reading) showPicture(chip, file);
  partOf(chip, "facts").textContent = reading ? t`Reading ${name}…` : factsOf(file, isLong);
  /** @type {HTMLButtonElement} */ (partOf(chip, "open")).disabled = !!reading;
  chip.toggleAttribute("data-too-long", isLong);
}

// ---- tokens

/** @type {WeakMap<DraftFile, unknown>} */
const countedBy = new WeakMap(); // the model by which a file was counted

/** Counts a file's tokens, unless this model has. @param {DraftFile} file */
async function countFile(file) {
  const { loaded } = inpage;
  if (!loaded || countedBy.get(file) === loaded) return;
  file.tokens = await tokensOf(file);
  emit("fileschange");
}

/** How many tokens a file takes, alone in a message; its name counts, and not which part of it this is. @param {DraftFile} file */
async function tokensOf(file) {
  countedBy.set(file, inpage.loaded);
  const messages = promptOf("", [{ role: "user", content: "", attachments: [{ ...file, title: file.name }] }]);
  const { prompt_tokens: tokens } = await inpage.countTokens(messages).catch(() => ({ prompt_tokens: 0 }));
  return tokens;
}

on("modelchange", showFiles);

// ---- messages that do not fit

const MAX_RESERVED = 512; // tokens kept free for an answer to a part of a file
const RESERVED_SHARE = 1 / 4; // of the context, at most
const ENOUGH = 0.97; // of the room: a part of a file need not be longer
const MAX_COUNTS = 12; // until a part is found
const LEAST = 16; // tokens that are worth offering
const MAX_FILES = 3; // for which something is offered: the longest
const PAUSE_MILLISECONDS = 400; // without a key, until what is typed is counted
const WORD = 100; // characters: a part ends between two words, unless one is longer

let turn = 0;
let typing = 0; // the timer

/** Whether the message in the composer cannot be sent as it is; then that is told, with what can be done. */
export async function isRefused() {
  if (files.some(({ reading }) => reading)) {
    notify(t`A file is still being read: send your message when it is done.`);
    return true;
  }
  return isTooLong();
}

/** Whether the message does not fit; shows so, or no longer. */
async function isTooLong() {
  if (!inpage.loaded) return false; // it waits for a model, which has a context of its own
  const { context } = inpage.loaded;
  const mine = ++turn;
  const isBusy = answers.length > 0; // Stop must find its own call at work, not a count
  const used = isBusy ? files.reduce((sum, { tokens }) => sum + tokens, 0) : await countDraft();
  const alone = isBusy ? used : await countDraft(files, true);
  const fits = used < context || (alone < context && requestOptions().context_overflow === "drop_oldest");
  if (mine !== turn) return !fits;
  if (fits) hide();
  else await show(used, alone, context, isBusy);
  return !fits;
}

function hide() {
  turn++;
  tooLong.hidden = true;
}

/** @type {(used: number, alone: number, context: number, isBusy: boolean) => Promise<void>} */
async function show(used, alone, context, isBusy) {
  const mine = turn;
  await loadStyles().catch(() => {}); // plain, it can be read
  if (mine !== turn) return;
  const hasMore = alone < used; // messages before it
  const longest = files.filter(({ search }) => !search).sort((a, b) => b.tokens - a.tokens).slice(0, MAX_FILES);
  const enough = longest.filter(({ tokens }) => used - tokens < context);
  const buttons = [
    ...waysWith(longest),
    ...(enough.length ? enough : longest).map((file) => buttonOf(t`Remove ${isolated(file)}`, () => remove(file))),
    ...(hasMore && page.editing.hidden && (alone < context || files.length) ? [buttonOf(t`Start a new chat with it`, moveToNewChat)] : []),
    ...(hasMore && alone < context ? [buttonOf(t`Leave out the oldest messages`, () => { hide(); send({ context_overflow: "drop_oldest" }); })] : []),
  ];
  const tooMany = Math.max(1, used - context);
  partOf(tooLong, "words").textContent = [
    t`Not sent: ${tooMany} token too many.|Not sent: ${tooMany} tokens too many.`,
    hasMore ? t`With this message the chat has ${used} tokens, and the model's context holds ${context}, including the answer.`
    : t`The message has ${used} tokens, and the model's context holds ${context}, including the answer.`,
    !buttons.length && t`Shorten it, or choose a model with a larger context.`,
  ].filter(Boolean).join(" ");
  partOf(tooLong, "buttons").replaceChildren(...buttons);
  tooLong.hidden = false;
  if (!isBusy) await offerParts(longest, used, context, mine);
}

/** Gives a name that does not turn the words around it, where it is written from right to left. @param {DraftFile} file */
const isolated = ({ name }) => (/[\u0590-\u08ff\ufb1d-\ufefc]/.test(name) ? `\u2068${name}\u2069` : name);

/** @type {(words: string, act: () => void) => HTMLButtonElement} */
function buttonOf(words, act) {
  const button = Object.assign(document.createElement("button"), { type: "button", textContent: words });
  button.onclick = () => {
    act();
    draft.focus();
  };
  return button;
}

/** Offers what can be done with files of any length. @param {DraftFile[]} longest */
function waysWith(longest) {
  const whole = longest.filter((file) => !isImage(file));
  if (!whole.length) return [];
  const [file, ...others] = whole;
  /** @type {(inParts: number) => void} */
  const search = (inParts) => replace(whole, (each) => ({ ...each, search: crypto.randomUUID(), inParts, tokens: 0 }));
  const words = others.length ? t`Search the files for each question` : t`Search ${isolated(file)} for each question`;
  const inParts = others.length ? t`Summarise the files in parts` : t`Summarise ${isolated(file)} in parts`;
  const first = buttonOf(words, () => search(0));
  first.className = "primary";
  return [first, buttonOf(inParts, () => search(1))];
}

/** @type {(old: DraftFile[], change: (file: DraftFile) => DraftFile) => void} */
function replace(old, change) {
  setFiles(files.map((each) => (old.includes(each) ? change(each) : each)));
}

function moveToNewChat() {
  const [text, moved] = [draft.value, files];
  setFiles([]);
  write("");
  page.newChat.click();
  setFiles(moved);
  write(text);
  isTooLong();
}

// ---- parts of files

/** Offers the beginning of each file with which the message fits. @type {(longest: DraftFile[], used: number, context: number, mine: number) => Promise<void>} */
async function offerParts(longest, used, context, mine) {
  const { max_tokens: most } = requestOptions();
  const room = context - Math.min(most ?? MAX_RESERVED, MAX_RESERVED, Math.floor(context * RESERVED_SHARE));
  for (const file of longest.toReversed()) {
    if (isImage(file)) continue; // it is seen as a whole
    const part = await partOfFile(file, used, room);
    if (mine !== turn) return;
    if (!part) continue;
    const { starts: { length: count }, tokens, whole } = part;
    const name = isolated(file);
    const words = whole ? t`Use the first ${tokens} tokens of ${name}` : count > 1 ? t`Use the first ${count} pages of ${name}` : t`Use the first page of ${name}`;
    partOf(tooLong, "buttons").firstElementChild?.after(buttonOf(words, () => replace([file], () => part)));
  }
}

/**
 * Finds the longest beginning of a file, in pages if it can be, that leaves room for an answer.
 * @type {(file: DraftFile, used: number, room: number) => Promise<DraftFile | undefined>}
 */
async function partOfFile(file, used, room) {
  const { name, pages, starts, text, tokens, whole } = file;
  /** @param {number} end */
  const beginning = (end) => ({ ...file, text: wordsOf(text, end), tokens: 0 });
  /** @param {number} end */
  const countWith = (end) => countDraft(files.map((each) => (each === file ? beginning(end) : each)));
  let [fits, fitting] = [0, await countWith(0)]; // characters, and the tokens with them
  let [over, counted] = [text.length, used];
  if (fitting + LEAST > room) return undefined;
  for (let left = MAX_COUNTS; left && over - fits > 1 && fitting < room * ENOUGH; left--) {
    const share = counted > fitting ? (room - fitting) / (counted - fitting) : 1 / 2;
    const end = Math.min(over - 1, Math.max(fits + 1, Math.floor(fits + (over - fits) * share)));
    const found = await countWith(end);
    if (found > room) [over, counted] = [end, found];
    else [fits, fitting] = [end, found];
  }
  const count = starts.findLastIndex((start) => start <= fits);
  if (pages && count > 0) {
    const part = { ...file, text: text.slice(0, starts[count]), starts: starts.slice(0, count), title: line(name, t`the first ${count} of ${pages} pages`) };
    part.tokens = await tokensOf(part);
    return part;
  }
  const part = beginning(fits);
  const own = await tokensOf(part);
  if (own < LEAST) return undefined;
  const all = whole || tokens;
  const begun = starts.filter((start) => start < part.text.length);
  return Object.assign(part, { starts: begun, names: file.names?.slice(0, begun.length), tokens: own, whole: all, title: line(name, t`the first ${own} of ${all} tokens`) });
}

/** Gives the beginning of a text, up to the end of a word. @type {(text: string, end: number) => string} */
function wordsOf(text, end) {
  const beginning = text.slice(0, end);
  const last = beginning.search(/\s\S*$/);
  return last > end - WORD && last > 0 ? beginning.slice(0, last) : beginning.replace(/[\uD800-\uDBFF]$/, "");
}

on("draftcounted", () => { if (!tooLong.hidden) isTooLong(); });
on("fileschange", () => { if (!tooLong.hidden && answers.length) isTooLong(); }); // then nobody counts
draft.addEventListener("input", () => {
  clearTimeout(typing);
  if (!tooLong.hidden) typing = setTimeout(isTooLong, PAUSE_MILLISECONDS);
});
on("chatshown", hide);
on("messagesent", hide);
