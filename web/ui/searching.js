// Questions about files that are searched: before the answer, the engine finds the passages that a question asks for, as many
// as the context has room for, or the file is summarised in parts. A question keeps what was found for it.

/** @import { Answer } from "./answers.js" */
/** @import { Attachment, ChatMessage, Passage, Sources } from "./chats.js" */

import { promptOf } from "./answers.js";
import { wholeOf } from "./chats.js";
import { callFor, learn } from "./document_index.js";
import { splitReasoning } from "./markdown/reasoning.js";
import { t } from "./wording.js";

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

/** The files that a question can ask about. @param {ChatMessage[]} path */
export const searchedIn = (path) => path.flatMap(({ attachments = [] }) => attachments.filter(({ search }) => search));

/**
 * Has the last question of a path know its sources, unless it does.
 * @type {(mine: Answer, path: ChatMessage[], settings: Record<string, any>) => Promise<void>}
 */
export async function findSources(mine, path, settings) {
  const question = /** @type {ChatMessage} */ (path.findLast(({ role }) => role === "user"));
  const files = searchedIn(path);
  if (!question.sources) {
    const own = question.attachments?.filter(({ inParts }) => inParts) ?? [];
    const sources = own.length ? await summarised(mine, own, question) : await found(mine, files, path, question, settings);
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
  const { context } = /** @type {import("../inpage.js").LoadedModel} */ (inpage.loaded);
  return { context, room: context - Math.min(MAX_RESERVED, Math.floor(context * RESERVED_SHARE)) };
}

// ---- passages

/** @type {(mine: Answer, files: Attachment[], path: ChatMessage[], question: ChatMessage, settings: Record<string, any>) => Promise<Sources>} */
async function found(mine, files, path, question, settings) {
  const { chat: { system }, abort: { signal } } = mine;
  tell(mine, files.length > 1 ? t`Searching your files…` : t`Searching ${files[0].name}…`);
  const { context, room } = roomOf();
  const asked = { ...question, sources: sourcesOf([]) };
  let before = path.map((message) => (message === question ? asked : message));
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
