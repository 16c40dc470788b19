// What the panels that look into a model share: the text they look at, what their links carry, and how tokens are shown.

/** @import { Dock } from "../dock.js" */
/** @import { Chat, ChatMessage } from "../chats.js" */

import { unpacked } from "../answers.js";
import { lastPartOf, pathOf, shown } from "../chats.js";
import { colourAt, draw, labelled, make } from "./room.js";
import { isExact, messagesBefore, requestOf } from "../tokens/scores.js";
import { faultOf, t } from "../wording.js";

const EXAMPLE = "The Eiffel Tower is in the city of";
const LINKED = "linked"; // the box's name

/** The last answer of the open chat, or the one with this id. @type {(chat: Chat, id?: string) => ChatMessage | undefined} */
const answerOf = (chat, id) => pathOf(chat).findLast((message) => message.role === "assistant" && message.content && (!id || message.id === id));

/**
 * A form that says what to look at: an answer with its question, or a text of one's own.
 * @param {Dock} dock
 * @param {Record<string, any>} settings
 * @param {() => unknown} onSubmit
 * @param {(Node | false | null)[]} fields the panel's own
 */
export function textForm(dock, settings, onSubmit, ...fields) {
  const hasAnswer = !!answerOf(shown, settings.message);
  const source = make(
    "select", { name: "source", onchange: showText },
    make("option", { value: "answer", disabled: !hasAnswer, selected: hasAnswer && settings.text === undefined }, settings.message ? t`This answer` : t`The last answer`),
    make("option", { value: "text", selected: !hasAnswer || settings.text !== undefined }, t`My own text`),
  );
  const text = make("textarea", { name: "text", rows: 2, "aria-label": t`Text` });
  text.value = settings.text ?? EXAMPLE;
  const isLinked = linkChoice(settings.text !== undefined);
  const form = linkedForm(
    dock, onSubmit,
    make("div", { class: "room-form" }, labelled(t`Text from`, source), ...fields, make("button", { class: "primary" }, t`Inspect`)), text, isLinked,
  );
  if (settings.message) form.dataset.message = settings.message;
  showText();
  return form;

  function showText() {
    text.disabled = text.hidden = isLinked.hidden = source.value !== "text";
  }
}

/** A box to be ticked by who wants the link to carry the texts. @param {boolean} isChosen */
export const linkChoice = (isChosen) => make("label", { class: "inside-choice" }, make("input", { type: "checkbox", name: LINKED, checked: isChosen }), t`Include my text in the link`);

/** A form that the panel's link follows; it is not sent twice at a time. @type {(dock: Dock, onSubmit: () => unknown, ...children: Node[]) => HTMLFormElement} */
export function linkedForm(dock, onSubmit, ...children) {
  let isBusy = false;
  const form = make("form", { class: "inside-form", onchange: () => link(dock, form), onsubmit }, ...children);
  return form;

  /** @param {Event} event */
  async function onsubmit(event) {
    event.preventDefault();
    if (isBusy) return;
    isBusy = true;
    await onSubmit();
    isBusy = false;
  }
}

/** Has the panel's link carry the fields of its form; texts only where that is chosen. @type {(dock: Dock, form: HTMLFormElement) => void} */
export function link(dock, form) {
  const given = new FormData(form);
  const isLinked = given.has(LINKED);
  const isText = (/** @type {string} */ name) => /** @type {HTMLElement} */ (form.elements.namedItem(name)).matches("textarea, [type=text]");
  const carried = [...given].filter(([name, value]) => value !== "" && ![LINKED, "source"].includes(name) && (isLinked || !isText(name)));
  dock.link(Object.fromEntries(carried));
}

/** The layers that have a hook with this end. @type {(end: string) => Promise<number[]>} */
export const layersWith = async (end) => Object.keys(await inpage.glass("hooks")).filter((name) => name.endsWith(`.${end}`)).map((name) => Number(name.split(".")[1]));

