// The conversation: shows a chat, sends what is typed, streams the answer.

import { newChat, saveChat } from "./chats.js";
import { markdownIn } from "./markdown.js";
import { copyOf, copyText, kept, line, notify, page } from "./page.js";
import { requestOptions } from "./settings.js";

const SAVE_MILLISECONDS = 1000;
const NEAR_THE_END = 48; // pixels

const { composer, draft, messages: list, scroller, system } = page;
const { body } = document;

export let shown = newChat(); // a chat
let answer; // the one being written
let editing; // the index of the question in the composer
let atEnd = true; // the reader reads along

export function showChat(next = shown) {
  if (editing >= 0) edit();
  shown = next;
  atEnd = true;
  list.replaceChildren(...shown.messages.map(articleOf));
  body.toggleAttribute("data-empty", !shown.messages.length);
  system.value = shown.system;
  follow();
  showContext();
}

function articleOf(message) {
  const article = copyOf(page[message.role]);
  const [text] = article.children;
  if (message.role === "user") text.textContent = message.content;
  else if (message === answer?.message) {
    Object.assign(answer, { article, view: markdownIn(text) });
    paint();
  } else {
    markdownIn(text).finish(message.content);
    showOutcome(article, message);
  }
  return article;
}

function showOutcome(article, { note, error, code }) {
  const [, noteLine, errorLine] = article.children;
  noteLine.textContent = note;
  errorLine.textContent = error;
  article.dataset.code = code;
}

function follow() {
  if (atEnd) scroller.scrollTop = scroller.scrollHeight;
}

function store(which) {
  which.updated = Date.now();
  saveChat(which);
  dispatchEvent(new Event("chatschange"));
}

const promptOf = ({ system: rules, messages }) => [{ role: "system", content: rules }, ...messages]
  .flatMap(({ role, content }) => (content ? { role, content } : []));

async function showContext() {
  if (!inpage.loaded) return;
  const { context } = inpage.loaded;
  const { prompt_tokens: used = 0 } = await inpage.countTokens(promptOf(shown)).catch(() => 0);
  page.contextText.textContent = `Context: ${used} of ${context} tokens`;
  Object.assign(page.contextMeter, { max: context, value: used });
}

async function begin(options) {
  const message = { role: "assistant", content: "", note: "Interrupted by a reload", error: "" };
  const mine = answer = { chat: shown, message, abort: new AbortController(), tokens: 0, status: "Reading…" };
  shown.messages.push(message);
  body.dataset.running = "";
  showChat();
  store(shown);
  draft.focus();
  try {
    const chunks = await inpage.chat.completions.create({
      messages: promptOf(shown),
      signal: mine.abort.signal,
      stream: true,
      stream_options: { include_usage: true, include_progress: true },
      ...requestOptions(),
      ...options,
    });
    for await (const chunk of chunks) take(chunk);
  } catch (error) {
    Object.assign(message, { note: "", error: error.message, code: error.code });
  }
  cancelAnimationFrame(mine.frame);
  clearTimeout(mine.saving);
  answer = undefined;
  delete body.dataset.running;
  mine.view.finish(message.content);
  showOutcome(mine.article, message);
  follow();
  page.announcer.textContent = message.error || `Answer: ${mine.article.firstElementChild.textContent}`;
  saveChat(mine.chat);
  showContext();
}

function take({ choices: [choice], progress, usage }) {
  const now = performance.now();
  if (usage) answer.message.note = usage.summary;
  if (progress) answer.status = `Reading ${progress.prefilled} of ${progress.total} tokens`;
  if (choice) {
    answer.message.content += choice.delta.content ?? "";
    answer.tokens += choice.token_ids.length;
    answer.first ??= now;
    const rate = (answer.tokens - 1) / (now - answer.first) * 1000;
    answer.status = line(`${answer.tokens} tokens`, rate > 0 && `${rate.toFixed(1)} tok/s`);
  }
  answer.frame ??= requestAnimationFrame(paint); // waits in a hidden tab; the text does not
  answer.saving ??= setTimeout(save, SAVE_MILLISECONDS);
}

function save() {
  delete answer.saving;
  saveChat(answer.chat);
}

function paint() {
  delete answer.frame;
  answer.view.grow(answer.message.content);
  answer.article.children[1].textContent = answer.status;
  follow();
}

function write(text) {
  draft.value = text;
  draft.oninput();
  draft.focus();
}

/** Takes the question at `index` into the composer, or none. */
function edit(index) {
  editing = index;
  page.editing.hidden = !(index >= 0);
  write(shown.messages[index]?.content ?? "");
}

/** Answers the first `count` messages and `question`. */
function goOn(count, options, ...question) {
  if (!inpage.loaded) return notify("Load a model first: your text stays.");
  page.notices.replaceChildren(); // and their Undo
  shown.messages.splice(count, Infinity, ...question);
  if (question.length) edit();
  begin(options);
}

/** A question goes with its answer. */
function deleteMessage(index) {
  const from = shown;
  const before = shown.messages;
  const put = (messages) => {
    showChat(Object.assign(from, { messages }));
    store(from);
  };
  const isAnswered = before[index].role === "user" && before[index + 1]?.role === "assistant";
  put(before.toSpliced(index, isAnswered ? 2 : 1));
  draft.focus();
  notify("Deleted.", () => put(before));
}

const actions = {
  copy: (index) => copyText(shown.messages[index].content),
  copyCode: (index, button) => copyText(button.nextSibling.textContent),
  again: (index) => goOn(shown.messages[index].role === "user" ? index + 1 : index),
  drop: (index) => goOn(index, { context_overflow: "drop_oldest" }),
  edit,
  delete: deleteMessage,
};

list.onclick = ({ target }) => {
  const button = target.closest("[data-act]");
  if (button) actions[button.dataset.act]([...list.children].indexOf(button.closest("article")), button);
};
page.stopEditing.onclick = () => edit();
page.stop.onclick = () => { answer.abort.abort(); draft.focus(); };
composer.onsubmit = (event) => {
  event.preventDefault();
  const content = draft.value.trim();
  if (content && !answer) goOn(editing ?? Infinity, {}, { role: "user", content });
};
draft.onkeydown = (event) => {
  // Not the Enter that ends a word of an input method.
  if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
  event.preventDefault();
  composer.requestSubmit();
};
draft.oninput = () => { kept.inpageDraft = draft.value; };
page.examples.onclick = ({ target }) => {
  if (!target.matches("button")) return;
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
