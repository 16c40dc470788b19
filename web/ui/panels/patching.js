// Patching: an activation is moved from one prompt's run into another's, to see where the answer is decided.

/** @import { Dock } from "../dock.js" */
/** @import { GlassArray } from "../../inpage.js" */

import { styleSheet } from "../elements.js";
import { decimal, line, t } from "../wording.js";
import { heatMap } from "./charts.js";
import { legend, link, linkChoice, linkedForm, rowOf, visibleText, watched } from "./inside.js";
import { fill, inPercent, labelled, make } from "./room.js";

/** @typedef {{ tokens: number[], texts: string[] }} Tokens */

/**
 * An answer of the view "patch", of one site.
 * @typedef {object} Patch
 * @property {Tokens} clean
 * @property {Tokens} corrupted
 * @property {Tokens} answers
 * @property {number[]} positions
 * @property {{ clean: number, corrupted: number }} difference of the logits of the two answers
 * @property {Record<string, GlassArray>} effects
 * @property {Record<string, GlassArray>} differences
 */

const EXAMPLE = { clean: "The capital of France is", corrupted: "The capital of Italy is" };
const loadStyles = [styleSheet("panels/room.css"), styleSheet("panels/inside.css")];

/** @type {HTMLElement} */
let root;
/** @type {Dock} */
let dock;
/** @type {HTMLFormElement} */
let form;
/** @type {Record<string, HTMLElement>} */
let parts;
/** @type {Patch | undefined} */
let found;
let site = "";
/** @type {SVGSVGElement | null} */
let drawing = null;

/** @param {HTMLElement} element @param {Record<string, any>} settings @param {Dock} given */
export async function show(element, settings, given) {
  dock = given;
  await Promise.all(loadStyles.map((load) => load()));
  if (root !== element) build(root = element, settings);
}

/** @param {HTMLElement} element @param {Record<string, any>} settings */
function build(element, settings) {
  const prompt = (/** @type {"clean" | "corrupted"} */ name) => make("input", { type: "text", name, required: true, dir: "auto", value: settings[name] ?? EXAMPLE[name] });
  const answer = (/** @type {string} */ name) => make("input", { type: "text", name, dir: "auto", value: settings[name], placeholder: t`the likeliest` });
  const option = (/** @type {string} */ value, /** @type {string} */ words) => make("option", { value, selected: settings.site === value }, words);
  form = linkedForm(
    dock, look,
    make("div", { class: "inside-pair", role: "group", "aria-label": t`First prompt` }, labelled(t`From this prompt`, prompt("clean")), labelled(t`Its answer`, answer("answer"))),
    make("div", { class: "inside-pair", role: "group", "aria-label": t`Second prompt` }, labelled(t`Into this prompt`, prompt("corrupted")), labelled(t`Its answer`, answer("other"))),
    make("div", { class: "room-form" },
      labelled(t`What is moved`, make("select", { name: "site" }, option("resid_pre", t`The residual stream`), option("attn_out", t`What attention adds`), option("mlp_out", t`What the MLP adds`))),
      make("button", { class: "primary" }, t`Move`)),
    linkChoice(settings.clean !== undefined),
  );
  parts = {
    fault: make("p", { class: "error", role: "alert" }),
    prompts: make("div"),
    facts: make("p", { class: "room-facts" }),
    legend: make("div"),
    map: make("div", { class: "inside-map" }),
    cell: make("p", { class: "room-facts", "aria-live": "polite" }),
  };
  element.replaceChildren(form, ...Object.values(parts));
}

async function look() {
  const given = Object.fromEntries([...new FormData(form)].map(([name, value]) => [name, String(value)]));
  link(dock, form);
  clear();
  const answer = await watched(dock, parts.fault, t`Moving activations…`, async (watch) => {
    const [clean, corrupted] = await Promise.all([given.clean, given.corrupted].map((text) => inpage.glass("tokens", { text })));
    const since = firstDifference(clean, corrupted);
    const answers = [await answerTo(clean, given.clean, given.answer), await answerTo(corrupted, given.corrupted, given.other)];
    const { texts } = await inpage.glass("tokens", { tokens: answers });
    if (answers[0] === answers[1]) throw new Error(t`After both prompts comes “${visibleText(texts[0], 24)}”: name two answers that differ in their first token.`);
    const positions = clean.tokens.slice(since).map((/** @type {number} */ _, /** @type {number} */ at) => since + at);
    return inpage.glass("patch", { clean: clean.tokens, corrupted: corrupted.tokens, answers, sites: [given.site], positions }, watch);
  });
  if (!answer) return;
  found = answer;
  site = given.site;
  drawMap();
}

function clear() {
  found = undefined;
  drawing = null;
  parts.facts.textContent = parts.cell.textContent = "";
  for (const part of [parts.prompts, parts.legend, parts.map]) fill(part);
}

