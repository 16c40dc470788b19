// Questions about files that are searched: before the answer, the engine finds the passages that a question asks for, as many
// as the context has room for, or the file is summarised in parts. A question keeps what was found for it. The index is the
// engine's while it lives, and this browser keeps the vectors of chunks beside the chats. They are made in the background,
// while no answer is written; until then, files are searched by their words.

/** @import { Answer } from "../answers.js" */
/** @import { Attachment, ChatMessage, Passage, Sources } from "../chats.js" */

import { answers, promptOf } from "../answers.js";
import { chats, isDeleted, isGone, wholeOf } from "../chats.js";
import { copyOf, page, partOf } from "../elements.js";
import { on } from "../events.js";
import { searchedIn } from "./views.js";
import { lazy, library } from "../lazy.js";
import { splitReasoning } from "../markdown/reasoning.js";
import { models } from "../models/models.js";
import { notify, patience } from "../notices.js";
import { recall } from "../settings/settings.js";
import { faultOf, t } from "../wording.js";

/** @typedef {Omit<Passage, "text">} Found */

const RESERVED_SHARE = 1 / 4; // of the context, for the answer
const MAX_RESERVED = 1024; // tokens
const MAX_SHARE = 1 / 2; // of the context: passages of all that could be said help nobody
const MAX_TOKENS = 4000; // of passages
const LEAST_SHARE = 1 / 4; // of the context: with less for passages, the oldest messages are left out
const LEAST_SUMMARY = 32; // tokens
const MOST_SUMMARY = 256;

// What the model reads: in English, whatever the language of the page, for files and questions are of any.
const ANSWER = "Answer from these passages, and name those that you use by their numbers. If they do not say it, say so.";
const SUMMARISE = "Summarise this part in a few sentences, with its names and numbers. It is part";
const JOIN = "These are summaries of all parts, in order. Answer from them; without a question, put them together into one summary.";

/**
 * Has the last question of a path know its sources, unless it does.
 * @type {(mine: Answer, path: ChatMessage[], settings: Record<string, any>) => Promise<void>}
 */
export async function findSources(mine, path, settings) {
  const question = /** @type {ChatMessage} */ (path.findLast(({ role }) => role === "user"));
  const files = searchedIn(path);
  if (!question.sources) {
    const own = question.attachments?.filter(({ inParts }) => inParts) ?? [];
    const sources = own.length ? await summarised(mine, own, question) : await passagesFor(mine, files, path, question, settings);
    mine.abort.signal.throwIfAborted();
    question.sources = sources;
    question.version++;
  }
  mine.message.made = { ...mine.message.made, searched: question.sources.passages.length };
  learn(files);
}

/** @type {(mine: Answer, status: string) => void} */
function tell(mine, status) {
  mine.status = status;
  mine.painted?.grow();
}

/** Counts tokens of a prompt. @type {(messages: Parameters<typeof promptOf>[1], system: string) => Promise<number>} */
const count = async (messages, system) => (await inpage.countTokens(promptOf(system, messages))).prompt_tokens;

/** How many tokens a prompt may have, so that an answer has room. */
function roomOf() {
  const { context } = /** @type {import("../../inpage.js").LoadedModel} */ (inpage.loaded);
  return { context, room: context - Math.min(MAX_RESERVED, Math.floor(context * RESERVED_SHARE)) };
}

// ---- passages

/** @type {(mine: Answer, files: Attachment[], path: ChatMessage[], question: ChatMessage, settings: Record<string, any>) => Promise<Sources>} */
async function passagesFor(mine, files, path, question, settings) {
  const { chat: { system }, abort: { signal } } = mine;
  await loadEncoder(mine, signal);
  tell(mine, files.length > 1 ? t`Searching your files…` : t`Searching ${files[0].name}…`);
  const { context, room } = roomOf();
  const asked = { ...question, sources: sourcesOf([]) };
  let before = path.map((each) => (each === question ? asked : each));
  let base = await count(before, system);
  if (room - base < context * LEAST_SHARE && path.indexOf(question) > 0) {
    settings.context_overflow = "drop_oldest";
    before = [asked];
    base = await count(before, system);
  }
  const budget = Math.floor(Math.min(room - base, context * MAX_SHARE, MAX_TOKENS));
  const words = question.content || files.map(({ name }) => name).join(" ");
  /** @type {{ passages: Found[] }} */
  const { passages } = await callFor("search", files, { question: words, budget }, signal);
  for (; passages.length; passages.pop()) {
    asked.sources = sourcesOf(passages, files);
    if (await count(before, system) <= room) break;
  }
  return asked.sources;
}

