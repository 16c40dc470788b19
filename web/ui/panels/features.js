// Features of a sparse autoencoder that the user opens: which are active at each token, what they promote, and steering by one.

/** @import { Dock } from "../dock.js" */
/** @import { GlassArray } from "../../inpage.js" */

import { styleSheet } from "../elements.js";
import { colourAt, draw, fill, inPercent, isLight, labelled, make, numberField, tableOf } from "./room.js";
import { emit, on } from "../events.js";
import { decimal, line, t } from "../wording.js";
import { legend, link, rowOf, textForm, tokensOf, visibleText, watched } from "./inside.js";

/**
 * The autoencoder that is open.
 * @typedef {object} State
 * @property {string} name
 * @property {string} kind
 * @property {number} features how many it has
 * @property {number} kept of a token, where it is TopK
 * @property {number} width
 * @property {string | null} made_for
 * @property {string | null} wants the hook of its configuration
 * @property {string | null} hook
 * @property {string[]} hooks
 * @property {{ name: string, feature: number, strength: number }[]} steered
 */

/** @typedef {{ tokens: number[], texts: string[], positions: number[], hook: string, features: GlassArray, activations: GlassArray, top: GlassArray, active: GlassArray, scale: number, explained: number | null, l0: number }} Found */
/** @typedef {{ token: number, text: string, logit: number }[]} Tokens */
/** @typedef {{ feature: number, promotes: Tokens, suppresses: Tokens }} Promoted */

const [COUNT, MOST] = [32, 128]; // tokens that are looked at
const [STRONGEST, PROMOTED] = [8, 8]; // features of a token, and tokens of a feature
const ROWS = 12; // features of the map
const [WIDTH, HEIGHT, BESIDE, HEAD] = [46, 17, 52, 20]; // of a cell of the map, and what stands beside and above them
const loadStyles = ["panels/room.css", "panels/inside.css", "panels/features.css"].map(styleSheet);

/** @type {HTMLElement} */
let root;
/** @type {Dock} */
let dock;
/** @type {HTMLFormElement} */
let form;
/** @type {Record<string, HTMLElement>} */
let parts;
/** @type {State | null} */
let state = null;
/** @type {Found | undefined} */
let found;
let chosen = -1; // a feature; none: −1
let at = 0; // a column: the token whose features are listed
/** @type {File[] | undefined} */
let waiting; // files that came before there was a model
/** @type {SVGSVGElement | null} */
let drawing = null;
/** @type {Map<number, Promoted>} */
const promoted = new Map();
/** @type {Map<string, number>} */
const wanted = new Map(); // strengths that the engine is still to hear of
let isTelling = false;

/** @param {HTMLElement} element @param {Record<string, any>} settings @param {Dock} given */
export async function show(element, settings, given) {
  dock = given;
  await Promise.all(loadStyles.map((load) => load()));
  if (!root) on("modelchange", refresh);
  if (root !== element || settings.message) build(root = element, settings);
  if (settings.feature !== undefined) chosen = Number(settings.feature);
  if (settings.files) await open(settings.files);
  else await refresh();
}

/** @param {HTMLElement} element @param {Record<string, any>} settings */
function build(element, settings) {
  const file = make("input", { type: "file", multiple: true, accept: ".safetensors,.npz,.json", hidden: true, onchange: () => { open([...file.files ?? []]); file.value = ""; } });
  form = textForm(
    dock, settings, () => look(),
    labelled(t`Last tokens`, numberField("count", { min: 1, max: MOST, value: settings.count ?? COUNT })), make("input", { type: "hidden", name: "feature" }),
  );
  parts = {
    fault: make("p", { class: "error", role: "alert" }),
    facts: make("p", { class: "room-facts" }),
    tools: make("div", { class: "room-tools" }),
    whole: make("div", { hidden: true }),
    quality: make("p", { class: "room-facts", "aria-live": "polite" }),
    tokens: make("div", { class: "inside-tokens features-tokens" }),
    map: make("div", { class: "inside-map" }),
    legend: make("div"),
    table: make("div", { class: "features-table" }),
    card: make("section", { class: "features-card", "aria-live": "polite" }),
    steered: make("ul", { class: "features-steered" }),
  };
  const { fault, facts, tools, whole, ...rest } = parts;
  whole.append(form, ...Object.values(rest));
  found = undefined;
  element.replaceChildren(fault, facts, tools, file, whole);
  parts.file = file;
}