/** Where two prompts begin to differ; they must be as long as each other. @param {Tokens} clean @param {Tokens} corrupted */
function firstDifference(clean, corrupted) {
  if (clean.tokens.length !== corrupted.tokens.length) {
    const strip = (/** @type {Tokens} */ own, /** @type {Tokens} */ other) => make(
      "div", {}, make("p", { class: "room-facts" }, t`${own.tokens.length} token|${own.tokens.length} tokens`),
      make("p", { class: "inside-tokens" }, ...own.texts.map((text, at) => make("span", { class: own.tokens[at] !== other.tokens[at] && "differs" }, visibleText(text, 24)))),
    );
    fill(parts.prompts, strip(clean, corrupted), strip(corrupted, clean));
    throw new Error(t`The first prompt is ${clean.tokens.length} tokens long, the second ${corrupted.tokens.length}. An activation is moved to the same place of the other prompt, so both need equally many: below is how the model reads them. Swap a word for one that takes as many tokens.`);
  }
  const since = clean.tokens.findIndex((token, at) => token !== corrupted.tokens[at]);
  if (since < 0) throw new Error(t`The two prompts are the same: change a word of one.`);
  return since;
}

/**
 * The first token of an answer as it goes on from the prompt, with a space before it where one belongs; or what the model would write.
 * @param {Tokens} prompt
 * @param {string} text of the prompt
 * @param {string} answer
 * @returns {Promise<number>}
 */
async function answerTo(prompt, text, answer) {
  const since = prompt.tokens.length;
  if (!answer.trim()) {
    const { next } = await inpage.glass("score", { tokens: prompt.tokens, k: 1, since: since - 1 });
    return next.best[0].token;
  }
  const between = /\s$/.test(text) || /^\s/.test(answer) ? [""] : [" ", ""];
  const ways = await Promise.all(between.map((space) => inpage.glass("tokens", { text: text + space + answer })));
  const own = ways.map(({ tokens }) => tokens.slice(since)).filter((tokens) => tokens.length);
  return (own.find((tokens) => tokens.length === 1) ?? own[0])[0];
}

/** A lead of one answer over the other, in logits. @param {number} value */
const inLogits = (value) => `${value < 0 ? "−" : "+"}${decimal(Math.abs(value), 2)}`;

function drawMap() {
  const { clean, corrupted, answers, positions, difference, effects, differences } = /** @type {Patch} */ (found);
  const layers = effects[site].shape[0];
  const since = positions[0];
  const [first, second] = answers.texts.map((text) => visibleText(text, 24));
  parts.facts.textContent = t`The lead of “${first}” over “${second}” is ${inLogits(difference.clean)} after the first prompt and ${inLogits(difference.corrupted)} after the second.`;
  const hint = t`Each cell is a run of the second prompt with one activation of the first. The brighter it is, the more of the first prompt's answer comes back.`;
  drawing = heatMap({
    label: t`How much of the answer comes back, at ${layers} layers and ${clean.tokens.length} positions`,
    rows: Array.from({ length: layers }, (_, layer) => String(layer)),
    heads: [
      clean.texts.map((text, at) => ({ text: visibleText(text, 8), isMarked: clean.tokens[at] !== corrupted.tokens[at] })),
      corrupted.texts.map((text, at) => ({ text: clean.tokens[at] === corrupted.tokens[at] ? "" : visibleText(text, 8) })),
    ],
    cell(row, column) {
      const share = Math.round(1000 * shareAt(row, column)) / 1000 + 0; // nothing is "−0 %"
      const lead = column < since ? difference.corrupted : rowOf(differences[site], row)[column - since];
      const place = clean.tokens[column] === corrupted.tokens[column] ? visibleText(clean.texts[column], 24) : `${visibleText(clean.texts[column], 24)} → ${visibleText(corrupted.texts[column], 24)}`;
      const known = Number.isFinite(share) ? t`${inPercent(share)} of the answer comes back` : t`nothing to move here`;
      return { share, text: Number.isFinite(share) ? decimal(Math.round(100 * share) + 0) : "", words: line(t`Layer ${row}`, place, known, Number.isFinite(lead) && t`lead ${inLogits(lead)}`) };
    },
    at: [layers - 1, clean.tokens.length - 1],
    tell: (words) => { parts.cell.textContent = words; },
  });
  fill(parts.legend, legend(t`0 %: as the second prompt`, t`100 %: as the first`));
  fill(parts.map, drawing);
  parts.cell.textContent = since ? line(hint, t`Before the first difference there is nothing to move: both runs are the same.`) : hint;

  /** @type {(row: number, column: number) => number} */
  function shareAt(row, column) {
    const share = rowOf(effects[site], row);
    if (column < since) return Number.isFinite(share[0]) ? 0 : NaN;
    return share[column - since];
  }
}

export const picture = () => drawing;

/** Gives a row for each layer and position where something was moved. */
export function data() {
  if (!found) return null;
  const { clean, corrupted, positions, effects, differences } = found;
  return Array.from({ length: effects[site].shape[0] }, (_, layer) => positions.map((position, column) => ({
    site, layer, position, clean: clean.texts[position], corrupted: corrupted.texts[position],
    effect: rowOf(effects[site], layer)[column], difference: rowOf(differences[site], layer)[column],
  }))).flat();
}
