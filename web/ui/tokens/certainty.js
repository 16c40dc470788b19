// Certainty: the tokens of a message, tinted by how likely each of them was, in place of its text.

/** @import { ChatMessage } from "../chats.js" */
/** @import { Choice, Scores, ScoredToken } from "./scores.js" */

import { answers, packed } from "../answers.js";
import { saveChat } from "../chat_storage.js";
import { addMessage, shown, slotOf } from "../chats.js";
import { answerHere, showChat } from "../conversation.js";
import { copyOf, mainTextOf, page, partOf, styleSheet } from "../elements.js";
import { emit, on } from "../events.js";
import { requestOptions } from "../settings/settings.js";
import { addedBy, percent, probabilityOf, scoresOf, sparkline, surpriseOf, visible, writtenAs } from "./scores.js";
import { closeChoices, hideChoices, hideSoon, showChoices, stepInto } from "./choices.js";
import { decimal, faultOf, line, t } from "../wording.js";

const LEVELS = [0.9, 0.5, 0.2, 0.05]; // of probability: below the last, a token is tinted most
const AT_ONCE = 400; // tokens between two looks of the browser at the user
const HOVER_MILLISECONDS = 60;
const SETTLING_FRAMES = 10;

const loadStyles = styleSheet("tokens.css");

/** @param {Choice} choice */
const levelOf = (choice) => LEVELS.findIndex((least) => probabilityOf(choice) >= least) + 1 || LEVELS.length + 1;

/** A view of a message's tokens. @typedef {{ message: ChatMessage, article: HTMLElement, view: HTMLElement, asking: AbortController, scores?: Scores }} View */

/** @type {WeakMap<HTMLElement, View>} */
const views = new WeakMap(); // by the article
/** @type {Set<View>} */
const waiting = new Set(); // for a model, or for an answer that is being written

/** Shows a message's tokens, or its text again. @type {(button: Element, message: ChatMessage) => void} */
export function toggle(button, message) {
  const article = /** @type {HTMLElement} */ (button.closest("article"));
  message.certain = message.certain ? 0 : 1;
  message.version++;
  article.dataset.state = article.dataset.state?.replace(/^\d+/, String(message.version));
  saveChat(shown);
  if (message.certain) show(article, message);
  else hide(article);
}

/** @param {HTMLElement} article */
function hide(article) {
  const mine = views.get(article);
  mine?.asking.abort();
  mine?.view.remove();
  if (mine) waiting.delete(mine);
  views.delete(article);
  delete article.dataset.tokens;
  hideChoices();
  mark(article, false);
  emit("textdrawn");
}

/** @type {(article: HTMLElement, isOn: boolean) => void} */
const mark = (article, isOn) => article.querySelector("[data-act=certainty]")?.setAttribute("aria-pressed", String(isOn));

/** Shows the tokens of a message as soon as they are scored. @type {(article: HTMLElement, message: ChatMessage) => Promise<void>} */
export async function show(article, message) {
  hide(article);
  const view = copyOf(page.certaintyView);
  const mine = { message, article, view, asking: new AbortController() };
  views.set(article, mine);
  mark(article, true);
  mainTextOf(article).after(view);
  partOf(view, "look").hidden = partOf(view, "surprise").hidden = true;
  view.ariaLabel = message.role === "user" ? t`How expected this is` : t`Certainty of this answer`;
  await loadStyles().catch(() => {}); // plain, it can be read
  whenSeen(mine);
}

/** Scores a message once it is in view: a long chat may have many. @param {View} mine */
function whenSeen(mine) {
  const watching = new IntersectionObserver(([{ isIntersecting }]) => {
    if (!isIntersecting) return;
    watching.disconnect();
    ask(mine);
  });
  watching.observe(mine.article);
  mine.asking.signal.addEventListener("abort", () => watching.disconnect());
}

/** @param {View} mine */
async function ask(mine) {
  const { message, article, view, asking } = mine;
  const facts = partOf(view, "facts");
  if (!inpage.loaded || answers.length) {
    waiting.add(mine);
    facts.textContent = inpage.loaded ? t`Certainty is shown once the answer is written.` : t`Certainty is shown once a model is loaded.`;
    return;
  }
  facts.textContent = t`Scoring the tokens…`;
  try {
    const onProgress = (/** @type {{ done: number, total: number }} */ { done, total }) => {
      facts.textContent = t`Scoring the tokens: ${done} of ${total}`;
    };
    mine.scores = await scoresOf(shown, message, { signal: asking.signal, onProgress });
    if (views.get(article) !== mine) return;
    facts.textContent = "";
    paint(mine, mine.scores);
  } catch (error) {
    if (views.get(article) !== mine) return;
    if (asking.signal.aborted) return again(mine); // for an answer
    facts.textContent = t`The tokens could not be scored: ${faultOf(error)}.`;
  }
}