// ---- the file

/** @param {File[]} files */
async function open(files) {
  if (!files.length) return;
  if (!inpage.loaded) {
    waiting = files;
    return drawState();
  }
  waiting = undefined;
  const opened = await watched(dock, parts.fault, t`Opening ${files[0].name}…`, (watch) => inpage.glass("autoencoder", { files }, watch));
  if (opened) take(opened);
}

/** Closes it, and what it steers. */
async function close() {
  const closed = await watched(dock, parts.fault, t`Closing…`, (watch) => inpage.glass("autoencoder", { close: true }, watch));
  if (closed !== undefined) take(closed);
}

/** @param {string} hook */
async function read(hook) {
  const opened = await watched(dock, parts.fault, t`Choosing the hook…`, (watch) => inpage.glass("autoencoder", { hook }, watch));
  if (opened) take(opened);
}

/** Goes on with what is open now: what was found before is of another one. @param {State | null} opened */
function take(opened) {
  state = opened;
  found = undefined;
  promoted.clear();
  if (state && chosen >= state.features) chosen = -1;
  drawState();
  if (state?.hook) look();
}

async function refresh() {
  if (inpage.loaded && waiting) return open(waiting);
  const before = state;
  state = inpage.loaded ? await inpage.glass("autoencoder").catch(() => null) : null;
  const isSame = before && state && before.name === state.name && before.hook === state.hook && before.features === state.features;
  if (!isSame) {
    found = undefined;
    promoted.clear();
  }
  drawState();
}

function drawState() {
  const button = make("button", { type: "button", class: !state && inpage.loaded && "primary", disabled: !inpage.loaded, onclick: () => parts.file.click() }, state ? t`Open another…` : t`Open a sparse autoencoder…`);
  parts.facts.textContent = state
    ? line(state.name, t`${state.features} features`, state.kept ? `${state.kind} ${state.kept}` : state.kind, t`width ${state.width}`, state.made_for && t`made for ${state.made_for}`)
    : inpage.loaded
      ? t`A sparse autoencoder splits what a model computes into features. Choose its .safetensors or .npz file, with its cfg.json if it has one, or drop both on the page: files from SAELens, EleutherAI and Gemma Scope can be read. They stay on this device.`
      : waiting ? t`${waiting[0].name} is opened as soon as a model is loaded.` : t`Load a model to look at its features.`;
  const train = !state && inpage.loaded && make("button", { type: "button", onclick: () => emit("panelwanted", { name: "notebook", settings: { experiment: "autoencoder" } }) }, t`Train a small one in the notebook`);
  fill(parts.tools, state && hookField(state), button, train, state && make("button", { type: "button", onclick: close }, t`Close`));
  parts.whole.hidden = !state?.hook;
  drawFound();
  drawSteered();
}

/** @param {State} opened */
function hookField({ hook, hooks, wants }) {
  const none = hook ? [] : [make("option", { value: "", selected: true, disabled: true }, t`Choose the hook that it reads`)];
  const options = hooks.map((name) => make("option", { value: name, selected: name === hook }, name === wants ? t`${name} (its own)` : name));
  return labelled(t`Hook`, make("select", { class: "features-hook", onchange: (/** @type {Event} */ event) => read(/** @type {HTMLSelectElement} */ (event.target).value) }, ...none, ...options));
}

// ---- looking at a text

