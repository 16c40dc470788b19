// Answers: one is written at a time, where it was asked for.

/** @import { ChatCompletionChunk, ChatRequest, InpageError } from "../inpage.js" */
/** @import { Answer, Chat, Message } from "./records.js" */

import { saveChat } from "./chats.js";
import { follow, showChat, shown, showOutcome } from "./conversation.js";
import { decimal, lazy, line, page, partOf, t } from "./page.js";
import { requestOptions } from "./options.js";
import { pathOf, versionsOf } from "./tree.js";

const SAVE_MILLISECONDS = 1000;

const waiting = lazy(() => import("./waiting.js"));
/** @type {Answer[]} */
export const answers = []; // the first is being written, the others wait

/** @param {Chat} chat */
export const answerIn = (chat) => answers.find((each) => each.chat === chat);

/** @param {Message} message */
export const answerOf = (message) => answers.find((each) => each.message === message);

/** What the model reads, up to `last`. @type {(chat: Chat, last?: Message) => import("../inpage.d.ts").Message[]} */
export function promptOf(chat, last) {
  const path = pathOf(chat);
  const read = last ? path.slice(0, path.indexOf(last) + 1) : path;
  return [{ role: /** @type {const} */ ("system"), content: chat.system }, ...read]
    .flatMap(({ role, content }) => (content ? { role, content } : []));
}

/**
 * Has an answer in the chat that is shown written, in its turn; of one with text, the rest.
 * @type {(message: Message, options?: Partial<ChatRequest>) => Promise<void>}
 */
export async function answer(message, options = {}) {
  Object.assign(message, { note: "Interrupted by a reload", error: "", code: "" });
  answers.push({ chat: shown, message, options, abort: new AbortController(), tokens: 0, status: "" });
  showChat();
  store(shown, message.id);
  page.draft.focus();
  if (answers.length > 1) return waiting.showWaiting();
  for (let mine; (mine = answers[0]); end(mine)) {
    if (!inpage.loaded) await waiting.untilLoaded(mine);
    await write(mine);
  }
}

/** @param {Answer} mine */
async function write(mine) {
  const { message, abort: { signal } } = mine;
  try {
    signal.throwIfAborted();
    mine.status = t`Reading your message…`;
    paint(mine);
    const chunks = inpage.chat.completions.create({
      messages: promptOf(mine.chat, message),
      signal,
      stream: true,
      reasoning_format: "none",
      stream_options: { include_usage: true, include_progress: true },
      ...requestOptions(),
      ...(message.content ? { continue_final_message: true } : {}),
      ...mine.options,
    });
    for await (const chunk of chunks) take(mine, chunk);
  } catch (error) {
    const { message: fault, code } = /** @type {InpageError} */ (error);
    Object.assign(message, signal.aborted || code === "aborted" ? { note: "Stopped" } : { note: "", error: fault, code });
  }
}

/** @param {Answer} mine */
export function end(mine) {
  const { chat, message, painted } = mine;
  answers.splice(answers.indexOf(mine), 1);
  if (mine.frame) cancelAnimationFrame(mine.frame);
  clearTimeout(mine.saving);
  message.version++;
  const isNothing = !message.content && !message.error && versionsOf(chat, message).length > 1;
  if (isNothing) message.gone = 1; // the version before it is shown again
  saveChat(chat);
  showRunning();
  if (chat === shown && isNothing) showChat();
  else if (painted) showWhole(painted, message);
}

/** Whether there was one to stop. */
export function stop(mine = answerIn(shown)) {
  mine?.abort.abort();
  if (mine && mine !== answers[0]) waiting.leave(mine);
  return !!mine;
}

/** The buttons, and the list of chats, show where answers are written. */
export function showRunning() {
  document.body.toggleAttribute("data-running", !!answerIn(shown));
  dispatchEvent(new Event("chatschange"));
}

/** @type {(painted: NonNullable<Answer["painted"]>, message: Message) => void} */
function showWhole({ article, view }, message) {
  const text = partOf(article, "text");
  view.finish(message.content);
  message.thought = Number(text.dataset.thought ?? 0);
  showOutcome(article, message);
  follow();
  if (article.isConnected) page.announcer.textContent = message.error || t`Answer: ${text.textContent}`;
}

/** @type {(growing: Answer, chunk: ChatCompletionChunk) => void} */
function take(growing, { choices: [choice], progress, usage }) {
  const now = performance.now();
  const { message } = growing;
  if (usage) message.note = usage.summary;
  if (progress) {
    growing.prompt = progress.total;
    growing.status = progress.compiling ? t`Compiling for your GPU, once…` : t`Reading your message: ${progress.prefilled} of ${progress.total} tokens`;
  }
  if (choice) {
    message.content += choice.delta.content ?? "";
    message.code = choice.finish_reason === "length" ? "length" : "";
    growing.tokens += choice.token_ids.length;
    growing.first ??= now;
    const rate = (growing.tokens - 1) / (now - growing.first) * 1000;
    growing.status = line(t`${growing.tokens} token|${growing.tokens} tokens`, rate > 0 && t`${decimal(rate, 1)} tok/s`);
  }
  growing.frame ??= requestAnimationFrame(() => paint(growing)); // waits in a hidden tab; the text does not
  growing.saving ??= setTimeout(save, SAVE_MILLISECONDS, growing);
}

/** @type {(which: Chat, writing?: string) => void} */
export function store(which, writing) {
  which.updated = Date.now();
  saveChat(which, writing);
  showRunning();
}

/** @param {Answer} growing */
function save(growing) {
  delete growing.saving;
  growing.message.version++;
  saveChat(growing.chat, growing.message.id);
}

/** @param {Answer} growing */
export function paint(growing) {
  delete growing.frame;
  if (!growing.painted || growing.chat !== shown) return;
  const { article, view } = growing.painted;
  view.grow(growing.message.content);
  partOf(article, "note").textContent = growing.status;
  dispatchEvent(new Event("answergrows"));
  follow();
}

addEventListener("pagehide", () => answers.forEach(save)); // a busy browser may let it fall