/** Asks once more, when nothing is in the way. @param {View} mine */
function again(mine) {
  mine.asking = new AbortController();
  ask(mine);
}

function goOn() {
  if (!inpage.loaded || answers.length) return;
  for (const mine of [...waiting]) {
    waiting.delete(mine);
    if (mine.article.isConnected) ask(mine);
  }
}

on("chatshown", hideChoices);
on("modelchange", goOn);
on("chatschange", goOn);
on("messagesent", () => { // an answer comes first
  for (const article of /** @type {HTMLElement[]} */ ([...page.messages.children])) {
    const mine = views.get(article);
    if (mine && !mine.scores) mine.asking.abort();
  }
});

// ---- what is shown

/** @type {(mine: View, scores: Scores) => void} */
function paint(mine, scores) {
  const { message, article, view } = mine;
  const isOwn = message.role === "user";
  const { tokens } = scores;
  article.dataset.tokens = "";
  const look = partOf(view, "look");
  look.hidden = false;
  look.textContent = isOwn
    ? t`The stronger the tint and the line below a token, the less the model expected it. Point at one or tap it to see what it expected.`
    : t`The stronger the tint and the line below a token, the less likely it was. Point at one or tap it to see what else could stand there.`;
  partOf(view, "legend").replaceChildren(...legend());
  partOf(view, "legend").ariaLabel = t`Probability of a token`;
  partOf(view, "facts").textContent = factsOf(message, scores);
  const box = partOf(view, "tokens");
  box.ariaLabel = isOwn ? t`The tokens of the message` : t`The tokens of the answer`;
  const reading = readingOf(mine, scores, box);
  const surprise = partOf(view, "surprise");
  surprise.hidden = tokens.length < 2;
  reading.onMove = sparkline(surprise, tokens, reading.goTo).mark;
  fill(box, tokens, () => views.get(article) === mine && article.isConnected);
}

function legend() {
  const names = [t`90 % or more`, t`50 to 90 %`, t`20 to 50 %`, t`5 to 20 %`, t`below 5 %`];
  return names.map((name, at) => {
    const item = document.createElement("li");
    const sample = Object.assign(document.createElement("span"), { className: "tok", textContent: t`token` });
    sample.dataset.level = String(at + 1);
    sample.ariaHidden = "true";
    item.append(sample, name);
    return item;
  });
}

/** @type {(message: ChatMessage, scores: Scores) => string} */
function factsOf({ role, made, content }, { tokens, about, context_tokens: context, model }) {
  const mean = tokens.reduce((sum, { logprob }) => sum + logprob, 0) / tokens.length;
  const isOthers = role === "assistant" && made && made.model !== model;
  const isChanged = made?.prompt_tokens !== undefined && !about && made.prompt_tokens - made.begun !== context;
  return line(
    t`${tokens.length} token|${tokens.length} tokens`,
    content && t`perplexity ${decimal(Math.exp(-mean), 1)}`,
    t`surprise up to ${decimal(tokens.reduce((most, token) => Math.max(most, surpriseOf(token)), 0), 1)} bits`,
    isOthers && t`scored by ${model}, which did not write it`,
    about && t`approximate: its tokens were not kept, so its text was tokenised again`,
    isChanged && t`approximate: the messages before it have changed since`,
  );
}

/** Adds the tokens in slices, a block for each line. @type {(box: HTMLElement, tokens: ScoredToken[], isWanted: () => boolean) => void} */
function fill(box, tokens, isWanted) {
  let at = 0;
  /** @type {HTMLElement | undefined} */
  let block;
  const slice = () => {
    if (!isWanted()) return;
    const pile = document.createDocumentFragment();
    for (const end = Math.min(at + AT_ONCE, tokens.length); at < end; at++) {
      const token = tokens[at];
      if (!block) pile.append(block = document.createElement("p"));
      block.append(spanOf(token, at));
      if (addedBy(token).endsWith("\n")) block = undefined;
    }
    box.append(pile);
    if (at < tokens.length) setTimeout(slice);
    emit("textdrawn");
  };
  slice();
}

/** @type {(token: ScoredToken, at: number) => HTMLElement} */
function spanOf(token, at) {
  const span = document.createElement("span");
  span.className = token.special && !addedBy(token) ? "tok chip" : "tok";
  span.textContent = writtenAs(token);
  span.dataset.at = String(at);
  span.dataset.level = String(levelOf(token));
  if (token.text.includes("\n")) span.dataset.line = "↵";
  if (!at) span.tabIndex = 0; // the way in for the keyboard
  return span;
}

// ---- reading: a pointer, a finger or the arrow keys go from token to token

