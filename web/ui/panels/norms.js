// Norms: how long the residual stream is from layer to layer, what attention and MLPs add to it, and what stands out.

/** @import { Dock } from "../dock.js" */
/** @import { GlassArray } from "../../inpage.js" */

import { styleSheet } from "../elements.js";
import { decimal, line, t } from "../wording.js";
import { drawnAsWide, link, rowOf, textForm, tokensOf, tokenStrip, visibleText, watched } from "./inside.js";
import { layerChart } from "./charts.js";
import { colourOf, fill, make, tableOf } from "./room.js";

/** @typedef {{ layer: number, position: number, neuron: number, value: number, times: number }} Outlier */

/**
 * An answer of the view "norms"; the stream has a row more: the first one is of the embedding.
 * @typedef {object} Norms
 * @property {string[]} texts
 * @property {GlassArray} stream
 * @property {GlassArray} mixers
 * @property {GlassArray} mlps
 * @property {Record<"stream" | "mixers" | "mlps", (string | null)[]>} names of the hooks
 * @property {Outlier[]} outliers
 */

const MOST = 128; // tokens at once
const [OUTLIERS, DIMENSIONS] = [200, 12]; // that are asked for, and listed
const HEIGHT = 260;
const loadStyles = [styleSheet("panels/room.css"), styleSheet("panels/inside.css")];

/** @type {HTMLElement} */
let root;
/** @type {Dock} */
let dock;
/** @type {HTMLFormElement} */
let form;
/** @type {Record<string, HTMLElement>} */
let parts;
/** @type {Norms | undefined} */
let found;
/** @type {SVGSVGElement | null} */
let drawing = null;
let chosen = -1; // a token, or all of them
/** @type {(at: number) => void} */
let choose = () => {}; // shows the norms at a token; −1: the median of all

/** @param {HTMLElement} element @param {Record<string, any>} settings @param {Dock} given */
export async function show(element, settings, given) {
  dock = given;
  await Promise.all(loadStyles.map((load) => load()));
  if (root === element && !settings.message) return;
  if (root !== element) drawnAsWide(root = element, () => drawChart(chosen));
  build(element, settings);
  if (settings.message) await look();
}

/** @param {HTMLElement} element @param {Record<string, any>} settings */
function build(element, settings) {
  form = textForm(dock, settings, look);
  parts = {
    fault: make("p", { class: "error", role: "alert" }),
    cut: make("p", { class: "room-facts", hidden: true }),
    chart: make("div"),
    facts: make("p", { class: "room-facts", "aria-live": "polite" }),
    tokens: make("div"),
    outliers: make("div"),
  };
  found = undefined;
  drawing = null;
  element.replaceChildren(form, ...Object.values(parts));
}

async function look() {
  let all = 0;
  const answer = await watched(dock, parts.fault, t`Measuring every layer…`, async (watch) => {
    const tokens = await tokensOf(form);
    all = tokens.length;
    return inpage.glass("norms", { tokens: tokens.slice(0, MOST), outliers: OUTLIERS }, watch);
  });
  if (!answer) return;
  found = answer;
  parts.cut.hidden = all <= MOST;
  parts.cut.textContent = t`The first ${MOST} of ${all} tokens are measured.`;
  link(dock, form);
  showTokens();
  showOutliers();
}

/** Shows the tokens, of which one can be chosen. */
function showTokens() {
  const { texts } = /** @type {Norms} */ (found);
  const { strip, mark } = tokenStrip(texts, (at) => choose(at));
  const all = make("button", { type: "button", onclick: () => choose(-1) }, t`All tokens`);
  fill(parts.tokens, make("div", { class: "inside-tools" }, all, make("span", { class: "quiet" }, t`or choose one:`)), strip);
  choose = (at) => {
    mark(at);
    all.ariaPressed = String(at < 0);
    drawChart(chosen = at);
  };
  choose(-1);
}

/** @type {(layer: number) => string} */
const nameOf = (layer) => (layer ? t`Layer ${layer - 1}` : t`Embedding`);

/** A number in three digits or so. @param {number} value */
const inDigits = (value) => decimal(value, Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2);

