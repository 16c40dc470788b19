// The conversation: shows a chat, sends what is typed, streams the answer.

/** @import { ChatCompletionChunk, ChatRequest, InpageError } from "../inpage.js" */
/** @import { Answer, Chat, Message } from "./records.js" */

import { newChat, newMessage, saveChat } from "./chats.js";
import { markdownIn } from "./markdown.js";
import { copyOf, copyText, fetched, keep, line, notify, page, partOf, recall } from "./page.js";
import { requestOptions } from "./settings.js";

const SAVE_MILLISECONDS = 1000;
const NEAR_THE_END = 48; // pixels

const { composer, draft, messages: list, scroller, system } = page;
const { body } = document;

export let shown = newChat();
/** @type {Answer | undefined} */
export let answer; // the one being written
/** @type {string | undefined} */
let editing; // the id of the question in the composer
let atEnd = true; // the user reads along

export function showChat(next = shown) {
  if (editing) edit(undefined, shown.messages[indexOf(editing)]?.content === draft.value ? "" : draft.value);
  shown = next;
  atEnd = true;
  list.replaceChildren(...shown.messages.map(articleOf));
  body.toggleAttribute("data-empty", !shown.messages.length);
  system.value = shown.system;
  follow();
  if (shown !== answer?.chat) showContext(); // the answer's end shows it
}

/** @param {Message} message */
export function articleOf(message) {
  const article = copyOf(page[message.role]);
  const text = partOf(article, "text");
  Object.assign(article.dataset, { id: message.id, version: message.version });
  if (message.role === "user") text.textContent = message.content;
  else if (answer && message === answer.message) {
    answer.painted = { article, view: markdownIn(text) };
    paint(answer);
  } else {
    if (message.thought) text.dataset.thought = String(message.thought);
    markdownIn(text).finish(message.content);
    showOutcome(article, message);
  }
  return article;
}

/**
 * @param {HTMLElement} article
 * @param {Message} message
 */
function showOutcome(article, { note = "", error = "", code }) {
  partOf(article, "note").textContent = note;
  partOf(article, "error").textContent = error;
  if (code) article.dataset.code = code;
}

export function follow() {
  if (atEnd) scroller.scrollTop = scroller.scrollHeight;
}

/**
 * @param {Chat} which
 * @param {string} [writing]
 */
export function store(which, writing) {
  which.updated = Date.now();
  saveChat(which, writing);
  dispatchEvent(new Event("chatschange"));
}

/**
 * @param {Chat} chat
 * @returns {import("../inpage.d.ts").Message[]}
 */
const promptOf = ({ system: rules, messages }) => [{ role: /** @type {const} */ ("system"), content: rules }, ...messages]
  .flatMap(({ role, content }) => (content ? { role, content } : []));

export async function showContext() {
  if (!inpage.loaded) return;
  const { context } = inpage.loaded;
  const { prompt_tokens: used } = await inpage.countTokens(promptOf(shown)).catch(() => ({ prompt_tokens: 0 }));
  page.contextText.textContent = `Context: ${used} of ${context} tokens`;
  Object.assign(page.contextMeter, { max: context, value: used });
}

/** @param {Partial<ChatRequest>} options */
async function begin(options) {
  const message = newMessage(shown, "assistant", "");
  message.note = "Interrupted by a reload";
  /** @type {Answer} */
  const mine = answer = { chat: shown, message, abort: new AbortController(), tokens: 0, status: "Reading…" };
  shown.messages.push(message);
  body.dataset.running = "";
  try {
    showChat();
    store(shown, message.id);
    draft.focus();
    const chunks = inpage.chat.completions.create({
      messages: promptOf(shown),
      signal: mine.abort.signal,
      stream: true,
      stream_options: { include_usage: true, include_progress: true },
      ...requestOptions(),
      ...options,
    });
    for await (const chunk of chunks) take(mine, chunk);
  } catch (error) {
    const { message: fault, code } = /** @type {InpageError} */ (error);
    Object.assign(message, code === "aborted" ? { note: "Stopped" } : { note: "", error: fault, code });
  }
  if (mine.frame) cancelAnimationFrame(mine.frame);
  clearTimeout(mine.saving);
  message.version++;
  answer = undefined;
  delete body.dataset.running;
  if (mine.painted) showWhole(mine.painted, message);
  saveChat(mine.chat);
  showContext();
}

/**
 * @param {NonNullable<Answer["painted"]>} painted
 * @param {Message} message
 */
function showWhole({ article, view }, message) {
  const text = partOf(article, "text");
  view.finish(message.content);
  message.thought = Number(text.dataset.thought ?? 0);
  showOutcome(article, message);
  follow();
  page.announcer.textContent = message.error || `Answer: ${text.textContent}`;
}