async function look() {
  const count = Number(new FormData(form).get("count"));
  const answer = await watched(dock, parts.fault, t`Looking for features…`, async (watch) => {
    const tokens = await tokensOf(form);
    const positions = tokens.map((_, place) => place).slice(-count);
    return inpage.glass("features", { tokens, positions, k: STRONGEST, watch: chosen >= 0 ? [chosen] : [] }, watch);
  });
  if (!answer) return;
  found = /** @type {Found} */ (answer);
  at = found.positions.length - 1;
  if (chosen < 0) chosen = Math.max(-1, rowOf(found.top, at)[0]);
  drawFound();
  await promote();
}

/** Asks for the tokens that the features on show promote, where they are not known yet. */
async function promote() {
  const listed = [...new Set([...listedHere(), chosen])].filter((feature) => feature >= 0 && !promoted.has(feature));
  if (!listed.length) return;
  const answer = await watched(dock, parts.fault, t`Asking what they promote…`, (watch) => inpage.glass("promoted", { features: listed, k: PROMOTED }, watch));
  for (const each of /** @type {Promoted[]} */ (answer ?? [])) promoted.set(each.feature, each);
  drawTable();
  drawCard();
}

/** The strongest features of the chosen token. */
const listedHere = () => (found ? [...rowOf(found.top, at)].filter((feature) => feature >= 0) : []);

/** The activations of a feature along the text, where they are known. @param {number} feature */
function activationsOf(feature) {
  const row = found ? [...found.features.data].indexOf(feature) : -1;
  return found && row >= 0 ? rowOf(found.activations, row) : undefined;
}

/** How active a feature is at most; the text's first token, whose activations are of another size, does not count. @param {number} feature */
function mostOf(feature) {
  const own = [...activationsOf(feature) ?? []];
  return Math.max(0, ...found?.positions[0] === 0 && own.length > 1 ? own.slice(1) : own);
}

/** @param {number} feature */
async function choose(feature) {
  chosen = feature;
  showLink();
  if (activationsOf(feature)) {
    drawFound();
    await promote();
  } else await look();
}

/** @param {number} column */
async function chooseToken(column) {
  at = column;
  drawTokens();
  drawTable();
  await promote();
}

// ---- what was found

function drawFound() {
  for (const name of ["quality", "tokens", "map", "legend", "table", "card"]) if (!found) parts[name].replaceChildren();
  if (!found) return;
  showLink();
  const { explained, l0 } = found;
  parts.quality.textContent = line(
    explained !== null && (explained < 0 ? t`The features explain nothing here: they may belong to another model or hook.` : t`The features explain ${inPercent(explained)} of the variance here.`),
    t`${decimal(l0, 1)} are active at a token, on average.`,
  );
  drawTokens();
  drawMap();
  drawTable();
  drawCard();
}

/** Has the panel's link carry the feature, too. */
function showLink() {
  /** @type {HTMLInputElement} */ (form.elements.namedItem("feature")).value = chosen >= 0 ? String(chosen) : "";
  link(dock, form);
}

/** The text, each token tinted by how active the chosen feature is. */
function drawTokens() {
  if (!found) return;
  const { texts, positions } = found;
  const own = activationsOf(chosen);
  const most = mostOf(chosen);
  fill(parts.tokens, ...positions.map((place, column) => {
    const value = own?.[column] ?? 0;
    const token = make("button", {
      type: "button", class: column === at && "chosen", "aria-pressed": String(column === at), title: own ? t`Feature ${String(chosen)}: ${decimal(value, 2)}` : "", onclick: () => chooseToken(column),
    }, visibleText(texts[place], 24));
    token.style.setProperty("--share", `${most ? Math.round(60 * Math.min(value / most, 1)) : 0}%`);
    return token;
  }));
}

