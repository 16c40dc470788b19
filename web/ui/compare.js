// Two versions of an answer side by side, token by token.

/** @import { ChatMessage } from "./chats.js" */
/** @import { Choice } from "./token_scores.js" */
/** @import { Hunk } from "./token_diff.js" */

import { unpacked } from "./answers.js";
import { shown } from "./chats.js";
import { page } from "./elements.js";
import { versionsOf } from "./message_tree.js";
import { differences } from "./token_diff.js";
import { addedBy, isExact, writtenAs } from "./token_scores.js";
import { line, t } from "./wording.js";

const LONG = 12; // tokens that both have: a row of their own
const MAX_NAME = 40; // characters

const { compare, compareFacts, compareLeft, compareRight, compareText } = page;

/** @type {ChatMessage[]} */
let versions = [];

/** Compares an answer with the version before it, or the one after the first. @param {ChatMessage} message */
export function open(message) {
  versions = versionsOf(shown, message);
  const at = versions.indexOf(message);
  const [left, right] = at ? [at - 1, at] : [0, 1];
  for (const [select, chosen] of /** @type {const} */ ([[compareLeft, left], [compareRight, right]])) {
    select.replaceChildren(...versions.map((each, number) => new Option(nameOf(each, number), String(number), false, number === chosen)));
  }
  if (!compare.open) compare.showModal();
  show();
}

/** @type {(message: ChatMessage, number: number) => string} */
function nameOf({ content, made }, number) {
  const words = content.trim().replace(/\s+/g, " ").slice(0, MAX_NAME);
  const others = versions.some((each) => each.made?.model !== made?.model);
  return line(`${number + 1}`, others && made?.model, `${words}…`);
}

compareLeft.onchange = compareRight.onchange = show;

let turn = 0;

async function show() {
  const mine = ++turn;
  const [left, right] = await Promise.all([compareLeft, compareRight].map(({ value }) => tokensOf(versions[Number(value)])));
  if (mine !== turn) return;
  const hunks = differences(left.map(({ id }) => id), right.map(({ id }) => id));
  const first = hunks.findIndex(({ same }) => !same);
  const alike = hunks.reduce((count, { same, left: [from, to] }) => count + (same ? to - from : 0), 0);
  const before = first > 0 ? hunks[0].left[1] : 0;
  compareFacts.textContent = first < 0 ? t`Both versions are the same.` : line(
    before ? t`${before} token at the beginning is the same|${before} tokens at the beginning are the same` : t`The first token differs`,
    t`${alike} of ${left.length} and ${right.length} tokens in common`,
  );
  compareText.replaceChildren(...rowsOf(hunks, first, left, right));
  compareText.querySelector(".first")?.scrollIntoView({ block: "center" });
}

/** @typedef {Pick<Choice, "text" | "adds" | "special"> & { id: number | string }} Part a token, or a word */

/** Gives a version's tokens; its words, where no model is there to tell tokens. @type {(message: ChatMessage) => Promise<Part[]>} */
async function tokensOf(message) {
  const { content, tokens = "" } = message;
  try {
    const { tokens: found } = await inpage.glass("message_tokens", isExact(message) ? { ids: unpacked(tokens) } : { text: content });
    return found;
  } catch {
    return content.split(/\b(?=\s)/).map((text) => ({ id: text, text }));
  }
}

/** @type {(hunks: Hunk[], first: number, left: Part[], right: Part[]) => HTMLElement[]} */
function rowsOf(hunks, first, left, right) {
  /** @type {HTMLElement[]} */
  const cells = [];
  let isOpen = false; // the last row takes more
  for (const [at, { same, left: [a, b], right: [c, d] }] of hunks.entries()) {
    const isLong = same && b - a >= LONG;
    if (!isOpen || isLong) cells.push(cell(), cell());
    isOpen = !isLong;
    const [mine, others] = cells.slice(-2);
    mine.append(part(left.slice(a, b), same, at === first));
    others.append(part(right.slice(c, d), same, at === first));
  }
  return cells;
}

const cell = () => Object.assign(document.createElement("div"), { className: "cell", dir: "auto" });

/** @type {(tokens: Part[], same: boolean, isFirst: boolean) => HTMLElement} */
function part(tokens, same, isFirst) {
  const span = document.createElement(same ? "span" : "mark");
  span.classList.toggle("first", isFirst);
  if (isFirst) span.title = t`The first difference`;
  span.append(...tokens.map((token) => {
    const each = document.createElement("span");
    each.className = token.special && !addedBy(token) ? "tok chip" : "tok";
    each.textContent = writtenAs(token);
    return each;
  }));
  if (!tokens.length) span.append(Object.assign(document.createElement("span"), { className: "nothing", textContent: "∅" }));
  return span;
}