/**
 * Gives the passages that say most about a question, as a model reads them; nothing where there are none.
 * @type {(files: Attachment[], question: string, budget: number, signal: AbortSignal) => Promise<string>}
 */
export async function passagesOf(files, question, budget, signal) {
  /** @type {{ passages: Found[] }} */
  const { passages } = await callFor("search", files, { question, budget }, signal);
  return passages.length ? sourcesOf(passages, files).text : "";
}

/** Writes passages as a model reads them. @type {(passages: Found[], files?: Attachment[]) => Sources} */
function sourcesOf(passages, files = []) {
  const known = passages.map((passage) => {
    const text = files.find(({ search }) => search === passage.search)?.text.slice(passage.start, passage.end) ?? "";
    return { ...passage, text };
  });
  return { text: numbered(known, ANSWER), passages: known };
}

/** @type {(passages: Passage[], content: string) => string} */
const numbered = (passages, content) => wholeOf({ content, attachments: passages.map(({ label, text }, at) => asFile(`[${at + 1}] ${label}`, text)) });

/** @type {(title: string, text: string) => Attachment} */
const asFile = (title, text) => ({ name: title, title, kind: "text", text, bytes: 0, pages: 0, starts: [], tokens: 0, whole: 0 });

/** The encoder that was loaded beside a model, to search by: no other load keeps it. @type {{ name: string, beside: unknown } | undefined} */
let encoder;

const encoderName = () => (encoder && encoder.beside === inpage.loaded ? encoder.name : "");

/** Loads the encoder that this browser stores, if it does, beside the model that answers. @type {(mine: Answer, signal: AbortSignal) => Promise<void>} */
async function loadEncoder(mine, signal) {
  const found = models.find(({ path, stored }) => stored && path === recall("inpageEncoder"));
  if (!found || inpage.loaded?.path === found.path || encoderName() || isRefused) return;
  tell(mine, t`Loading ${found.name}…`);
  try {
    const { name } = await inpage.load(found.path, { keep: true, signal });
    encoder = { name, beside: inpage.loaded };
  } catch {
    signal.throwIfAborted();
    isRefused = true; // there is no room for it, say: words find passages, too
  }
}

let isRefused = false; // in this visit

// ---- summaries of parts

/** @type {(mine: Answer, files: Attachment[], question: ChatMessage) => Promise<Sources>} */
async function summarised(mine, files, question) {
  const { chat: { system }, abort: { signal } } = mine;
  const { room } = roomOf();
  const base = await count([{ role: "user", content: taskOf("", "", 999, 999, question) }], system);
  /** @type {Passage[]} */
  let parts = [];
  for (const file of files) {
    tell(mine, t`Reading ${file.name}…`);
    const cut = await callFor("parts", [file], { budget: Math.max(1, room - base) }, signal);
    parts.push(...cut.parts.map((/** @type {Found} */ each) => ({ ...each, search: file.search, label: labelOf(each), text: file.text.slice(each.start, each.end) })));
  }
  const inParts = parts.length;
  const joined = await count([{ role: "user", content: `${JOIN}\n\n${question.content}` }], system);
  for (let isOnce = true; isOnce || await sizeOf(parts) > room - joined; isOnce = false) {
    if (!isOnce) parts = groupsOf(parts);
    const most = Math.max(LEAST_SUMMARY, Math.min(MOST_SUMMARY, Math.floor((room - joined) / parts.length) - LEAST_SUMMARY));
    for (const [at, part] of parts.entries()) {
      tell(mine, t`Summarising part ${at + 1} of ${parts.length}…`);
      const content = taskOf(part.label, part.text, at + 1, parts.length, question);
      part.text = await summaryOf(content, system, most, signal);
    }
    if (parts.length < 2) break;
  }
  return { text: numbered(parts, JOIN), passages: parts, inParts };
}

