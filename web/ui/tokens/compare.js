// Two versions of an answer side by side, token by token.

/** @import { ChatMessage } from "../chats.js" */
/** @import { Choice } from "./scores.js" */

import { unpacked } from "../answers.js";
import { lastPartOf, shown, versionsOf } from "../chats.js";
import { page } from "../elements.js";
import { line, t } from "../wording.js";
import { addedBy, isExact, writtenAs } from "./scores.js";

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
  const { tokens = "" } = message;
  const content = lastPartOf(message);
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

// ---- what two lists of tokens have in common, and where they differ: Myers's algorithm

/** @typedef {{ same: boolean, left: [from: number, to: number], right: [from: number, to: number] }} Hunk */

const MOST = 500; // tokens that differ: beyond, the rest counts as different

/**
 * Finds the hunks of two lists, in order: what both have, and what only one has.
 * @template Value
 * @param {Value[]} left
 * @param {Value[]} right
 */
function differences(left, right) {
  let start = 0;
  let ends = 0;
  while (start < left.length && start < right.length && left[start] === right[start]) start++;
  while (ends < left.length - start && ends < right.length - start && left.at(-1 - ends) === right.at(-1 - ends)) ends++;
  const [a, b] = [left, right].map((each) => each.slice(start, each.length - ends));
  /** @type {Hunk[]} */
  const hunks = [];
  const add = (/** @type {boolean} */ same, /** @type {number} */ across, /** @type {number} */ down) => {
    if (!across && !down) return;
    const last = hunks.at(-1);
    const [x, y] = [last?.left[1] ?? 0, last?.right[1] ?? 0];
    if (last?.same === same) [last.left[1], last.right[1]] = [x + across, y + down];
    else hunks.push({ same, left: [x, x + across], right: [y, y + down] });
  };
  add(true, start, start);
  for (const [same, across, down] of steps(a, b)) add(same, across, down);
  add(true, ends, ends);
  return hunks;
}

/**
 * Gives the shortest way from one list to the other: steps along both, or along one of them.
 * @template Value
 * @param {Value[]} a
 * @param {Value[]} b
 * @returns {[same: boolean, across: number, down: number][]}
 */
function steps(a, b) {
  const far = new Map([[1, 0]]); // diagonal → how far along `a`
  /** @type {Map<number, number>[]} */
  const trace = [];
  for (let depth = 0; depth <= Math.min(MOST, a.length + b.length); depth++) {
    trace.push(new Map(far));
    for (let diagonal = -depth; diagonal <= depth; diagonal += 2) {
      let x = isDown(far, diagonal, depth) ? far.get(diagonal + 1) ?? 0 : (far.get(diagonal - 1) ?? 0) + 1;
      while (x < a.length && x - diagonal < b.length && a[x] === b[x - diagonal]) x++;
      far.set(diagonal, x);
      if (x >= a.length && x - diagonal >= b.length) return back(trace, a.length, b.length);
    }
  }
  return [[false, a.length, b.length]];
}

/** @type {(far: Map<number, number>, diagonal: number, depth: number) => boolean} */
const isDown = (far, diagonal, depth) => diagonal === -depth
  || (diagonal !== depth && (far.get(diagonal - 1) ?? -1) < (far.get(diagonal + 1) ?? -1));

/** @type {(trace: Map<number, number>[], x: number, y: number) => [same: boolean, across: number, down: number][]} */
function back(trace, x, y) {
  /** @type {[boolean, number, number][]} */
  const found = [];
  for (let depth = trace.length - 1; depth >= 0 && (x > 0 || y > 0); depth--) {
    const down = isDown(trace[depth], x - y, depth);
    const before = x - y + (down ? 1 : -1);
    const fromX = depth ? trace[depth].get(before) ?? 0 : 0;
    const fromY = depth ? fromX - before : 0;
    const along = depth ? Math.min(x - fromX - (down ? 0 : 1), y - fromY - (down ? 1 : 0)) : x;
    if (along) found.push([true, along, along]);
    if (depth) found.push([false, down ? 0 : 1, down ? 1 : 0]);
    [x, y] = [fromX, fromY];
  }
  return found.reverse();
}