/** @type {(mine: View, scores: Scores, box: HTMLElement) => { goTo: (at: number) => void, onMove: (at: number) => void }} */
function readingOf(mine, scores, box) {
  const { tokens } = scores;
  const isOwn = mine.message.role === "user";
  const reading = { goTo, onMove: /** @type {(at: number) => void} */ (() => {}) };
  /** @type {HTMLElement | null} */
  let current = null; // that keys go on from
  let timer = 0;

  const spanAt = (/** @type {number} */ at) => /** @type {HTMLElement | null} */ (box.querySelector(`[data-at="${at}"]`));
  const placeOf = (/** @type {EventTarget | null} */ target) => /** @type {HTMLElement | null} */ (target instanceof Element ? target.closest("[data-at]") : null);

  /** @type {(span: HTMLElement, isPinned: boolean) => void} */
  function look(span, isPinned) {
    const at = Number(span.dataset.at);
    const onChoose = isOwn ? undefined : (/** @type {Choice} */ choice) => branch(mine.message, scores, at, choice);
    showChoices({ anchor: span, token: tokens[at], vocabulary: scores.vocabulary, isOwn, isPinned, onChoose });
    reading.onMove(at);
  }

  /** @param {HTMLElement} span */
  function take(span) {
    if (current && current !== span) {
      current.tabIndex = -1;
      current.removeAttribute("role");
      current.removeAttribute("aria-label");
    } else if (!current) spanAt(0)?.setAttribute("tabindex", "-1");
    current = span;
    const token = tokens[Number(span.dataset.at)];
    Object.assign(span, { tabIndex: 0, role: "button", ariaLabel: t`${visible(token)}: ${percent(probabilityOf(token))}, rank ${token.rank}` });
  }

  /** @param {number} at */
  function goTo(at) {
    const span = spanAt(Math.max(0, Math.min(tokens.length - 1, at)));
    if (!span) return;
    take(span);
    span.focus({ preventScroll: true });
    keepInView(span);
  }

  /** Scrolls for some frames: lines that come into view take their true height. @param {HTMLElement} span */
  function keepInView(span, frames = SETTLING_FRAMES) {
    if (span !== current || !frames) return;
    span.scrollIntoView({ block: "nearest" });
    requestAnimationFrame(() => keepInView(span, frames - 1));
  }

  box.addEventListener("focusin", ({ target }) => {
    const span = placeOf(target);
    if (!span) return;
    if (span !== current) take(span);
    look(span, false);
  });
  box.addEventListener("focusout", () => hideSoon());
  box.addEventListener("pointerover", ({ target, pointerType }) => {
    const span = placeOf(target);
    clearTimeout(timer);
    if (span && pointerType === "mouse") timer = setTimeout(look, HOVER_MILLISECONDS, span, false);
  });
  box.addEventListener("pointerout", ({ pointerType }) => {
    clearTimeout(timer);
    if (pointerType === "mouse") hideSoon();
  });
  box.addEventListener("click", ({ target }) => {
    const span = placeOf(target);
    if (!span || String(getSelection())) return; // text is being marked
    take(span);
    span.focus({ preventScroll: true });
    look(span, true);
  });
  box.addEventListener("keydown", (event) => {
    const span = placeOf(event.target);
    const at = Number(span?.dataset.at ?? -1);
    if (!span || event.ctrlKey || event.metaKey || event.altKey) return;
    const steps = /** @type {Record<string, number>} */ ({ ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: tokens.length - 1 });
    if (event.key in steps) goTo(steps[event.key]);
    else if (["Enter", " ", "ArrowDown"].includes(event.key)) {
      look(span, true);
      stepInto();
    } else if (event.key === "Escape") closeChoices();
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  return reading;
}

// ---- another version, from a token on

/**
 * Has an answer continued behind another token: what stands before it is kept token by token.
 * @type {(message: ChatMessage, scores: Scores, at: number, choice: Choice) => void}
 */
function branch(message, { tokens, model }, at, choice) {
  hideChoices();
  const kept = [...tokens.slice(0, at), choice];
  const before = message.content.slice(0, message.calls?.at(-1)?.at ?? 0);
  const next = addMessage(shown, "assistant", before + kept.map(addedBy).join(""), { parent: message.parent, slot: slotOf(message) });
  const system = message.made?.system ?? shown.system;
  Object.assign(next, { tokens: packed(kept.map(({ id }) => id)), certain: 1, calls: message.calls, settings: message.settings, made: { ...message.made, model, system } });
  if (!choice.end) return answerHere(next, sameSettings(message));
  next.made = { model, system, begun: kept.length, finish: "stop" };
  saveChat(shown);
  showChat();
}

/** Gives the settings of an answer, for another like it: what is chosen now but was not then counts for nothing. @param {ChatMessage} message */
function sameSettings({ settings }) {
  if (!settings) return {};
  return { ...Object.fromEntries(Object.keys(requestOptions()).map((name) => [name, null])), ...settings };
}
