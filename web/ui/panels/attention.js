// Attention: where the heads of a layer look, and what they were measured to do.

/** @import { Dock } from "../dock.js" */
/** @import { GlassArray } from "../../inpage.js" */

import { styleSheet } from "../elements.js";
import { colourAt, fill, inPercent, labelled, make, numberField } from "./room.js";
import { line, t } from "../wording.js";
import { layersWith, legend, link, textForm, tokensOf, visibleText, watched } from "./inside.js";

/** @typedef {{ layer: number, head: number, label: string | null, scores: Record<string, number> }} Head */
/** @typedef {{ layers: number[], tokens: number[], texts: string[], patterns: GlassArray[], heads: Head[] }} Attention */

const SIDE = 108; // of a small map
const MOST = 64; // tokens that are drawn
const loadStyles = [styleSheet("panels/room.css"), styleSheet("panels/inside.css")];

/** @type {HTMLElement} */
let root;
/** @type {Dock} */
let dock;
/** @type {HTMLFormElement} */
let form;
/** @type {Record<string, HTMLElement>} */
let parts;
/** @type {Attention | undefined} */
let found;
let head = 0;
let query = -1; // the token whose attention is shown; none: −1
/** @type {HTMLCanvasElement | null} */
let large = null;

/** @param {HTMLElement} element @param {Record<string, any>} settings @param {Dock} given */
export async function show(element, settings, given) {
  dock = given;
  await Promise.all(loadStyles.map((load) => load()));
  if (root === element && !settings.message) return;
  build(root = element, settings);
  if (settings.message) await look();
}

/** @param {HTMLElement} element @param {Record<string, any>} settings */
function build(element, settings) {
  form = textForm(dock, settings, look, labelled(t`Layer`, numberField("layer", { min: 0, value: settings.layer, required: false, placeholder: "0" })));
  parts = {
    fault: make("p", { class: "error", role: "alert" }),
    cut: make("p", { class: "room-facts", hidden: true }),
    heads: make("div", { class: "inside-heads", role: "listbox", "aria-label": t`Heads` }),
    facts: make("p", { class: "room-facts", "aria-live": "polite" }),
    tokens: make("div", { class: "inside-tokens" }),
    legend: make("div"),
    map: make("div", { class: "inside-map" }),
  };
  found = undefined;
  element.replaceChildren(form, ...Object.values(parts));
}

async function look() {
  const field = /** @type {HTMLInputElement} */ (form.elements.namedItem("layer"));
  let all = 0;
  const answer = await watched(dock, parts.fault, t`Watching the heads…`, async (watch) => {
    const having = await layersWith("attn.hook_pattern");
    field.value ||= String(having[0] ?? 0);
    const layer = Number(field.value);
    if (!having.includes(layer)) throw new Error(having.length ? t`Layer ${layer} has no attention; these have: ${having.join(", ")}` : t`No layer of this model has attention.`);
    const tokens = await tokensOf(form);
    all = tokens.length;
    const positions = tokens.map((_, place) => place).slice(-MOST);
    return inpage.glass("attention", { tokens, positions, layers: [layer] }, watch);
  });
  if (!answer) return;
  found = answer;
  parts.cut.hidden = all <= MOST;
  parts.cut.textContent = t`The last ${MOST} of ${all} tokens are shown: what they read of earlier ones is not.`;
  link(dock, form);
  query = -1;
  choose(0);
}

/** What a label means, in words. @param {string | null} label */
function wordsOf(label) {
  const words = { "previous token": t`previous token`, "first token": t`first token`, "duplicate token": t`same token`, induction: t`induction` };
  return label ? words[/** @type {keyof typeof words} */ (label)] ?? label : "";
}

/** @param {number} next */
function choose(next) {
  if (!found) return;
  head = next;
  const [pattern] = found.patterns;
  fill(parts.heads, ...found.heads.map((each, at) => {
    const map = paint(pattern, at, SIDE);
    const name = line(t`Head ${at}`, wordsOf(each.label));
    return make("button", { type: "button", role: "option", "aria-selected": String(at === head), title: name, onclick: () => choose(at) }, map, make("span", {}, name));
  }));
  const { scores } = found.heads[head];
  parts.facts.textContent = line(...Object.entries(scores).map(([kind, share]) => `${wordsOf(kind)} ${inPercent(share)}`));
  showTokens();
  fill(parts.legend, legend("0 %", "100 %"));
  large = paint(pattern, head, 2 * SIDE);
  fill(parts.map, large);
}

/** Draws a head's pattern: queries downwards, keys to the right. @type {(pattern: GlassArray, at: number, side: number) => HTMLCanvasElement} */
function paint({ shape, data }, at, side) {
  const [, queries, keys] = shape;
  const canvas = make("canvas", { width: keys, height: queries, class: "inside-pattern", role: "img", "aria-label": t`Attention of head ${at}` });
  canvas.style.setProperty("width", `${side}px`);
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  for (let row = 0; row < queries; row++) {
    for (let column = 0; column <= row; column++) {
      context.fillStyle = colourAt(Math.sqrt(data[(at * queries + row) * keys + column]));
      context.fillRect(column, row, 1, 1);
    }
  }
  return canvas;
}

/** The text, each token tinted by how much the chosen one looks at it. */
function showTokens() {
  if (!found) return;
  const [{ shape, data }] = found.patterns;
  const [, queries, keys] = shape;
  const seen = (/** @type {number} */ key) => (query < 0 || key > query ? 0 : data[(head * queries + query) * keys + key]);
  fill(parts.tokens, ...found.texts.map((text, at) => {
    const share = seen(at);
    const token = make("button", {
      type: "button", class: at === query && "chosen", title: query < 0 ? "" : inPercent(share),
      onclick: () => { query = at; showTokens(); }, onpointerenter: () => { if (query !== at) { query = at; tint(); } },
    }, visibleText(text, 24));
    return token;
  }));
  tint();

  function tint() {
    [...parts.tokens.children].forEach((token, at) => {
      const share = seen(at);
      const style = /** @type {HTMLElement} */ (token).style;
      style.setProperty("--share", `${Math.round(60 * Math.sqrt(share))}%`);
      token.classList.toggle("chosen", at === query);
      /** @type {HTMLElement} */ (token).title = query < 0 ? "" : inPercent(share);
    });
  }
}

export const picture = () => large;

/** Gives a row for each head, with what it was measured to do. */
export const data = () => found?.heads.map(({ scores, ...each }) => ({ ...each, ...scores })) ?? null;
