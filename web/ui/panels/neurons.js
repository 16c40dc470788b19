// Neurons: those of the MLPs that fire most for a token, and the tokens that each of them promotes.

/** @import { Dock } from "../dock.js" */

import { styleSheet } from "../elements.js";
import { emit } from "../events.js";
import { decimal, t } from "../wording.js";
import { drawnAsWide, layersWith, link, textForm, tokensOf, tokenStrip, visibleText, watched } from "./inside.js";
import { draw, fill, labelled, make, numberField, tableOf } from "./room.js";

/** @typedef {{ token: number, text: string, logit: number }} Promoted */
/** @typedef {{ layer: number, neuron: number, activation: number, promotes: Promoted[] }} Neuron */
/** @typedef {{ tokens: number[], texts: string[], neurons: Neuron[] }} Found */

const [USUAL, MOST, PROMOTED] = [12, 50, 10]; // neurons, and tokens of each
const [ROW, NAME, BAR, LETTER] = [26, 74, 90, 6.7]; // heights and widths of what is drawn
const loadStyles = [styleSheet("panels/room.css"), styleSheet("panels/inside.css")];

/** @type {HTMLElement} */
let root;
/** @type {Dock} */
let dock;
/** @type {HTMLFormElement} */
let form;
/** @type {Record<string, HTMLElement>} */
let parts;
/** @type {{ tokens: number[], texts: string[] } | undefined} */
let text;
/** @type {Found | undefined} */
let found;
let chosen = 0; // of the neurons
/** @type {SVGSVGElement | null} */
let drawing = null;

/** @param {HTMLElement} element @param {Record<string, any>} settings @param {Dock} given */
export async function show(element, settings, given) {
  dock = given;
  await Promise.all(loadStyles.map((load) => load()));
  if (root === element && !settings.message) return;
  if (root !== element) drawnAsWide(root = element, () => drawNeurons(chosen));
  build(element, settings);
  if (settings.message) await look();
}

/** @param {HTMLElement} element @param {Record<string, any>} settings */
function build(element, settings) {
  form = textForm(
    dock, settings, look,
    labelled(t`Neurons`, numberField("k", { min: 1, max: MOST, value: settings.k ?? USUAL })),
    labelled(t`Layer`, numberField("layer", { min: 0, value: settings.layer, required: false, placeholder: t`all` })),
  );
  parts = {
    fault: make("p", { class: "error", role: "alert" }),
    tokens: make("div"),
    facts: make("p", { class: "room-facts", "aria-live": "polite" }),
    map: make("div"),
    details: make("div", { class: "room-details" }),
  };
  text = found = undefined;
  drawing = null;
  element.replaceChildren(form, ...Object.values(parts));
}

/** Looks at the last token of the text, whichever that is now. */
async function look() {
  text = await watched(dock, parts.fault, t`Reading the text…`, async () => inpage.glass("tokens", { tokens: await tokensOf(form) }));
  if (!text) return;
  link(dock, form);
  const { strip, mark } = tokenStrip(text.texts, lookAt);
  fill(parts.tokens, make("p", { class: "room-facts" }, t`Choose the token that the neurons fire for:`), strip);
  await lookAt(text.tokens.length - 1);

  /** @param {number} at */
  async function lookAt(at) {
    mark(at);
    const own = text;
    const answer = await neuronsAt(at);
    if (!answer || own !== text) return;
    found = answer;
    drawNeurons(0);
  }
}

/** Asks for the neurons at a position: what comes after it plays no part. @param {number} at @returns {Promise<Found | undefined>} */
async function neuronsAt(at) {
  const given = new FormData(form);
  const layer = given.get("layer");
  return watched(dock, parts.fault, t`Watching the neurons…`, async (watch) => {
    const having = await layersWith("mlp.hook_post");
    if (!having.length) throw new Error(t`The MLPs of this model are experts, of which each token sees only some: their neurons are not watched.`);
    if (layer && !having.includes(Number(layer))) throw new Error(t`Layer ${Number(layer)} has no neurons; these have: ${having.join(", ")}`);
    const fields = { tokens: text?.tokens.slice(0, at + 1), k: Number(given.get("k")), promoted: PROMOTED, layers: layer ? [Number(layer)] : undefined };
    return inpage.glass("neurons", fields, watch);
  });
}

// ---- a row for each neuron: its bar, and what it promotes