/** The strongest features of all: features × tokens. */
function drawMap() {
  if (!found) return;
  const { features, texts, positions } = found;
  const rows = [...features.data].map((feature) => ({ feature, own: /** @type {Float32Array} */ (activationsOf(feature)), most: mostOf(feature) }))
    .sort((a, b) => b.most - a.most).filter(({ most }) => most > 0).slice(0, ROWS);
  const peak = rows[0]?.most ?? 1;
  const heads = positions.map((place, column) => draw("text", { x: BESIDE + (column + 0.5) * WIDTH, y: 13, class: column === at ? "head chosen" : "head" }, visibleText(texts[place], 6)));
  const lines = rows.flatMap(({ feature, own }, row) => {
    const y = HEAD + row * HEIGHT;
    const cells = positions.map((place, column) => {
      const share = Math.min(own[column] / peak, 1);
      const x = BESIDE + column * WIDTH;
      return draw(
        "g", { class: "cell", "data-feature": feature, "data-column": column },
        draw("rect", { x, y, width: WIDTH - 1, height: HEIGHT - 1, fill: colourAt(share) }),
        own[column] > 0 && draw("text", { x: x + WIDTH / 2, y: y + 12, class: isLight(share) ? "on-light" : "on-dark" }, decimal(own[column], own[column] < 100 ? 1 : 0)),
        draw("title", {}, line(t`Feature ${String(feature)}`, visibleText(texts[place], 20), decimal(own[column], 2))),
      );
    });
    return [draw("text", { x: BESIDE - 4, y: y + 12, class: feature === chosen ? "axis chosen" : "axis" }, String(feature)), ...cells];
  });
  const [width, height] = [BESIDE + positions.length * WIDTH, HEAD + rows.length * HEIGHT];
  drawing = draw("svg", {
    viewBox: `0 0 ${width} ${height}`, width, class: "inside-drawing", role: "img", "aria-label": t`The ${rows.length} strongest features along the text`, onclick: chooseCell,
  }, ...heads, ...lines);
  fill(parts.map, drawing);
  fill(parts.legend, legend("0", decimal(peak, peak < 100 ? 1 : 0)));
}

/** @param {Event} event */
function chooseCell(event) {
  const cell = /** @type {SVGElement | null} */ (/** @type {Element} */ (event.target).closest(".cell"));
  if (!cell) return;
  at = Number(cell.dataset.column);
  choose(Number(cell.dataset.feature));
}

/** The features of the chosen token. */
function drawTable() {
  if (!found) return;
  const { texts, positions, active } = found;
  const listed = listedHere();
  const token = visibleText(texts[positions[at]], 24);
  const most = Math.max(1e-9, ...listed.map((feature) => activationsOf(feature)?.[at] ?? 0));
  const rows = listed.map((feature) => {
    const value = activationsOf(feature)?.[at] ?? 0;
    const bar = make("span", { class: "bar" });
    bar.style.setProperty("width", `${4 * value / most}rem`);
    return [
      make("button", { type: "button", class: "features-number", "aria-pressed": String(feature === chosen), onclick: () => choose(feature) }, String(feature)),
      make("span", { class: "bar-cell" }, bar, decimal(value, 2)),
      make("span", { class: "features-words" }, ...wordsOf(promoted.get(feature)?.promotes.slice(0, 4))),
    ];
  });
  fill(
    parts.table,
    make("h3", {}, t`${active.data[at]} feature active at “${token}”|${active.data[at]} features active at “${token}”`),
    rows.length > 0 && make("div", { class: "room-scroll" }, tableOf(t`The strongest features of the token`, [t`Feature`, t`Activation`, t`Makes likelier`], rows)),
  );
}

/** @param {Tokens} [tokens] */
const wordsOf = (tokens = []) => tokens.map(({ text, logit }) => make("code", { title: decimal(logit, 2) }, visibleText(text, 16).trim() || numberOf(text)));

/** The number of a letter that cannot be seen. @param {string} text */
const numberOf = (text) => `U+${(text.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`;