/** @type {(label: string, text: string, number: number, total: number, question: ChatMessage) => string} */
function taskOf(label, text, number, total, { content }) {
  const question = content ? ` Keep what helps with this: ${content}` : "";
  return wholeOf({ content: `${SUMMARISE} ${number} of ${total}.${question}`, attachments: [asFile(label, text)] });
}

/** @param {Pick<Passage, "name" | "unit" | "first" | "last">} place */
const labelOf = ({ name, unit, first, last }) => `${name}, ${unit}${first === last ? ` ${first}` : `s ${first}–${last}`}`;

/** @type {(content: string, system: string, most: number, signal: AbortSignal) => Promise<string>} */
async function summaryOf(content, system, most, signal) {
  const messages = promptOf(system, [{ role: "user", content }]);
  const { choices: [{ message }] } = await inpage.chat.completions.create({ messages, max_tokens: most, temperature: 0, signal });
  const text = message.content ?? "";
  return (splitReasoning(text)?.answer ?? text).trim();
}

/** @param {Passage[]} parts */
const sizeOf = (parts) => count([{ role: "user", content: numbered(parts, "") }], "");

/** Joins each two neighbours, for summaries of summaries. @param {Passage[]} parts */
function groupsOf(parts) {
  return parts.flatMap((part, at) => {
    if (at % 2) return [];
    const next = parts[at + 1];
    if (!next) return [part];
    const isSame = next.name === part.name;
    const joined = { ...part, end: isSame ? next.end : part.end, last: isSame ? next.last : part.last, text: `${part.text}\n\n${next.text}` };
    return [{ ...joined, label: labelOf(joined) }];
  });
}

// ---- the index

/** @typedef {{ model: string, is_encoder: boolean, base64: string }} Vectors */
/** @typedef {{ id: string, model: string, isEncoder: boolean, bytes: Uint8Array }} Kept */
/** @typedef {import("idb").DBSchema & { vectors: { key: string, value: Kept } }} Schema */

const MOST_FILES = 32; // that are searched together, the last ones: the engine has room for twice as many
const AT_ONCE = 8; // chunks that are embedded between two looks at whether somebody asks

const loadIdb = library("idb.js");
const database = lazy(async () => {
  const { openDB } = await loadIdb();
  /** @type {import("idb").IDBPDatabase<Schema>} */
  const opened = await openDB("inpage-documents", 1, { upgrade: (fresh) => { fresh.createObjectStore("vectors", { keyPath: "id" }); } });
  return opened;
});

/**
 * Has the engine do something with files, which it is given where it has not got them.
 * @type {(action: "search" | "embed" | "parts", files: Attachment[], fields: object, signal?: AbortSignal) => Promise<any>}
 */
async function callFor(action, files, fields, signal) {
  const unique = new Map(files.slice(-MOST_FILES).map((file) => [/** @type {string} */ (file.search), file]));
  const ids = [...unique.keys()];
  for (;;) {
    const found = await inpage.call("documents", { action, fields: { ids, ...fields } }, { signal });
    if (!found.missing) return found;
    for (const id of found.missing) await open(id, /** @type {Attachment} */ (unique.get(id)), signal);
  }
}

/** @type {(id: string, file: Attachment, signal?: AbortSignal) => Promise<void>} */
async function open(id, { name, kind, text, starts, names }, signal) {
  const vectors = await keptVectors(id).catch(() => undefined); // it is searched by its words, then
  await inpage.call("documents", { action: "open", fields: { ids: [id], name, kind, text, starts, names, vectors } }, { signal });
}

// ---- vectors

/** @type {Set<string>} */
const settled = new Set(); // files and models: the vectors are there, or nobody wants them
let isLearning = false;

/** Embeds the chunks of files, unless that was done before or the user has stopped it. @param {Attachment[]} files */
async function learn(files) {
  if (isLearning) return;
  isLearning = true;
  try {
    for (const file of files) await learnFile(file);
  } finally {
    isLearning = false;
  }
}