/** The tokens that a form asks for: exactly those of the answer, where they are known. @param {HTMLFormElement} form @returns {Promise<number[]>} */
export async function tokensOf(form) {
  const given = new FormData(form);
  const answer = given.get("source") === "answer" ? answerOf(shown, form.dataset.message) : undefined;
  if (!answer) return (await inpage.glass("tokens", { text: String(given.get("text")) })).tokens;
  const ids = (/** @type {{ id: number }[]} */ tokens) => tokens.map(({ id }) => id);
  const prompt = await inpage.glass("message_prompt", { messages: messagesBefore(shown, answer), request: requestOf(answer) });
  const own = isExact(answer) ? unpacked(answer.tokens ?? "") : ids((await inpage.glass("message_tokens", { text: lastPartOf(answer) })).tokens);
  return [...ids(prompt.tokens), ...own];
}

/**
 * Does a panel's work with a line of progress and a way to stop; faults are told in the element.
 * @template Value
 * @param {Dock} dock
 * @param {HTMLElement} fault
 * @param {string} words
 * @param {(watch: { signal: AbortSignal, onProgress: (progress: { done: number, total: number }) => void }) => Promise<Value>} work
 */
export async function watched(dock, fault, words, work) {
  const abort = new AbortController();
  const stop = () => abort.abort();
  fault.textContent = "";
  dock.progress(words, null, stop);
  try {
    return await work({ signal: abort.signal, onProgress: ({ done, total }) => dock.progress(words, done / total, stop) });
  } catch (error) {
    if (!abort.signal.aborted) fault.textContent = faultOf(error);
    return undefined;
  } finally {
    dock.progress();
  }
}

/** Writes a token so that its spaces can be seen, in so many letters at most; one that stands for no letter is "∅". @type {(text: string, most?: number) => string} */
export function visibleText(text, most = 12) {
  const whole = text.replaceAll(" ", "␣").replaceAll("\n", "↵").replaceAll("\t", "⇥");
  return whole.length > most ? `${whole.slice(0, most - 1)}…` : whole || "∅";
}

/**
 * The tokens of a text, of which one can be chosen: by a click, or with the arrow keys.
 * @param {string[]} texts
 * @param {(at: number) => void} choose
 */
export function tokenStrip(texts, choose) {
  const tokens = texts.map((text, at) => make("button", { type: "button", role: "option", onclick: () => choose(at) }, visibleText(text, 24)));
  mark(-1);
  const strip = make("div", { class: "inside-tokens inside-strip", role: "listbox", "aria-label": t`Tokens`, "aria-orientation": "horizontal", onkeydown: move }, ...tokens);
  return { strip, mark };

  /** Shows which one is chosen; −1: none. @param {number} at */
  function mark(at) {
    tokens.forEach((token, other) => {
      token.classList.toggle("chosen", other === at);
      token.ariaSelected = String(other === at);
      token.tabIndex = other === Math.max(at, 0) ? 0 : -1;
    });
  }

  /** @param {KeyboardEvent} event */
  function move(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }[event.key];
    if (!step) return;
    event.preventDefault();
    const at = tokens.findIndex((token) => token === document.activeElement) + step;
    tokens[Math.min(Math.max(at, 0), tokens.length - 1)].focus();
  }
}

/** A legend from 0 to 1 for `colourAt`. @type {(low: string, high: string) => HTMLElement} */
export function legend(low, high) {
  const steps = Array.from({ length: 24 }, (_, at) => draw("rect", { x: at * 5, y: 0, width: 5.2, height: 10, fill: colourAt(at / 23) }));
  return make("p", { class: "inside-legend" }, low, draw("svg", { viewBox: "0 0 120 10", width: 120, height: 10, "aria-hidden": "true" }, ...steps), high);
}

/** Draws again what is as wide as the panel whenever that changes. @type {(element: HTMLElement, drawAgain: () => void) => void} */
export function drawnAsWide(element, drawAgain) {
  let width = element.clientWidth;
  new ResizeObserver(() => {
    if (!element.clientWidth || element.clientWidth === width) return;
    width = element.clientWidth;
    drawAgain();
  }).observe(element);
}

/** Numbers of a row in an array of two dims. @type {(array: import("../../inpage.js").GlassArray, row: number) => Float32Array | Int32Array | Uint8Array} */
export const rowOf = ({ shape, data }, row) => data.subarray(row * shape[1], (row + 1) * shape[1]);
