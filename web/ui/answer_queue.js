// Answers in the making: one is written at a time, where it was asked for; the others wait for their turn.

/** @import { ChatCompletionChunk, ChatRequest, InpageError, LoadedModel } from "../inpage.js" */
/** @import { Answer } from "./answers.js" */
/** @import { Chat, ChatMessage } from "./chats.js" */

import { answers, formatOf, packed, promptOf, schemaOf, systemWith, unpacked } from "./answers.js";
import { saveChat, store } from "./chat_storage.js";
import { lastPartOf, pathOf, titleOf, versionsOf } from "./chats.js";
import { page } from "./elements.js";
import { emit, on } from "./events.js";
import { script } from "./lazy.js";
import { isListed, loading } from "./models/models.js";
import { requestOptions } from "./settings/settings.js";
import { decimal, line, t } from "./wording.js";

const loadSearching = script(() => import("./files/documents.js"));
const loadTools = script(() => import("./tools/tools.js"));
const SAVE_MILLISECONDS = 1000;
const STOPPED = [{ code: "answer_stopped", facts: {} }];
const INTERRUPTED = [{ code: "answer_interrupted", facts: {} }]; // until it has ended

/** Paints an answer; a fault of painting is reported, and keeps no other answer waiting. @param {() => void} painting */
function paint(painting) {
  try {
    painting();
  } catch (error) {
    reportError(error);
  }
}

/**
 * Has an answer written, in its turn; of one with text, the rest.
 * @type {(chat: Chat, message: ChatMessage, options?: Answer["options"]) => Promise<void>}
 */
export async function answer(chat, message, options = {}) {
  Object.assign(message, { note: INTERRUPTED, error: "", code: "" });
  /** @type {Answer} */
  const added = { chat, message, options, abort: new AbortController(), tokens: 0, status: "" };
  added.abort.signal.onabort = () => endWaiting(added);
  answers.push(added);
  store(chat, message.id);
  if (answers.length > 1) return showWaiting();
  for (let mine; (mine = answers[0]); end(mine)) await write(mine);
}

/** @param {Answer} mine */
async function write(mine) {
  const { message, abort: { signal } } = mine;
  try {
    if (!inpage.loaded) await untilLoaded(mine);
    signal.throwIfAborted();
    mine.status = t`Reading your message…`;
    paint(() => mine.painted?.grow());
    const settings = { ...requestOptions(), ...mine.options };
    let begun = begin(message, mine.chat, settings);
    const whole = pathOf(mine.chat);
    const path = whole.slice(0, whole.indexOf(message) + 1);
    if (path.some(({ attachments }) => attachments?.some(({ search }) => search))) await (await loadSearching()).findSources(mine, path, settings);
    const { json, system } = message.made ?? {};
    if (json === undefined && mine.chat.tools.isOn && inpage.loaded?.calls_tools) mine.tools = await (await loadTools()).toolsFor(mine, path);
    do {
      const messages = promptOf(system, path);
      if (begun && !lastPartOf(message)) messages.push({ role: "assistant", content: "" });
      const chunks = inpage.chat.completions.create({
        messages,
        signal,
        stream: true,
        reasoning_format: "none",
        stream_options: { include_usage: true, include_progress: true },
        ...settings,
        ...formatOf(json),
        ...begun,
        ...mine.tools?.fields(),
      });
      for await (const chunk of chunks) take(mine, chunk);
      begun = undefined;
    } while (await mine.tools?.run());
  } catch (error) {
    const { message: fault, code, reason, facts } = /** @type {InpageError} */ (error);
    Object.assign(message, signal.aborted || code === "aborted" ? { note: STOPPED } : { note: "", error: fault, code, reason, facts });
  }
}

/**
 * Notes what writes an answer, and gives what has it continued: from its very tokens, where this model wrote them, and in the form that it has.
 * @type {(message: ChatMessage, chat: Chat, settings: Record<string, any>) => Partial<ChatRequest> | undefined}
 */
