// Scores of messages: how likely each of its tokens was, and what else the model could have written there.

/** @import { ChatRequest, Message } from "../../inpage.js" */
/** @import { Chat, ChatMessage } from "../chats.js" */

import { formatOf, promptOf, unpacked } from "../answers.js";
import { lastPartOf, pathOf, slotOf, wholeOf } from "../chats.js";
import { decimal, t } from "../wording.js";

/**
 * A token that could stand at a position.
 * @typedef {object} Choice
 * @property {number} id
 * @property {string} text
 * @property {string} [adds] what it adds to the answer, where that is not its text
 * @property {boolean} [special] it stands for no text of its own
 * @property {boolean} [end] it ends an answer
 * @property {number} logprob
 * @property {number} drawn the probability that the settings of the answer draw it with
 * @property {string | null} cut the setting that keeps it from being drawn
 */

/** @typedef {Choice & { rank: number, entropy: number, best: Choice[] }} ScoredToken */

/**
 * A scored text.
 * @typedef {object} Scores
 * @property {ScoredToken[]} tokens
 * @property {number} context_tokens those before them
 * @property {boolean} about the text was cut into tokens again
 * @property {number} vocabulary
 * @property {string} model that scored it
 */

/** @typedef {{ signal: AbortSignal, onProgress?: (progress: { done: number, total: number }) => void }} Watch */

/** What a request of the page's has besides messages and settings. */
const ALWAYS = /** @type {const} */ ({ reasoning_format: "none" });

/** Gives the messages before one, as it was asked with them. @type {(chat: Chat, message: ChatMessage) => Message[]} */
export function messagesBefore(chat, message) {
  const path = pathOf(chat);
  const at = path.findIndex((each) => slotOf(each) === slotOf(message)); // another version of it may be shown
  const system = /** @type {string} */ (message.made?.system ?? chat.system);
  const content = message.content.slice(0, message.calls?.at(-1)?.at ?? 0); // what the answer said before its last call
  return promptOf(system, [...path.slice(0, at), ...(message.calls ? [{ ...message, content }] : [])]);
}

/** Gives the other fields of the request that asked for a message. @param {ChatMessage} message @returns {Partial<ChatRequest>} */
export const requestOf = ({ made, settings }) => ({ ...settings, ...ALWAYS, ...formatOf(made?.json), ...(made?.tools ? { tools: JSON.parse(made.tools) } : {}) });

/** Whether the tokens of an answer are known, and are the loaded model's. @param {ChatMessage} message */
export const isExact = ({ tokens, made }) => !!tokens && made?.model === inpage.loaded?.name;

/** @type {WeakMap<ChatMessage, { key: string, scores: Scores }>} */
const known = new WeakMap();

/** Scores a message, unless that was done before. @type {(chat: Chat, message: ChatMessage, watch: Watch) => Promise<Scores>} */
export async function scoresOf(chat, message, watch) {
  const key = JSON.stringify([inpage.loaded?.name, wholeOf(message), message.tokens, messagesBefore(chat, message)]);
  const before = known.get(message);
  if (before?.key === key) return before.scores;
  const scores = await inpage.glass("message_score", fieldsOf(chat, message), watch);
  known.set(message, { key, scores });
  return scores;
}

/** @type {(chat: Chat, message: ChatMessage) => Record<string, unknown>} */
function fieldsOf(chat, message) {
  const before = messagesBefore(chat, message);
  const { role, tokens = "" } = message;
  if (role === "user") return { messages: [...before, { role, content: wholeOf(message) }], message: before.length, request: ALWAYS };
  const asked = { messages: before, request: requestOf(message) };
  return isExact(message) ? { ...asked, ids: unpacked(tokens) } : { ...asked, text: lastPartOf(message) };
}

// ---- words and numbers

/** @param {Pick<Choice, "logprob">} choice */
export const probabilityOf = ({ logprob }) => Math.exp(logprob);

/** The surprise of a token in bits. @param {Pick<Choice, "logprob">} choice */
export const surpriseOf = ({ logprob }) => Math.max(0, -logprob / Math.LN2);

/** @param {number} share */
export function percent(share) {
  if (share < 0.0001) return `< ${decimal(0.01, 2)} %`;
  return `${decimal(share * 100, share >= 0.1 ? 0 : share >= 0.01 ? 1 : 2)} %`;
}

