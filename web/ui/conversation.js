// The conversation: shows a chat, and sends what is typed.

/** @import { AnswerHere, ChatMessage, Editor, PaintedIn } from "./records.js" */

import { answerIn, answerOf } from "./answer_queue.js";
import { answer, stop } from "./answers.js";
import { addMessage, chats, newChat } from "./chats.js";
import { markdownIn } from "./markdown.js";
import { copyOf, excerptOf, faultOf, keep, language, lazy, page, partOf, recall, t, tell } from "./page.js";
import { countVersions, pathOf, slotOf } from "./tree.js";

const NEAR_THE_END = 48; // pixels
const AT_ONCE = 40; // messages, the newest: those before them come in slices
const SLICE_MILLISECONDS = 12; // of work between two looks of the browser at the user

const { composer, draft, messages: list, scroller, system } = page;
const versions = lazy(() => import("./versions.js"));

export let shown = newChat();
/** @type {Editor | undefined} */
let editor; // of a question that is in the composer
let atEnd = true; // the user reads along
const pile = document.createDocumentFragment(); // of articles that are ready
let showing = {}; // replaced when messages are shown anew: slices of an earlier time stop

/** A draft belongs to its chat; one that is not kept yet is the new one. */
const draftName = () => (chats.has(shown.id) ? `inpageDraft ${shown.id}` : "inpageDraft");
const keepDraft = () => { if (!editor) keep(draftName(), draft.value); };

export function showChat(next = shown, /** @type {string | undefined} */ text = undefined) {
  if (next !== shown) {
    editor?.stop();
    if (text === undefined) keepDraft();
    shown = next;
    draft.value = text ?? recall(draftName()) ?? "";
    keepDraft();
  }
  atEnd = true;
  showMessages();
  system.value = shown.system;
  dispatchEvent(new Event("chatschange"));
  follow();
}

/**
 * Shows the messages of the chat: the newest at once, those before them in slices, so that the page answers however
 * many there are. An article that shows what it should stays.
 */
export function showMessages() {
  const mine = showing = {};
  if (list.dataset.chat !== shown.id) list.replaceChildren(); // ids are unique within a chat alone
  list.dataset.chat = shown.id;
  const path = pathOf(shown);
  const versionCounts = countVersions(shown);
  const ids = new Set(path.map(({ id }) => id));
  /** @type {Map<string, HTMLElement>} */
  const there = new Map();
  for (const article of /** @type {HTMLElement[]} */ ([...list.children])) {
    if (ids.has(article.dataset.id ?? "")) there.set(article.dataset.id ?? "", article);
    else article.remove();
  }
  document.body.toggleAttribute("data-empty", !path.length);
  pile.replaceChildren(); // of an earlier time
  /** @type {Element | null} */
  let later = null; // the article before which the next ones stand

  function insertPile() {
    const first = pile.firstElementChild;
    list.insertBefore(pile, later);
    later = first ?? later;
  }

  function showNext() {
    const message = /** @type {ChatMessage} */ (path.pop());
    const old = there.get(message.id);
    if (old?.dataset.state !== stateOf(message, versionCounts)) {
      old?.remove();
      return pile.insertBefore(articleOf(message, versionCounts), pile.firstChild);
    }
    insertPile();
    if (old.nextElementSibling !== later) list.insertBefore(old, later);
    later = old;
    return old;
  }

  function showSlice() {
    if (mine !== showing) return;
    const end = performance.now() + SLICE_MILLISECONDS;
    while (path.length && performance.now() < end) showNext().classList.add("earlier");
    // As many as there are already: the browser lays all of them out a few times, not once for each slice.
    if (!path.length || pile.childElementCount > list.childElementCount) {
      insertPile();
      follow();
    }
    if (path.length) setTimeout(showSlice);
  }

  for (let left = AT_ONCE; path.length && left; left--) showNext();
  insertPile();
  if (path.length) setTimeout(showSlice);
}