function begin(message, chat, settings) {
  const { made, tokens } = message;
  const content = lastPartOf(message);
  const { name: model, device, kernels, quantisation } = /** @type {LoadedModel} */ (inpage.loaded);
  const ids = made?.model === model && tokens ? unpacked(tokens) : [];
  message.tokens = ids.length ? tokens : content ? undefined : ""; // of a text of somebody else's, they are not known
  const json = content ? made?.json : schemaOf(chat);
  message.made = { model, device: device.kind, threads: device.threads ?? 0, kernels: kernels?.name ?? "", quantisation, system: systemWith(chat.system, json), ...(json === undefined ? {} : { json }), begun: ids.length };
  message.settings = settings;
  return content || ids.length ? { continue_final_message: true, continue_token_ids: ids } : undefined;
}

/** @param {Answer} mine */
function end(mine) {
  const { chat, message } = mine;
  answers.splice(answers.indexOf(mine), 1);
  if (mine.frame) cancelAnimationFrame(mine.frame);
  clearTimeout(mine.saving);
  message.version++;
  if (page.certainty.value && message.content) message.certain = 1;
  const isNothing = !message.content && !message.error && versionsOf(chat, message).length > 1;
  if (isNothing) message.gone = 1; // the version before it is shown again
  saveChat(chat);
  emit("chatschange");
  paint(() => mine.painted?.finish(isNothing));
  if (message.content) emit("answerwritten", message);
}

/** Ends an answer that is stopped before its turn. @param {Answer} waiting */
function endWaiting(waiting) {
  if (answers.indexOf(waiting) < 1) return;
  waiting.message.note = STOPPED;
  end(waiting);
}

/** Takes in what the engine has written. @type {(growing: Answer, chunk: ChatCompletionChunk) => void} */
function take(growing, { choices: [choice], progress, usage }) {
  const now = performance.now();
  const { message } = growing;
  if (usage) {
    const { messages, prompt_tokens, cached_tokens, extra } = usage;
    const { sampling, ...speeds } = extra ?? {};
    message.note = messages;
    if (messages.some(({ code }) => code === "context_full")) message.code = "full"; // it goes on only if the oldest text goes
    message.settings = { ...message.settings, ...sampling };
    message.made = { ...message.made, prompt_tokens, cached_tokens, ...speeds };
  }
  if (progress) {
    growing.prompt = progress.total;
    const isOnCpu = inpage.loaded?.device.kind === "cpu";
    const preparing = isOnCpu ? t`Preparing (first time only)…` : t`Compiling for your GPU (first time only)…`;
    growing.status = progress.compiling ? preparing : t`Reading your message: ${progress.prefilled} of ${progress.total} tokens`;
  }
  if (choice) {
    message.content += choice.delta.content ?? "";
    growing.tools?.hear(choice.delta.tool_calls);
    message.code = choice.finish_reason === "length" ? "length" : "";
    if (message.tokens !== undefined) message.tokens += packed(choice.token_ids);
    if (choice.finish_reason) message.made = { ...message.made, finish: choice.finish_reason };
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

// ---- waiting

/** Says what is missing while there is no model. */
function readiness() {
  const { load, status } = page;
  if (loading) return t`Getting ready…`; // how far it is stands below
  return isListed ? t`Waiting for a model: press “${load.textContent}”` : t`Getting ready: ${status.textContent}`;
}

/** Shows what each answer waits for. */
function showWaiting() {
  const [first, ...others] = answers;
  if (first && !inpage.loaded) first.status = readiness();
  for (const each of others) each.status = first.chat === each.chat ? t`Waiting for the answer above` : t`Waiting for the answer in “${titleOf(first.chat)}”`;
  for (const each of answers) paint(() => each.painted?.grow());
}

/**
 * Waits for a model, or until the answer is stopped.
 * @param {Answer} mine
 * @returns {Promise<void>}
 */
const untilLoaded = ({ abort: { signal } }) => new Promise((resolve) => {
  const settled = new AbortController();
  const look = () => {
    if (!inpage.loaded && !signal.aborted) return showWaiting();
    settled.abort();
    resolve();
  };
  on("modelchange", look, settled);
  signal.addEventListener("abort", look, settled);
  look();
});

on("readiness", showWaiting);
on("chatschange", showWaiting);