/** Draws them with one that is chosen. @param {number} at */
function drawNeurons(at) {
  if (!found) return;
  const { neurons, texts } = found;
  const width = Math.min(Math.max(root.clientWidth, 320), 760);
  const height = ROW * neurons.length + 2;
  const largest = Math.max(...neurons.map(({ activation }) => Math.abs(activation)));
  const rows = neurons.map(({ layer, neuron, activation, promotes }, row) => {
    const y = row * ROW + 1;
    const words = t`Neuron ${String(neuron)} of layer ${layer} fires at ${decimal(activation, 2)} and promotes ${promotes.map((each) => visibleText(each.text, 20)).join(", ")}`;
    const long = (Math.abs(activation) / largest) * (BAR - 44);
    return draw(
      "g", { class: "cell", role: "button", onclick: () => choose(row), onkeydown: (/** @type {KeyboardEvent} */ event) => move(event, row) },
      draw("title", {}, words),
      draw("rect", { x: 1, y: y + 1, width: width - 2, height: ROW - 2, rx: 5, class: "row" }),
      draw("text", { x: 8, y: y + 17, class: "layer" }, `${layer} · ${neuron}`),
      draw("rect", { x: NAME, y: y + 7, width: Math.max(long, 1), height: 12, rx: 2, class: activation < 0 ? "bar-down" : "bar-up" }),
      draw("text", { x: NAME + long + 5, y: y + 17, class: "size" }, decimal(activation, Math.abs(activation) >= 100 ? 0 : 1)),
      ...pills(promotes, NAME + BAR + 6, y + 5, width - 8),
    );
  });
  drawing = draw("svg", { viewBox: `0 0 ${width} ${height}`, class: "inside-drawing inside-neurons", role: "group", "aria-label": t`The neurons that fire most` }, ...rows);
  parts.facts.textContent = t`Layer and number of the neurons that fire most at “${visibleText(texts.at(-1) ?? "", 24)}”, how strongly, and the tokens that each makes likelier. Choose one to see more and to turn it off.`;
  fill(parts.map, drawing);
  choose(at);
}

/** What a neuron promotes, as much of it as there is room for. @type {(promotes: Promoted[], left: number, y: number, right: number) => SVGElement[]} */
function pills(promotes, left, y, right) {
  const most = Math.max(...promotes.map(({ logit }) => logit));
  let x = left;
  return promotes.flatMap(({ text: token, logit }) => {
    const said = visibleText(token, 14);
    const wide = LETTER * [...said].reduce((sum, letter) => sum + (/** @type {number} */ (letter.codePointAt(0)) > 0x2e80 ? 1.8 : 1), 0) + 8;
    if (x + wide > right) {
      x = right; // nor does a shorter one come out of its turn
      return [];
    }
    x += wide + 4;
    return [
      draw("rect", { x: x - wide - 4, y, width: wide, height: 16, rx: 4, class: "pill", "fill-opacity": (0.1 + 0.3 * Math.max(logit / most, 0)).toFixed(2) }),
      draw("text", { x: x - wide, y: y + 12, class: "token" }, said),
    ];
  });
}

/** @param {number} at */
function choose(at) {
  chosen = at;
  const { layer, neuron, activation, promotes } = /** @type {Found} */ (found).neurons[at];
  drawing?.querySelectorAll(".cell").forEach((row, other) => {
    row.setAttribute("aria-pressed", String(other === at));
    row.setAttribute("tabindex", other === at ? "0" : "-1");
  });
  fill(
    parts.details,
    make("h3", {}, t`Neuron ${String(neuron)} of layer ${layer}`),
    make("div", { class: "room-tools" }, make("button", { type: "button", onclick: () => emit("panelwanted", { name: "steering", settings: { part: "neuron", layer, number: neuron } }) }, t`Turn it off in Steering…`)),
    make("p", { class: "room-facts" }, activation < 0 ? t`It fires below zero: these are the tokens that it promotes like that.` : "", " ", t`Logits are for one unit of its activation, before the last norm scales them.`),
    tableOf(t`What the neuron promotes`, [t`Token`, t`Logit`], promotes.map(({ text: token, logit }) => [visibleText(token, 40), decimal(logit, 3)]), [1]),
  );
}

/** @type {(event: KeyboardEvent, at: number) => void} */
function move(event, at) {
  const rows = /** @type {SVGElement[]} */ ([.../** @type {SVGSVGElement} */ (drawing).querySelectorAll(".cell")]);
  const next = { ArrowUp: at - 1, ArrowDown: at + 1, Home: 0, End: rows.length - 1, Enter: at, " ": at }[event.key];
  if (next === undefined) return;
  event.preventDefault();
  if (!rows[next]) return;
  rows[next].focus();
  choose(next);
}

export const picture = () => drawing;

/** Gives a row for each neuron. */
export const data = () => found?.neurons.map((neuron) => ({ ...neuron, at: found?.texts.at(-1) })) ?? null;