/** @param {Attachment} file */
async function learnFile(file) {
  const id = /** @type {string} */ (file.search);
  const key = `${id} ${encoderName() || inpage.loaded?.name}`;
  if (settled.has(key) || !isInChats(id)) return;
  const stopping = new AbortController();
  const line = lineFor(file, () => {
    settled.add(key);
    stopping.abort();
  });
  try {
    while (!stopping.signal.aborted) {
      await untilIdle(stopping.signal);
      if (!inpage.loaded || stopping.signal.aborted || !isInChats(id)) return;
      const { is_too_slow: isTooSlow, done, total, vectors } = await embedNext(file, stopping.signal);
      if (isTooSlow) return; // unless an encoder is loaded by the next question
      line.tell(done, total);
      if (!vectors) continue;
      settled.add(key);
      await keep(id, vectors).catch((error) => tellUnkept(file, error));
      return;
    }
  } catch {
    settled.add(key); // a model that cannot embed, or was unloaded: words find passages, too
  } finally {
    line.end();
  }
}

/** Embeds some chunks of a file, unless an answer comes in between. @type {(file: Attachment, stopped: AbortSignal) => Promise<{ is_too_slow?: boolean, done: number, total: number, vectors?: Vectors }>} */
async function embedNext(file, stopped) {
  const ended = new AbortController();
  const interrupting = new AbortController();
  on("chatschange", () => { if (answers.length) interrupting.abort(); }, ended);
  try {
    return await callFor("embed", [file], { count: AT_ONCE }, AbortSignal.any([stopped, interrupting.signal]));
  } catch (error) {
    if (stopped.aborted || !interrupting.signal.aborted) throw error;
    return { done: 0, total: 0 };
  } finally {
    ended.abort();
  }
}

/** Resolves once no answer is on its way. @param {AbortSignal} signal @returns {Promise<void>} */
const untilIdle = (signal) => new Promise((resolve) => {
  const looked = new AbortController();
  const look = () => {
    if (answers.length && !signal.aborted) return;
    looked.abort();
    resolve();
  };
  on("chatschange", look, looked);
  signal.addEventListener("abort", look, looked);
  look();
});

/** Shows how far a file's vectors are. @type {(file: Attachment, stop: () => void) => { tell: (done: number, total: number) => void, end: () => void }} */
function lineFor({ name }, stop) {
  const line = copyOf(page.learning);
  const bar = /** @type {HTMLProgressElement} */ (partOf(line, "bar"));
  partOf(line, "words").textContent = t`Indexing ${name}, so that it can be searched by meaning…`;
  partOf(line, "stop").onclick = stop;
  return {
    tell(done, total) {
      if (total) Object.assign(bar, { value: done, max: total });
      if (done < total && !line.isConnected) page.notices.append(line);
    },
    end: () => line.remove(),
  };
}

// ---- keeping

/** @param {string} id */
async function keptVectors(id) {
  const found = await (await database()).get("vectors", id);
  if (!found) return undefined;
  let text = "";
  for (let at = 0; at < found.bytes.length; at += 4096) text += String.fromCharCode(...found.bytes.subarray(at, at + 4096));
  return { model: found.model, is_encoder: found.isEncoder, base64: btoa(text) };
}

/** @type {(id: string, vectors: Vectors) => Promise<void>} */
async function keep(id, { model, is_encoder: isEncoder, base64 }) {
  const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  await (await database()).put("vectors", { id, model, isEncoder, bytes });
}

/** @type {(file: Attachment, error: Error) => void} */
function tellUnkept({ name }, error) {
  if (error.name === "QuotaExceededError") {
    notify(t`The index of ${name} was not stored: this browser's storage for the page is full. Delete chats or models that you no longer need. Until you close the page, the file is searched by meaning; after that, by words only.`, { stays: true });
  } else notify(t`The index of ${name} was not stored: ${faultOf(error)}.`, { stays: true });
}

/** Whether a file still goes with a message. @param {string} id */
const isInChats = (id) => [...chats.values()].some((chat) => !isDeleted(chat)
  && chat.messages.some((message) => !isGone(message) && message.attachments?.some(({ search }) => search === id)));

/** Forgets what was kept for files that are gone with their chats. */
async function forgetGone() {
  if (page.unkept.dataset.state) return; // nobody knows all chats
  const kept = await database();
  for (const id of await kept.getAllKeys("vectors")) if (!isInChats(id)) await kept.delete("vectors", id);
}

let forgetting = 0; // the timer: a deletion can be taken back for a while
function forgetSoon() {
  clearTimeout(forgetting);
  forgetting = setTimeout(() => forgetGone().catch(() => {}), patience.undo);
}
on("chatschange", forgetSoon);
forgetSoon();