/**
 * What decides how a message is shown. An answer that grows paints itself.
 * @type {(message: ChatMessage, versionCounts: Map<string, number>) => string}
 */
function stateOf(message, versionCounts) {
  return answerOf(message) ? "growing" : `${message.version} ${versionCounts.get(slotOf(message))} ${language}`;
}

/** @type {(message: ChatMessage, versionCounts: Map<string, number>) => HTMLElement} */
function articleOf(message, versionCounts) {
  const article = copyOf(page[message.role]);
  const text = partOf(article, "text");
  const growing = answerOf(message);
  Object.assign(article.dataset, { id: message.id, state: stateOf(message, versionCounts) });
  if ((versionCounts.get(slotOf(message)) ?? 1) > 1) versions.showVersions(article, shown, message);
  if (message.role === "user") text.textContent = excerptOf(message.content);
  else if (growing) {
    article.dataset.pending = "";
    growing.painted = paintedIn(article, growing);
    growing.painted.grow();
  } else {
    if (message.thought) text.dataset.thought = String(message.thought);
    markdownIn(text).finish(message.content);
    showOutcome(article, message);
  }
  return article;
}

/** An answer that grows. @type {PaintedIn} */
function paintedIn(article, growing) {
  const { chat, message } = growing;
  const text = partOf(article, "text");
  const view = markdownIn(text);
  return {
    grow() {
      delete growing.frame;
      if (chat !== shown) return;
      view.grow(message.content);
      partOf(article, "note").textContent = growing.status;
      dispatchEvent(new Event("answergrows"));
      follow();
    },
    finish(isNothing) {
      if (chat === shown && isNothing) return showChat();
      view.finish(message.content);
      article.dataset.state = ""; // it may grow again
      message.thought = Number(text.dataset.thought ?? 0);
      showOutcome(article, message);
      follow();
      if (article.isConnected) page.announcer.textContent = message.error || t`Answer: ${text.textContent}`;
    },
  };
}

/** @type {(article: HTMLElement, message: ChatMessage) => void} */
function showOutcome(article, { note = "", error = "", code = "", reason, facts }) {
  partOf(article, "note").textContent = typeof note === "string" ? note : tell(note) ?? "";
  partOf(article, "error").textContent = error && faultOf({ reason, facts, message: error });
  article.dataset.code = code;
  delete article.dataset.pending;
}

export function follow() {
  if (atEnd) scroller.scrollTop = scroller.scrollHeight;
}

/** @param {string} text */
export function write(text) {
  draft.value = text;
  keepDraft();
  draft.focus();
}

/** What is being edited: where it belongs, and the way out. @param {Editor} [next] */
export function setEditor(next) {
  editor = next;
}

/** Has an answer written in this chat. @type {AnswerHere} */
export function answerHere(message, options) {
  answer(shown, message, options);
  showChat();
  draft.focus();
}

function send() {
  const content = draft.value.trim();
  if (!content) return;
  const place = editor?.place;
  draft.value = "";
  if (editor) editor.stop();
  else write("");
  keep("inpageChat", shown.id); // a page that is still opening stays with it
  addMessage(shown, "user", content, place);
  answerHere(addMessage(shown, "assistant", ""));
}

page.stop.onclick = () => { stop(answerIn(shown)); draft.focus(); };
composer.onsubmit = (/** @type {SubmitEvent} */ event) => {
  event.preventDefault();
  send();
};
draft.onkeydown = (/** @type {KeyboardEvent} */ event) => {
  // Not the Enter that ends a word of an input method.
  if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
  event.preventDefault();
  composer.requestSubmit();
};
draft.oninput = keepDraft;
scroller.onscroll = () => {
  atEnd = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < NEAR_THE_END;
};
addEventListener("chatschange", () => document.body.toggleAttribute("data-running", !!answerIn(shown)));
addEventListener("textdrawn", follow);
draft.value ||= recall(`inpageDraft ${recall("inpageChat")}`) ?? recall("inpageDraft") ?? ""; // unless the user has typed by now