/**
 * @param {Answer} growing
 * @param {ChatCompletionChunk} chunk
 */
function take(growing, { choices: [choice], progress, usage }) {
  const now = performance.now();
  if (usage) growing.message.note = usage.summary;
  if (progress) growing.status = `Reading ${progress.prefilled} of ${progress.total} tokens`;
  if (choice) {
    growing.message.content += choice.delta.content ?? "";
    growing.tokens += choice.token_ids.length;
    growing.first ??= now;
    const rate = (growing.tokens - 1) / (now - growing.first) * 1000;
    growing.status = line(`${growing.tokens} tokens`, rate > 0 && `${rate.toFixed(1)} tok/s`);
  }
  growing.frame ??= requestAnimationFrame(() => paint(growing)); // waits in a hidden tab; the text does not
  growing.saving ??= setTimeout(save, SAVE_MILLISECONDS, growing);
}

/** @param {Answer} growing */
function save(growing) {
  delete growing.saving;
  growing.message.version++;
  saveChat(growing.chat, growing.message.id);
}

/** @param {Answer} growing */
function paint(growing) {
  delete growing.frame;
  if (!growing.painted) return;
  const { article, view } = growing.painted;
  view.grow(growing.message.content);
  partOf(article, "note").textContent = growing.status;
  follow();
}

function keepDraft() {
  keep("inpageDraft", draft.value);
}

/** @param {string} text */
function write(text) {
  draft.value = text;
  keepDraft();
  draft.focus();
}

/**
 * Takes the question into the composer, or none.
 * @param {Message} [question]
 */
function edit(question, text = question?.content ?? "") {
  editing = question?.id;
  page.editing.hidden = !question;
  write(text);
}

/**
 * Answers the first `count` messages and the question.
 * @param {number} count
 * @param {Partial<ChatRequest>} [options]
 * @param {string} [question]
 */
function goOn(count, options = {}, question = "") {
  if (!inpage.loaded) return notify("Load a model first: your text stays.");
  page.notices.replaceChildren(); // and their Undo
  dropMessages(count);
  if (question) {
    shown.messages.push(newMessage(shown, "user", question));
    edit();
  }
  begin(options);
}

/** @param {number} from */
export function dropMessages(from, count = Infinity) {
  const dropped = shown.messages.splice(from, count);
  shown.gone.push(...dropped.map(({ id }) => id));
  return dropped;
}

/** @type {Record<string, (index: number, button: Element) => void>} */
const actions = {
  copy: (index) => copyText(shown.messages[index].content),
  copyCode: (index, button) => copyText(button.closest("pre")?.querySelector("code")?.textContent ?? ""),
  again: (index) => goOn(shown.messages[index].role === "user" ? index + 1 : index),
  drop: (index) => goOn(index, { context_overflow: "drop_oldest" }),
  edit: (index) => edit(shown.messages[index]),
  delete: async (index) => (await fetched(import("./deleting.js")))?.deleteMessage(index),
};

/** @param {string} [id] */
const indexOf = (id) => shown.messages.findIndex((message) => message.id === id);

list.onclick = (/** @type {MouseEvent} */ { target }) => {
  /** @type {HTMLElement | null} */
  const button = /** @type {Element} */ (target).closest("[data-act]");
  const id = button?.closest("article")?.dataset.id;
  if (button && id) actions[button.dataset.act ?? ""](indexOf(id), button);
};
page.stopEditing.onclick = () => edit();
page.stop.onclick = () => { answer?.abort.abort(); draft.focus(); };
composer.onsubmit = (/** @type {SubmitEvent} */ event) => {
  event.preventDefault();
  const content = draft.value.trim();
  const index = indexOf(editing);
  if (content && !answer) goOn(index < 0 ? Infinity : index, {}, content);
};
draft.onkeydown = (/** @type {KeyboardEvent} */ event) => {
  // Not the Enter that ends a word of an input method.
  if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
  event.preventDefault();
  composer.requestSubmit();
};
draft.oninput = keepDraft;
page.examples.onclick = ({ target }) => {
  if (!(target instanceof HTMLButtonElement)) return;
  write(target.textContent);
  composer.requestSubmit();
};
system.onchange = () => {
  shown.system = system.value.trim();
  shown.set.system = Date.now();
  if (shown.messages.length) store(shown);
};
scroller.onscroll = () => {
  atEnd = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < NEAR_THE_END;
};
addEventListener("pagehide", () => { if (answer) save(answer); }); // a busy browser may let it fall
addEventListener("modelchange", showContext);
draft.value = recall("inpageDraft") ?? "";
