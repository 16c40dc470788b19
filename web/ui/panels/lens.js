// The logit lens: what each layer would say if it were the last, and how the next token wins.

/** @import { Dock } from "../dock.js" */
/** @import { GlassArray } from "../../inpage.js" */

import { colourAt, isLight } from "../colours.js";
import { styleSheet } from "../styles.js";
import { line, t } from "../wording.js";
import { legend, rowOf, textForm, tokensOf, visibleText, watched } from "./inside.js";
import { colourOf, draw, fill, inPercent, labelled, make, numberField } from "./room.js";

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

const [WIDTH, HEIGHT, LEFT, HEAD] = [58, 17, 46, 20]; // of a cell, and what stands beside and above them
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
    settings, () => look(),
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

/** @param {{ token?: number, at?: number }} [chosen] */
async function look(chosen = {}) {
  const count = Number(new FormData(form).get("count"));
  const answer = await watched(dock, parts.fault, t`Asking every layer…`, async (watch) => {
    const tokens = await tokensOf(form);
    const positions = tokens.map((_, at) => at).slice(-count);
    return inpage.glass("lens", { tokens, positions, ...chosen }, watch);
  });
  if (!answer) return;
  found = answer;
  dock.link({ count });
  drawMap();
  showRace();
}

// ---- the map: layers × positions

function drawMap() {
  if (!found) return;
  const { layers, positions, texts, top_texts: tops, prob, at } = found;
  const [rows, columns] = prob.shape;
  const cells = [];
  for (let row = 0; row < rows; row++) {
    const y = HEAD + (rows - 1 - row) * HEIGHT; // the last layer on top
    const name = row ? t`Layer ${row}` : t`Embedding`;
    cells.push(draw("text", { x: LEFT - 6, y: y + 12, class: "axis" }, row ? String(row) : "emb"));
    const shares = rowOf(prob, row);
    for (let column = 0; column < columns; column++) {
      const share = shares[column];
      const said = tops[row][column];
      const words = line(name, t`after ${visibleText(texts[positions[column]], 20)}`, `${visibleText(said, 30)} ${inPercent(share)}`);
      cells.push(draw(
        "g", { class: "cell", "data-at": row * columns + column },
        draw("rect", { x: LEFT + column * WIDTH, y, width: WIDTH - 1, height: HEIGHT - 1, fill: colourAt(share) }),
        draw("text", { x: LEFT + column * WIDTH + WIDTH / 2 - 0.5, y: y + 12, class: isLight(share) ? "on-light" : "on-dark" }, visibleText(said, 8)),
        draw("title", {}, words),
      ));
    }
  }
  const heads = positions.map((place, column) => draw(
    "text", { x: LEFT + column * WIDTH + WIDTH / 2, y: 13, class: place === at ? "head chosen" : "head" }, visibleText(texts[place], 8),
  ));
  drawing = draw(
    "svg", { viewBox: `0 0 ${LEFT + columns * WIDTH} ${HEAD + rows * HEIGHT}`, width: LEFT + columns * WIDTH, class: "inside-drawing", role: "img", tabindex: 0, "aria-label": t`The likeliest token of ${layers.length - 1} layers at ${columns} positions`, onclick: chooseCell, onpointermove: tellCell, onkeydown: moveCell },
    ...heads, ...cells,
  );
  fill(parts.legend, legend(t`unsure`, t`sure`));
  fill(parts.map, drawing);
  parts.map.scrollLeft = parts.map.scrollWidth;
  parts.cell.textContent = t`Each cell is the token that a layer would write next, were it the last one. Click a cell to follow its token.`;
}

/** @type {(event: Event) => number} */
const cellAt = (event) => Number(/** @type {Element} */ (event.target).closest(".cell")?.getAttribute("data-at") ?? -1);

/** @param {Event} event */
function tellCell(event) {
  const cell = cellAt(event);
  if (cell >= 0) parts.cell.textContent = drawing?.querySelector(`[data-at="${cell}"] title`)?.textContent ?? "";
}

/** Follows the token of a cell, in the race of its position. @param {Event} event */
function chooseCell(event) {
  const cell = cellAt(event);
  if (!found || cell < 0) return;
  look({ at: found.positions[cell % found.positions.length] });
}

/** @param {KeyboardEvent} event */
function moveCell(event) {
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (!found || !step) return;
  event.preventDefault();
  const next = found.positions[found.positions.indexOf(found.at) + step];
  if (next !== undefined) look({ at: next }).then(() => drawing?.focus());
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
    name.textContent = Number(layer.value) ? t`Layer ${Number(layer.value)}` : t`Embedding`;
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
  const { race_texts: runners, race_prob: shares } = /** @type {Lens} */ (found);
  const layers = shares.shape[0];
  const [width, height] = [360, 120];
  const x = (/** @type {number} */ layer) => 30 + (layer / Math.max(1, layers - 1)) * (width - 40);
  const y = (/** @type {number} */ share) => 8 + (1 - share) * (height - 30);
  const paths = runners.map((_, lane) => {
    const points = Array.from({ length: layers }, (__, layer) => `${x(layer).toFixed(1)},${y(rowOf(shares, layer)[lane]).toFixed(1)}`);
    return draw("polyline", { points: points.join(" "), fill: "none", stroke: colourOf(lane), "stroke-width": lane ? 1.5 : 2.5 });
  });
  const marks = [0, 0.5, 1].map((share) => draw("text", { x: 26, y: y(share) + 3, class: "axis" }, inPercent(share)));
  const ends = [[0, "emb"], [layers - 1, String(layers - 1)]].map(([at, name]) => draw("text", { x: x(Number(at)), y: height - 4, class: "head" }, String(name)));
  return draw("svg", { viewBox: `0 0 ${width} ${height}`, class: "inside-drawing inside-chart", role: "img", "aria-label": t`Probability layer by layer` }, ...marks, ...ends, ...paths);
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