/** Draws it on a scale of powers of ten: the norms of a text span several. @param {number} at the token that is chosen; none: −1 */
function drawChart(at) {
  if (!found) return;
  const { stream, mixers, mlps, names, texts } = found;
  const layers = stream.shape[0];
  const of = (/** @type {GlassArray} */ array, /** @type {number} */ row) => (at < 0 ? medianOf(rowOf(array, row)) : rowOf(array, row)[at]);
  const added = (/** @type {GlassArray} */ array, /** @type {(string | null)[]} */ having) => Array.from({ length: layers }, (_, row) => (row && having[row - 1] ? of(array, row - 1) : NaN));
  const isAttention = names.mixers.every((name) => !name || name.endsWith("attn_out"));
  const series = [
    { name: t`stream`, values: Array.from({ length: layers }, (_, row) => of(stream, row)) },
    { name: isAttention ? t`attention adds` : t`attention or other mixer adds`, values: added(mixers, names.mixers) },
    { name: t`MLP adds`, values: added(mlps, names.mlps) },
  ];
  const each = texts.map((_, position) => Array.from({ length: layers }, (__, row) => rowOf(stream, row)[position]));
  const logs = [...series.flatMap(({ values }) => values), ...each.flat()].map(Math.log10).filter(Number.isFinite);
  const range = /** @type {[number, number]} */ ([Math.min(...logs) - 0.05, Math.max(...logs) + 0.05]);
  drawing = layerChart({
    label: at < 0 ? t`Norms layer by layer: the median of ${texts.length} tokens` : t`Norms layer by layer at “${visibleText(texts[at], 24)}”`,
    layers: Array.from({ length: layers }, (_, row) => (row ? String(row - 1) : "emb")),
    lines: [
      ...each.map((values) => ({ values: values.map(Math.log10) })),
      ...series.map(({ name, values }, which) => ({ name, values: values.map(Math.log10), colour: colourOf(which), isBold: !which })),
    ],
    range,
    marks: marksOf(range),
    size: [Math.min(Math.max(root.clientWidth, 320), 760), HEIGHT],
    kind: "wide",
    tell(layer) {
      const said = series.filter(({ values }) => Number.isFinite(values[layer])).map(({ name, values }) => `${name} ${inDigits(values[layer])}`);
      parts.facts.textContent = line(nameOf(layer), ...said);
    },
  });
  fill(parts.chart, drawing);
  parts.facts.textContent = t`The length of the stream behind each layer, and of what its two parts add to it: in colour the chosen token or the median, in grey the stream of every token.`;
}

/** @param {ArrayLike<number>} values */
function medianOf(values) {
  const sorted = Array.from(values).sort((a, b) => a - b);
  return (sorted[Math.floor((sorted.length - 1) / 2)] + sorted[Math.ceil((sorted.length - 1) / 2)]) / 2;
}

/** Round numbers within a range of powers of ten. @param {[number, number]} range */
function marksOf([low, high]) {
  const round = [1, 2, 5].flatMap((digit) => Array.from({ length: 24 }, (_, power) => digit * 10 ** (power - 10)));
  const within = round.filter((value) => Math.log10(value) >= low && Math.log10(value) <= high);
  const tens = within.filter((value) => Math.log10(value) % 1 === 0);
  return (within.length > 6 && tens.length > 1 ? tens : within).map((value) => ({ at: Math.log10(value), text: decimal(value) }));
}

/** Lists the dimensions that are much larger than a usual one, each where it is largest. */
function showOutliers() {
  const { outliers, texts } = /** @type {Norms} */ (found);
  /** @type {Map<number, Outlier[]>} */
  const dimensions = new Map();
  for (const outlier of outliers) dimensions.set(outlier.neuron, [...dimensions.get(outlier.neuron) ?? [], outlier]);
  const rows = [...dimensions].slice(0, DIMENSIONS).map(([dimension, [{ layer, position, value, times }]]) => [
    dimension, t`${inDigits(times)} times`, inDigits(value), layer ? layer - 1 : "emb",
    make("button", { type: "button", class: "inside-token", onclick: () => choose(position) }, visibleText(texts[position], 24)),
  ]);
  fill(
    parts.outliers,
    make("h3", {}, t`Dimensions that stand out`),
    make("p", { class: "room-facts" }, t`Each is shown where it is largest, beside the root mean square of all dimensions there. Quantisation to few bits must spare these.`),
    make("div", { class: "room-scroll", tabindex: 0, role: "region", "aria-label": t`Dimensions that stand out` },
      tableOf(t`Dimensions that stand out`, [t`Dimension`, t`Size`, t`Value`, t`Layer`, t`Token`], rows, [0, 1, 2, 3])),
  );
}

export const picture = () => drawing;

/** Gives a row for each layer and position, with the outliers there. */
export function data() {
  if (!found) return null;
  const { stream, mixers, mlps, names, texts, outliers } = found;
  const added = (/** @type {GlassArray} */ array, /** @type {(string | null)[]} */ having, /** @type {number} */ row, /** @type {number} */ position) => (
    row && having[row - 1] ? rowOf(array, row - 1)[position] : null
  );
  return names.stream.flatMap((_, row) => texts.map((token, position) => ({
    layer: row ? row - 1 : "embedding",
    position, token, stream: rowOf(stream, row)[position], attention: added(mixers, names.mixers, row, position), mlp: added(mlps, names.mlps, row, position),
    outliers: outliers.filter((each) => each.layer === row && each.position === position).map(({ neuron, value, times }) => ({ dimension: neuron, value, times })),
  })));
}