/** The chosen feature. */
function drawCard() {
  if (!found || !state) return;
  const number = numberField("feature", { min: 0, max: state.features - 1, value: chosen < 0 ? "" : chosen });
  const pick = make("form", { class: "room-form", onsubmit: (/** @type {Event} */ event) => { event.preventDefault(); choose(Number(number.value)); } }, labelled(t`Feature`, number), make("button", {}, t`Show`));
  const own = promoted.get(chosen);
  const isSteering = state.steered.some(({ feature }) => feature === chosen);
  fill(
    parts.card,
    chosen >= 0 && make("h3", {}, t`Feature ${String(chosen)}`),
    chosen >= 0 && make("p", { class: "room-facts" }, mostOf(chosen) ? t`At most ${decimal(mostOf(chosen), 2)} in this text.` : t`It is not active in this text.`),
    ...(own?.promotes.length ? [
      make("p", { class: "features-words" }, make("span", {}, t`Makes likelier`), ...wordsOf(own.promotes)),
      make("p", { class: "features-words" }, make("span", {}, t`Makes less likely`), ...wordsOf(own.suppresses)),
    ] : []),
    chosen >= 0 && make("div", { class: "room-tools" }, make("button", { type: "button", class: "primary", disabled: isSteering, onclick: steer }, t`Steer with this feature`)),
    pick,
  );
}

// ---- steering

async function steer() {
  const strength = Number(((mostOf(chosen) || 1) * (found?.scale ?? 1)).toPrecision(2));
  const feature = chosen;
  const answer = await watched(dock, parts.fault, t`Building the steered graph…`, (watch) => inpage.glass("steer_feature", { feature, strength }, watch));
  if (!answer) return;
  state = answer;
  drawSteered();
  drawCard();
}

/** The features that steer, each with its strength. */
function drawSteered() {
  fill(parts.steered, ...(state?.steered ?? []).map(({ name, feature, strength }) => {
    const most = Number((4 * Math.max(Math.abs(strength), (mostOf(feature) || 1) * (found?.scale ?? 1))).toPrecision(2));
    const output = make("output", {}, decimal(strength, 1));
    const slider = make("input", {
      type: "range", min: -most, max: most, step: "any", value: strength, "aria-label": t`Strength of feature ${String(feature)}`,
      oninput: () => {
        output.value = decimal(Number(slider.value), 1);
        wanted.set(name, Number(slider.value));
        tell();
      },
    });
    return make("li", {}, make("span", { class: "name" }, t`Feature ${String(feature)}`), slider, output, make("button", { type: "button", "aria-label": t`Remove feature ${String(feature)}`, onclick: () => remove(name) }, t`Remove`));
  }));
}

/** @param {string} name */
async function remove(name) {
  await watched(dock, parts.fault, t`Removing…`, (watch) => inpage.glass("steering", { remove: [name] }, watch));
  wanted.delete(name);
  await refresh();
}

/** Tells the engine the newest strengths: a slider gives more than it can take. */
async function tell() {
  if (isTelling) return;
  isTelling = true;
  for (const [name, strength] of wanted) {
    await inpage.glass("strength", { which: name, strength }).catch(() => {}); // it was removed meanwhile
    const own = state?.steered.find((each) => each.name === name);
    if (own) own.strength = strength;
    if (wanted.get(name) === strength) wanted.delete(name);
  }
  isTelling = false;
  if (wanted.size) tell();
}

export const picture = () => (found ? drawing : null);

/** Gives a row for each token and each of its strongest features. */
export function data() {
  const here = found;
  if (!here) return null;
  return here.positions.flatMap((position, column) => [...rowOf(here.top, column)].filter((feature) => feature >= 0).map((feature) => ({
    position, token: here.texts[position], feature, activation: activationsOf(feature)?.[column],
    promotes: (promoted.get(feature)?.promotes ?? []).map(({ text }) => text).join(" "),
  })));
}
