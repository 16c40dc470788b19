// The index of files that are searched: the engine has it while it lives, and this browser keeps the vectors of chunks beside
// the chats. They are made in the background, while no answer is written; until then, files are searched by their words.

/** @import { Attachment } from "./chats.js" */

import { answers } from "./answers.js";
import { chats, isDeleted, isGone } from "./chats.js";
import { copyOf, page, partOf } from "./elements.js";
import { on } from "./events.js";
import { lazy, library } from "./lazy.js";
import { notify, patience } from "./notices.js";
import { faultOf, t } from "./wording.js";

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
export async function callFor(action, files, fields, signal) {
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
export async function learn(files) {
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
  const key = `${id} ${inpage.loaded?.name}`;
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
  partOf(line, "words").textContent = t`Learning what ${name} is about, to find more than its words…`;
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
    notify(t`What was learnt about ${name} is not kept: this browser's storage for the page is full. Delete chats or models that you no longer need. Until you close the page, all is found; afterwards, by words.`, { stays: true });
  } else notify(t`What was learnt about ${name} is not kept: ${faultOf(error)}.`, { stays: true });
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
