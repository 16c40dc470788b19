// The logit lens: what each layer would say if it were the last, and how the next token wins.

/** @import { Dock } from "../dock.js" */
/** @import { GlassArray } from "../../inpage.js" */

import { styleSheet } from "../elements.js";
import { line, t } from "../wording.js";
import { heatMap, layerChart } from "./charts.js";
import { legend, link, rowOf, textForm, tokensOf, visibleText, watched } from "./inside.js";
import { colourOf, fill, inPercent, labelled, make, numberField } from "./room.js";

/**
 * An answer of the view "lens".
 * @typedef {object} Lens
 * @property {string[]} layers
 * @property {number[]} tokens
 * @property {string[]} texts
 * @property {number[]} positions
 * @property {string[][]} top_texts
 * @property {GlassArray} prob
 * @property {GlassArray} entropy
 * @property {number} token
 * @property {string} token_text
 * @property {GlassArray} token_prob
 * @property {GlassArray} token_rank
 * @property {number} at
 * @property {string[]} race_texts
 * @property {GlassArray} race_prob
 */

const MOST = 16; // positions at once
const LAP = 280; // milliseconds a layer, in the race
const loadStyles = [styleSheet("panels/room.css"), styleSheet("panels/inside.css")];

/** @type {HTMLElement} */
let root;
/** @type {Dock} */
let dock;
/** @type {HTMLFormElement} */
let form;
/** @type {Record<string, HTMLElement>} */
let parts;
/** @type {Lens | undefined} */
let found;
/** @type {SVGSVGElement | null} */
let drawing = null;
let timer = 0;

/** @param {HTMLElement} element @param {Record<string, any>} settings @param {Dock} given */
export async function show(element, settings, given) {
  dock = given;
  await Promise.all(loadStyles.map((load) => load()));
  const isNew = root !== element || !!settings.message;
  if (isNew) build(root = element, settings);
  if (isNew && settings.message) await look();
}

/** @param {HTMLElement} element @param {Record<string, any>} settings */
function build(element, settings) {
  form = textForm(
    dock, settings, () => look(),
    labelled(t`Last positions`, numberField("count", { min: 1, max: 64, value: settings.count ?? MOST })),
  );
  parts = {
    fault: make("p", { class: "error", role: "alert" }),
    legend: make("div"),
    map: make("div", { class: "inside-map" }),
    cell: make("p", { class: "room-facts", "aria-live": "polite" }),
    race: make("div"),
  };
  found = undefined;
  element.replaceChildren(form, ...Object.values(parts));
}

/** @param {{ token?: number, at?: number }} [chosen] @param {[number, number]} [cell] that was chosen */
async function look(chosen = {}, cell = undefined) {
  const count = Number(new FormData(form).get("count"));
  const answer = await watched(dock, parts.fault, t`Asking every layer…`, async (watch) => {
    const tokens = await tokensOf(form);
    const positions = tokens.map((_, at) => at).slice(-count);
    return inpage.glass("lens", { tokens, positions, ...chosen }, watch);
  });
  if (!answer) return;
  found = answer;
  link(dock, form);
  drawMap(cell);
  showRace();
}

// ---- the map: layers × positions

/** @type {(row: number) => string} */
const nameOf = (row) => (row ? t`Layer ${row - 1}` : t`Embedding`);

/** Draws it, with the arrow keys at this cell. @param {[number, number]} [cell] */
function drawMap(cell) {
  if (!found) return;
  const { layers, positions, texts, top_texts: tops, prob, at } = found;
  drawing = heatMap({
    label: t`The likeliest token of ${layers.length - 1} layers at ${positions.length} positions`,
    rows: layers.map((_, row) => (row ? String(row - 1) : "emb")),
    heads: [positions.map((place) => ({ text: visibleText(texts[place], 8), isMarked: place === at }))],
    cell(row, column) {
      const share = rowOf(prob, row)[column];
      const said = tops[row][column];
      const words = line(nameOf(row), t`after ${visibleText(texts[positions[column]], 20)}`, `${visibleText(said, 30)} ${inPercent(share)}`);
      return { share, text: visibleText(said, 8), words };
    },
    at: cell ?? [layers.length - 1, positions.indexOf(at)],
    tell: (words) => { parts.cell.textContent = words; },
    choose: (row, column) => look({ at: positions[column] }, [row, column]),
  });
  fill(parts.legend, legend(t`unsure`, t`sure`));
  fill(parts.map, drawing);
  parts.map.scrollLeft = parts.map.scrollWidth;
  if (cell) drawing.focus();
  parts.cell.textContent = t`Each cell is the token that a layer would write next, were it the last one. Click a cell to follow its token.`;
}

// ---- the race of the likeliest tokens through the layers

function showRace() {
  if (!found) return;
  clearTimeout(timer);
  const { race_texts: runners, race_prob: shares, texts, at } = found;
  const layers = shares.shape[0];
  const bars = runners.map((runner, lane) => {
    const bar = make("span", { class: "bar" });
    bar.style.setProperty("background", colourOf(lane));
    const share = make("span", { class: "share" });
    return { row: make("li", {}, make("span", { class: "runner" }, visibleText(runner, 16)), make("span", { class: "track" }, bar), share), bar, share };
  });
  const layer = make("input", { type: "range", min: 0, max: layers - 1, value: layers - 1, "aria-label": t`Layer`, oninput: () => { clearTimeout(timer); showLayer(); } });
  const name = make("output", {});
  const play = make("button", { type: "button", onclick: () => { layer.value = "0"; run(); } }, t`Play the race`);
  fill(
    parts.race,
    make("h3", {}, t`What comes after “${visibleText(texts[at], 24)}”`),
    make("div", { class: "inside-tools" }, play, layer, name),
    make("ol", { class: "inside-race" }, ...bars.map(({ row }) => row)),
    chart(),
  );
  showLayer();

  function showLayer() {
    const row = rowOf(shares, Number(layer.value));
    name.textContent = nameOf(Number(layer.value));
    bars.forEach(({ bar, share }, lane) => {
      bar.style.setProperty("width", `${100 * row[lane]}%`);
      share.textContent = inPercent(row[lane]);
    });
  }

  function run() {
    clearTimeout(timer);
    showLayer();
    if (Number(layer.value) >= layers - 1 || !layer.isConnected) return;
    timer = window.setTimeout(() => { layer.value = String(Number(layer.value) + 1); run(); }, LAP);
  }
}

/** Draws the probability of each runner layer by layer. */
function chart() {
  const { race_texts: runners, race_prob: shares, layers } = /** @type {Lens} */ (found);
  return layerChart({
    label: t`Probability layer by layer`,
    layers: layers.map((_, row) => (row ? String(row - 1) : "emb")),
    lines: runners.map((_, lane) => ({ values: layers.map((__, row) => rowOf(shares, row)[lane]), colour: colourOf(lane), isBold: !lane })),
    range: [0, 1],
    marks: [0, 0.5, 1].map((at) => ({ at, text: inPercent(at) })),
    size: [360, 130],
  });
}

export const hide = () => clearTimeout(timer);

export const picture = () => drawing;

/** Gives a row for each layer and position. */
export function data() {
  if (!found) return null;
  const { layers, positions, texts, top_texts: tops, prob, entropy } = found;
  return layers.flatMap((layer, row) => positions.map((position, column) => ({
    layer, position, token: texts[position], predicts: tops[row][column], probability: rowOf(prob, row)[column], entropy: rowOf(entropy, row)[column],
  })));
}
