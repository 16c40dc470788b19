// Messages that do not fit the model's context: they are not sent; a box says by how much, and offers what can be done.

/** @import { DraftFile } from "./composer.js" */

import { answers } from "./answers.js";
import { remove, tokensOf } from "./attaching.js";
import { isImage } from "./chats.js";
import { countDraft, files, send, setFiles, write } from "./composer.js";
import { page, partOf } from "./elements.js";
import { on } from "./events.js";
import { loadStyles } from "./file_chips.js";
import { notify } from "./notices.js";
import { requestOptions } from "./settings.js";
import { line, t } from "./wording.js";

const MAX_RESERVED = 512; // tokens kept free for an answer to a part of a file
const RESERVED_SHARE = 1 / 4; // of the context, at most
const ENOUGH = 0.97; // of the room: a part of a file need not be longer
const MAX_COUNTS = 12; // until a part is found
const LEAST = 16; // tokens that are worth offering
const MAX_FILES = 3; // for which something is offered: the longest
const PAUSE_MILLISECONDS = 400; // without a key, until what is typed is counted
const WORD = 100; // characters: a part ends between two words, unless one is longer

const { draft, tooLong } = page;

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