const [PICTURES, DELETE] = [0x2400, "␡"]; // of control characters

/** Writes control characters so that they can be seen, except those that part lines and columns. @param {string} text */
const withPictures = (text) => text.replace(/\p{Cc}/gu, (sign) => {
  if ("\n\t".includes(sign)) return sign;
  return sign < " " ? String.fromCharCode(PICTURES + sign.charCodeAt(0)) : DELETE;
});

/** Writes a token as it stands in its text; its name, where it adds nothing to it. @param {Pick<Choice, "text" | "adds">} choice */
export const writtenAs = (choice) => withPictures(addedBy(choice) || choice.text);

/** Writes a token so that its spaces can be seen. @param {Pick<Choice, "text">} choice */
export const visible = ({ text }) => withPictures(text).replaceAll(" ", "␣").replaceAll("\n", "↵").replaceAll("\t", "⇥");

/** What a token adds to a text. @param {Pick<Choice, "text" | "adds">} choice */
export const addedBy = ({ text, adds = text }) => adds;

// ---- a sparkline of surprise: −log p of each token along a text; it leads to the token

const [WIDTH, HEIGHT] = [600, 40]; // of the picture, in its own units
const [LEAST_BITS, MOST_BITS] = [6, 16]; // at its top: what is rarer still ends there
const SVG = "http://www.w3.org/2000/svg";

/**
 * Draws the surprise along a text. Gives what marks the token that is looked at.
 * @type {(element: HTMLElement, tokens: ScoredToken[], goTo: (at: number) => void) => { mark: (at: number) => void }}
 */
export function sparkline(element, tokens, goTo) {
  const count = tokens.length;
  const bits = tokens.map(surpriseOf);
  const top = Math.min(MOST_BITS, bits.reduce((most, each) => Math.max(most, each), LEAST_BITS));
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("aria-hidden", "true");
  const columns = Math.min(count, WIDTH);
  const heights = Array.from({ length: columns }, (_, column) => Math.min(top, bits[mostIn(column)]) / top * (HEIGHT - 2));
  const step = WIDTH / columns;
  const area = heights.map((height, at) => `L${(at * step).toFixed(1)} ${(HEIGHT - height).toFixed(1)}h${step.toFixed(2)}`).join("");
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", `M0 ${HEIGHT}${area}L${WIDTH} ${HEIGHT}z`);
  const line = document.createElementNS(SVG, "rect");
  line.setAttribute("class", "here");
  line.setAttribute("height", String(HEIGHT));
  svg.append(path, line);
  element.replaceChildren(svg);
  element.ariaValueMax = String(count);
  mark(0);
  delete element.dataset.marked;

  /** The most surprising token of a column. @param {number} column */
  function mostIn(column) {
    const [from, to] = [column, column + 1].map((each) => Math.floor(each * count / columns));
    let most = from;
    for (let at = from; at < to; at++) if (bits[at] > bits[most]) most = at;
    return most;
  }

  /** @param {number} at */
  function mark(at) {
    const width = Math.max(WIDTH / count, 2);
    line.setAttribute("x", String(Math.min(at / count * WIDTH, WIDTH - width)));
    line.setAttribute("width", String(width));
    element.dataset.marked = "";
    element.ariaValueNow = String(at + 1);
    element.ariaValueText = t`${visible(tokens[at])}: ${decimal(bits[at], 1)} bits`;
  }

  element.onclick = ({ clientX }) => {
    const { left, width } = element.getBoundingClientRect();
    const column = Math.floor((clientX - left) / width * columns);
    goTo(mostIn(Math.max(0, Math.min(columns - 1, column))));
  };
  element.onkeydown = (event) => {
    const at = Number(element.ariaValueNow) - 1;
    const steps = /** @type {Record<string, number>} */ ({ ArrowLeft: at - 1, ArrowDown: at - 1, ArrowRight: at + 1, ArrowUp: at + 1, Home: 0, End: count - 1, PageUp: at + 10, PageDown: at - 10 });
    if (event.key === "Enter") goTo(at);
    else if (event.key in steps) mark(Math.max(0, Math.min(count - 1, steps[event.key])));
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return { mark };
}
