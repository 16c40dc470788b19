// The conversation: shows a chat, sends what is typed, streams the answer.

import { newChat, saveChat } from "./chats.js";
import { markdownIn } from "./markdown.js";
import { copyOf, copyText, kept, line, notify, page, partOf } from "./page.js";
import { requestOptions } from "./settings.js";

const SAVE_MILLISECONDS = 1000;
const NEAR_THE_END = 48; // pixels

const { composer, draft, messages: list, scroller, system } = page;
const { body } = document;

/**
 * @typedef {import("./chats.js").Chat} Chat
 * @typedef {import("./chats.js").Message} Message
 * @typedef {import("../inpage.d.ts").ChatRequest} ChatRequest
 *
 * @typedef {object} Answer
 * @property {Chat} chat
 * @property {Message} message
 * @property {AbortController} abort
 * @property {number} tokens
 * @property {string} status
 * @property {number} [first] when its first token came
 * @property {number} [frame] that will paint it
 * @property {number} [saving] the timer that will save it
 * @property {{ article: HTMLElement, view: ReturnType<typeof markdownIn> }} [painted] where it is shown
 */

export let shown = newChat();
/** @type {Answer | undefined} */
let answer; // the one being written
/** @type {number | undefined} */
let editing; // the index of the question in the composer
let atEnd = true; // the user reads along

export function showChat(next = shown) {
  if (editing !== undefined) edit();
  shown = next;
  atEnd = true;
  list.replaceChildren(...shown.messages.map(articleOf));
  body.toggleAttribute("data-empty", !shown.messages.length);
  system.value = shown.system;
  follow();
  if (shown !== answer?.chat) showContext(); // the answer's end shows it
}

/**
 * @param {Message} message
 * @param {number} index
 */
function articleOf(message, index) {
  const article = copyOf(page[message.role]);
  const text = partOf(article, "text");
  article.dataset.index = String(index);
  if (message.role === "user") text.textContent = message.content;
  else if (answer && message === answer.message) {
    answer.painted = { article, view: markdownIn(text) };
    paint(answer);
  } else {
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

function follow() {
  if (atEnd) scroller.scrollTop = scroller.scrollHeight;
}

/** @param {Chat} which */
function store(which) {
  which.updated = Date.now();
  saveChat(which);
  dispatchEvent(new Event("chatschange"));
}

/**
 * @param {Chat} chat
 * @returns {import("../inpage.d.ts").Message[]}
 */
const promptOf = ({ system: rules, messages }) => [{ role: /** @type {const} */ ("system"), content: rules }, ...messages]
  .flatMap(({ role, content }) => (content ? { role, content } : []));

async function showContext() {
  if (!inpage.loaded) return;
  const { context } = inpage.loaded;
  const { prompt_tokens: used } = await inpage.countTokens(promptOf(shown)).catch(() => ({ prompt_tokens: 0 }));
  page.contextText.textContent = `Context: ${used} of ${context} tokens`;
  Object.assign(page.contextMeter, { max: context, value: used });
}

/** @param {Partial<ChatRequest>} options */
async function begin(options) {
  /** @type {Message} */
  const message = { role: "assistant", content: "", note: "Interrupted by a reload", error: "" };
  /** @type {Answer} */
  const mine = answer = { chat: shown, message, abort: new AbortController(), tokens: 0, status: "Reading…" };
  shown.messages.push(message);
  body.dataset.running = "";
  showChat();
  store(shown);
  draft.focus();
  try {
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
    const { message: fault, code } = /** @type {import("../inpage.d.ts").InpageError} */ (error);
    Object.assign(message, code === "aborted" ? { note: "Stopped" } : { note: "", error: fault, code });
  }
  if (mine.frame) cancelAnimationFrame(mine.frame);
  clearTimeout(mine.saving);
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
  view.finish(message.content);
  showOutcome(article, message);
  follow();
  page.announcer.textContent = message.error || `Answer: ${partOf(article, "text").textContent}`;
}

/**
 * @param {Answer} growing
 * @param {import("../inpage.d.ts").ChatCompletionChunk} chunk
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
  saveChat(growing.chat);
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
  kept.inpageDraft = draft.value;
}

/** @param {string} text */
function write(text) {
  draft.value = text;
  keepDraft();
  draft.focus();
}

/**
 * Takes the question at `index` into the composer, or none.
 * @param {number} [index]
 */
function edit(index) {
  editing = index;
  page.editing.hidden = index === undefined;
  write(index === undefined ? "" : shown.messages[index].content);
}

/**
 * Answers the first `count` messages and `question`.
 * @param {number} count
 * @param {Partial<ChatRequest>} [options]
 * @param {Message[]} question
 */
function goOn(count, options = {}, ...question) {
  if (!inpage.loaded) return notify("Load a model first: your text stays.");
  page.notices.replaceChildren(); // and their Undo
  shown.messages.splice(count, Infinity, ...question);
  if (question.length) edit();
  begin(options);
}

/**
 * A question goes with its answer.
 * @param {number} index
 */
function deleteMessage(index) {
  const from = shown;
  const before = shown.messages;
  const put = (/** @type {Message[]} */ messages) => {
    showChat(Object.assign(from, { messages }));
    store(from);
  };
  const isAnswered = before[index].role === "user" && before[index + 1]?.role === "assistant";
  put(before.toSpliced(index, isAnswered ? 2 : 1));
  draft.focus();
  notify("Deleted.", () => put(before));
}

/** @type {Record<string, (index: number, button: Element) => void>} */
const actions = {
  copy: (index) => copyText(shown.messages[index].content),
  copyCode: (index, button) => copyText(button.closest("pre")?.querySelector("code")?.textContent ?? ""),
  again: (index) => goOn(shown.messages[index].role === "user" ? index + 1 : index),
  drop: (index) => goOn(index, { context_overflow: "drop_oldest" }),
  edit: (index) => edit(index),
  delete: deleteMessage,
};

list.onclick = (/** @type {MouseEvent} */ { target }) => {
  /** @type {HTMLElement | null} */
  const button = /** @type {Element} */ (target).closest("[data-act]");
  const index = button?.closest("article")?.dataset.index;
  if (button) actions[button.dataset.act ?? ""](Number(index), button);
};
page.stopEditing.onclick = () => edit();
page.stop.onclick = () => { answer?.abort.abort(); draft.focus(); };
composer.onsubmit = (/** @type {SubmitEvent} */ event) => {
  event.preventDefault();
  const content = draft.value.trim();
  if (content && !answer) goOn(editing ?? Infinity, {}, { role: "user", content });
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
  if (shown.messages.length) store(shown);
};
scroller.onscroll = () => {
  atEnd = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < NEAR_THE_END;
};
addEventListener("pagehide", () => { if (answer) saveChat(answer.chat); }); // a busy browser may let it fall
addEventListener("modelchange", showContext);
draft.value = kept.inpageDraft ?? "";
