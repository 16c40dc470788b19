// The conversation: shows the messages of the open chat, and the answer that grows in it.

/** @import { Answer, Painted } from "./answers.js" */
/** @import { Chat, ChatMessage } from "./chats.js" */

import { answer } from "./answer_queue.js";
import { answerOf, writtenElsewhere } from "./answers.js";
import { addMessage, countVersions, lastPartOf, pathOf, shown, slotOf, versionsOf } from "./chats.js";
import { changeChat } from "./composer.js";
import { copyOf, directionOf, excerptOf, mainTextOf, page, partOf } from "./elements.js";
import { emit, on } from "./events.js";
import { markdownIn } from "./markdown.js";
import { keep } from "./settings/settings.js";
import { faultOf, language, t, tell } from "./wording.js";

const isOfStatistics = (/** @type {{ code: string }} */ { code }) => /^answer_(tokens|seconds|seconds_spent|speed)$/.test(code);
const NEAR_THE_END = 48; // pixels
const MAX_RULES = 300; // characters of a system prompt: a line has fewer
const FAR = 300; // pixels from the end: a button leads there
const AT_ONCE = 40; // messages, the newest: those before them come in slices
const SLICE_MILLISECONDS = 12; // of work between two looks of the browser at the user

const { latest, messages: list, scroller, system } = page;

let atEnd = true; // the user reads along
const pile = document.createDocumentFragment(); // of articles that are ready
let showing = {}; // replaced when messages are shown anew: slices of an earlier time stop

/** Shows a chat, or the open one anew; `text` is what the user has typed for it. @type {(next?: Chat, text?: string) => void} */
export function showChat(next = shown, text = undefined) {
  if (next !== shown) changeChat(next, text);
  atEnd = true;
  showMessages();
  system.value = shown.system;
  emit("chatschange");
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
 * Gives what decides how a message is shown. An answer that grows paints itself.
 * @type {(message: ChatMessage, versionCounts: Map<string, number>) => string}
 */
function stateOf(message, versionCounts) {
  return answerOf(message) ? "growing" : `${message.version} ${versionCounts.get(slotOf(message))} ${language} ${writtenElsewhere.has(message.id)}`;
}

/** @type {(message: ChatMessage, versionCounts: Map<string, number>) => HTMLElement} */
function articleOf(message, versionCounts) {
  const article = copyOf(page[message.role]);
  const text = mainTextOf(article);
  const growing = answerOf(message);
  Object.assign(article.dataset, { id: message.id, state: stateOf(message, versionCounts) });
  if ((versionCounts.get(slotOf(message)) ?? 1) > 1) showVersions(article, message);
  if (message.certain) emit("certaintyshown", { article, message });
  if (message.attachments) emit("filesshown", { article, files: message.attachments });
  if (message.calls) emit("callsshown", { article, message });
  if (message.role === "user") {
    text.textContent = excerptOf(message.content);
    text.dir = directionOf(text.textContent);
  } else if (growing) {
    article.dataset.pending = "";
    growing.painted = paintedIn(article, growing);
    growing.painted.grow();
  } else {
    if (message.thought) text.dataset.thought = String(message.thought);
    markdownIn(text).finish(lastPartOf(message));
    showOutcome(article, message);
  }
  return article;
}

/** Gives what paints an answer that grows. @type {(article: HTMLElement, growing: Answer) => Painted} */
function paintedIn(article, growing) {
  const { chat, message } = growing;
  const text = mainTextOf(article);
  let view = markdownIn(text); // of what is said after the last call
  let { calls } = message;
  return {
    grow() {
      delete growing.frame;
      if (chat !== shown) return;
      if (calls !== message.calls) {
        text.replaceChildren();
        view = markdownIn(text);
        ({ calls } = message);
      }
      if (calls) emit("callsshown", { article, message });
      view.grow(lastPartOf(message));
      partOf(article, "note").textContent = growing.status;
      emit("answergrows");
      follow();
    },
    finish(isNothing) {
      if (chat === shown && isNothing) return showChat();
      view.finish(lastPartOf(message));
      if (message.calls) emit("callsshown", { article, message });
      article.dataset.state = ""; // it may grow again
      if (message.certain) emit("certaintyshown", { article, message });
      message.thought = Number(text.dataset.thought ?? 0);
      showOutcome(article, message);
      follow();
      if (article.isConnected) page.announcer.textContent = message.error || t`Answer: ${text.textContent}`;
    },
  };
}

/** @type {(article: HTMLElement, message: ChatMessage) => void} */
function showOutcome(article, { id, made, note = "", error = "", code = "", reason = "", facts }) {
  const isElsewhere = writtenElsewhere.has(id);
  article.toggleAttribute("data-elsewhere", isElsewhere);
  const [stats, outcome] = isElsewhere || typeof note === "string" ? [[], []] : [note.filter(isOfStatistics), note.filter((each) => !isOfStatistics(each))];
  const words = isElsewhere ? t`Being written in another tab` : typeof note === "string" ? note : tell(outcome) ?? "";
  const figures = tell(stats) ?? "";
  const behind = Object.assign(document.createElement("span"), { className: "stats", textContent: `${words && " · "}${figures}` });
  partOf(article, "note").replaceChildren(...[words, figures ? behind : ""].filter(Boolean));
  partOf(article, "by").textContent = made?.model ?? "";
  partOf(article, "error").textContent = error && faultOf({ reason, facts, message: error });
  Object.assign(article.dataset, { code, reason });
  if (made?.searched) emit("answersearched", article);
  delete article.dataset.pending;
}

/** Shows which of its versions a message is. @type {(article: HTMLElement, message: ChatMessage) => void} */
function showVersions(article, message) {
  const versions = versionsOf(shown, message);
  const at = versions.indexOf(message);
  partOf(article, "versions").hidden = false;
  partOf(article, "which").textContent = `${at + 1}/${versions.length}`;
  /** @type {HTMLButtonElement} */ (partOf(article, "earlier")).disabled = at === 0;
  /** @type {HTMLButtonElement} */ (partOf(article, "later")).disabled = at === versions.length - 1;
}

/** Shows the system prompt of the chat, where it has one, and whether it has tools. */
function showRules() {
  page.rules.hidden = !shown.system;
  page.rules.lastElementChild?.replaceChildren(shown.system.slice(0, MAX_RULES));
  page.openTools.ariaLabel = page.openTools.title = shown.tools.isOn ? t`Tools: on` : t`Tools`;
  page.openTools.toggleAttribute("data-on", shown.tools.isOn);
}

/** Scrolls to the end, where the user reads along. */
export function follow() {
  if (atEnd) scroller.scrollTop = scroller.scrollHeight;
}

/** Has an answer written in the open chat. @type {(message: ChatMessage, options?: Answer["options"]) => void} */
export function answerHere(message, options) {
  answer(shown, message, options);
  showChat();
  page.draft.focus();
}

on("messagesent", ({ content, attachments, place, options }) => {
  keep("inpageChat", shown.id); // a page that is still opening stays with it
  Object.assign(addMessage(shown, "user", content, place), attachments?.length && { attachments });
  answerHere(addMessage(shown, "assistant", ""), options);
});
scroller.onscroll = () => {
  atEnd = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < NEAR_THE_END;
  showLatest();
};
on("textdrawn", follow);
on("chatschange", showRules);

// ---- a way back to the newest words of a long chat

function showLatest() {
  latest.hidden = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < FAR;
}

latest.onclick = () => {
  scroller.scrollTop = scroller.scrollHeight;
  page.draft.focus();
};
new ResizeObserver(showLatest).observe(partOf(scroller, "column"));
