// Answers: one is written at a time, where it was asked for.

/** @import { InpageError } from "../inpage.js" */
/** @import { Answer, AnswerIn, PromptOf, TakeIn } from "./records.js" */

import { answers, paint } from "./answer_queue.js";
import { saveChat, store } from "./chat_store.js";
import { decimal, lazy, line, t } from "./page.js";
import { requestOptions } from "./options.js";
import { pathOf, versionsOf } from "./tree.js";

const SAVE_MILLISECONDS = 1000;
const STOPPED = [{ code: "answer_stopped", facts: {} }];
const INTERRUPTED = [{ code: "answer_interrupted", facts: {} }]; // until it has ended

const waiting = lazy(() => import("./waiting.js"));

/** What the model reads, up to `last`. @type {PromptOf} */
export function promptOf(chat, last) {
  const path = pathOf(chat);
  const read = last ? path.slice(0, path.indexOf(last) + 1) : path;
  return [{ role: /** @type {const} */ ("system"), content: chat.system }, ...read]
    .flatMap(({ role, content }) => (content ? { role, content } : []));
}

/** Has an answer written, in its turn; of one with text, the rest. @type {AnswerIn} */
export async function answer(chat, message, options = {}) {
  Object.assign(message, { note: INTERRUPTED, error: "", code: "" });
  answers.push({ chat, message, options, abort: new AbortController(), tokens: 0, status: "" });
  store(chat, message.id);
  if (answers.length > 1) return waiting.showWaiting();
  for (let mine; (mine = answers[0]); end(mine)) await write(mine);
}

/** @param {Answer} mine */
async function write(mine) {
  const { message, abort: { signal } } = mine;
  try {
    if (!inpage.loaded) await waiting.untilLoaded(mine);
    signal.throwIfAborted();
    mine.status = t`Reading your message…`;
    paint(() => mine.painted?.grow());
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
    const { message: fault, code, reason, facts } = /** @type {InpageError} */ (error);
    Object.assign(message, signal.aborted || code === "aborted" ? { note: STOPPED } : { note: "", error: fault, code, reason, facts });
  }
}

/** @param {Answer} mine */
function end(mine) {
  const { chat, message } = mine;
  answers.splice(answers.indexOf(mine), 1);
  if (mine.frame) cancelAnimationFrame(mine.frame);
  clearTimeout(mine.saving);
  message.version++;
  const isNothing = !message.content && !message.error && versionsOf(chat, message).length > 1;
  if (isNothing) message.gone = 1; // the version before it is shown again
  saveChat(chat);
  dispatchEvent(new Event("chatschange"));
  paint(() => mine.painted?.finish(isNothing));
}

/** @param {Answer} [mine] */
export function stop(mine) {
  mine?.abort.abort();
  if (!mine || mine === answers[0]) return;
  mine.message.note = STOPPED; // before its turn
  end(mine);
}

/** @type {TakeIn} */
function take(growing, { choices: [choice], progress, usage }) {
  const now = performance.now();
  const { message } = growing;
  if (usage) message.note = usage.messages;
  if (progress) {
    growing.prompt = progress.total;
    growing.status = progress.compiling ? t`Compiling for your GPU (first time only)…` : t`Reading your message: ${progress.prefilled} of ${progress.total} tokens`;
  }
  if (choice) {
    message.content += choice.delta.content ?? "";
    message.code = choice.finish_reason === "length" ? "length" : "";
    growing.tokens += choice.token_ids.length;
    growing.first ??= now;
    const rate = (growing.tokens - 1) / (now - growing.first) * 1000;
    growing.status = line(t`${growing.tokens} token|${growing.tokens} tokens`, rate > 0 && t`${decimal(rate, 1)} tok/s`);
  }
  growing.frame ??= requestAnimationFrame(() => growing.painted?.grow()); // waits in a hidden tab; the text does not
  growing.saving ??= setTimeout(save, SAVE_MILLISECONDS, growing);
}

/** @param {Answer} growing */
function save(growing) {
  delete growing.saving;
  growing.message.version++;
  saveChat(growing.chat, growing.message.id);
}

addEventListener("pagehide", () => answers.forEach(save)); // a busy browser may let it fall
