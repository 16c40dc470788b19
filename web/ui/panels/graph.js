// The graph: one section of the model as a picture, with the live shapes of a call, before or after the passes.

/** @import { Dock } from "../dock.js" */

import { styleSheet } from "../elements.js";
import { emit } from "../events.js";
import { decimal, inWords, line, t } from "../wording.js";
import { ask, callFields, callOf, colourOf, draw, fill, inDims, inPercent, inTime, labelled, make, sectionName, shortOp, tableOf, takeCall } from "./room.js";

/** @typedef {{ name: string, kind: string, value_id: number, label: string, dtype: string, dims: number[], max_dims: number[], number: any }} Port */
/** @typedef {{ id: number, op: string, place: { module: string, section: string, source: string }, inputs: Port[], outputs: Port[] }} GraphNode */
/** @typedef {{ begin: number | null, end: number | null, value_id: number, label: string, dims: number[] }} Edge */
/** @typedef {{ name: string, section: string, sections: string[], is_fused: boolean, nodes: GraphNode[], edges: Edge[], symints: Record<string, number>, ops: number }} GraphView */

const [BOX, HIGH, ROW, MARGIN] = [164, 44, 74, 14];
const PILL = 38;
const loadStyles = styleSheet("panels/room.css");

/** @type {HTMLElement} */
let root;
/** @type {Dock} */
let dock;
/** @type {HTMLFormElement} */
let form;
/** @type {HTMLSelectElement} */
let sections;
/** @type {Record<string, HTMLElement>} */
let parts;
/** @type {GraphView | undefined} */
let view;
/** @type {Record<string, any> | undefined} */
let run; // a timeline of the same call, for costs
let chosen = -1;
let model = inpage.loaded; // whose graph it is
/** @type {SVGSVGElement | null} */
let drawing = null;

/** @param {HTMLElement} element @param {Record<string, any>} settings @param {Dock} given */
export async function show(element, settings, given) {
  dock = given;
  await loadStyles();
  if (root !== element) build(root = element, settings);
  if (model !== inpage.loaded) [view, run, model] = [undefined, undefined, inpage.loaded];
  takeCall(form, settings);
  if (settings.op !== undefined || settings.passes) passesField(settings.passes === "before" ? "before" : "after").checked = true;
  if (!view || settings.section) await load(settings.section, settings.op === undefined ? -1 : Number(settings.op));
}

/** @param {HTMLElement} element @param {Record<string, any>} settings */
function build(element, settings) {
  sections = make("select", { name: "section", onchange: () => load() });
  const step = (/** @type {number} */ by) => { sections.selectedIndex = Math.min(Math.max(sections.selectedIndex + by, 0), sections.length - 1); load(); };
  const passes = make(
    "fieldset", { class: "room-kinds" }, make("legend", { class: "sr" }, t`Passes`),
    ...[["after", t`After the passes`], ["before", t`Before`]].map(([value, name]) => make("label", {}, make("input", { type: "radio", name: "passes", value, checked: (settings.passes ?? "after") === value, onchange: () => load() }), name)),
  );
  form = make(
    "form", { class: "room-form", onsubmit: (event) => { event.preventDefault(); load(); } },
    labelled(t`Section`, sections),
    make("button", { type: "button", "aria-label": t`Section before`, title: t`Section before`, onclick: () => step(-1) }, "‹"),
    make("button", { type: "button", "aria-label": t`Next section`, title: t`Next section`, onclick: () => step(1) }, "›"),
    ...callFields(settings), make("button", { class: "primary" }, t`Show`),
  );
  parts = {
    fault: make("p", { class: "error", role: "alert" }),
    tools: make("div", { class: "room-tools" }, passes, make("button", { type: "button", onclick: measure }, t`Measure times`)),
    facts: make("p", { class: "room-facts" }),
    canvas: make("div", { class: "room-canvas room-graph", tabindex: 0, role: "region", "aria-label": t`The picture` }),
    details: make("div", { class: "room-details", "aria-live": "polite" }),
  };
  element.replaceChildren(form, ...Object.values(parts));
}

/** @param {string} value "after" or "before" */
const passesField = (value) => /** @type {HTMLInputElement} */ (root.querySelector(`input[name=passes][value=${value}]`));

const isFused = () => passesField("after").checked;

/** @param {string} [section] @param {number} [op] */
async function load(section = sections.value || undefined, op = -1) {
  const call = callOf(form);
  const found = await ask(dock, parts.fault, t`Looking at the graph…`, "graph", { section, fused: isFused(), ...call });
  if (!found) return;
  if (run && (run.tokens !== call.tokens || run.context !== call.context)) run = undefined;
  const shown = /** @type {GraphView} */ (found);
  view = shown;
  dock.link({ ...call, section: shown.section, passes: shown.is_fused ? "after" : "before" });
  if ([...sections.options].map(({ value }) => value).join() !== shown.sections.join()) sections.replaceChildren(...shown.sections.map((name) => make("option", { value: name }, sectionName(name))));
  sections.value = shown.section;
  const symints = Object.entries(shown.symints).map(([name, value]) => `${name} = ${value}`);
  parts.facts.textContent = line(t`${shown.nodes.length} op here|${shown.nodes.length} ops here`, t`${shown.ops} in all`, ...symints);
  chosen = -1;
  parts.details.replaceChildren(make("p", { class: "quiet" }, t`Choose an op for its shader, its arguments and what it computes.`));
  paint();
  if (op >= 0) await pick(op);
}

async function measure() {
  run = await ask(dock, parts.fault, t`Measuring every dispatch…`, "timeline", callOf(form));
  paint();
}

/** Microseconds and bytes of an op, once they were measured. @param {number} id */
function costOf(id) {
  if (!run || !view?.is_fused) return null;
  const of = run;
  let [time, bytes] = [0, 0];
  of.op_index.forEach((/** @type {number} */ index, /** @type {number} */ at) => {
    if (index === id) [time, bytes] = [time + of.took[at], bytes + of.bytes_read[at] + of.bytes_written[at]];
  });
  return { time, bytes, share: time / (of.microseconds || 1) };
}

/** @param {GraphView} of tensors that flow; what enters or leaves has a node of its own */
function flowOf({ nodes, edges }) {
  const boxes = nodes.map(({ id }) => ({ key: `${id}`, width: BOX, height: HIGH }));
  /** @type {Map<string, { key: string, width: number, height: number, label: string, dims: number[], isState: boolean }>} */
  const pills = new Map();
  const states = new Set(nodes.flatMap(({ inputs }) => inputs.filter(({ kind }) => kind === "state").map(({ value_id: id }) => id)));
  const lines = edges.filter(({ dims }) => dims.length).map(({ begin, end, value_id: id, label, dims }) => {
    const key = `${begin === null ? "in" : "out"}-${id}`;
    if (begin === null || end === null) pills.set(key, { key, width: BOX, height: PILL, label: label || t`value ${id}`, dims, isState: states.has(id) });
    return { from: begin === null ? key : `${begin}`, to: end === null ? key : `${end}` };
  });
  return { boxes, pills, lines };
}

function paint() {
  if (!view) return;
  const { boxes, pills, lines } = flowOf(view);
  const { places, paths, width, height } = layers([...boxes, ...pills.values()], lines, { row: ROW, gap: MARGIN });
  const next = draw("svg", { viewBox: `0 0 ${width} ${height}`, width, height, class: "room-drawing", role: "group", "aria-label": line(sectionName(view.section), t`${view.nodes.length} op|${view.nodes.length} ops`) });
  next.append(...paths.map((d) => draw("path", { d, class: "flow" })));
  for (const [key, { label, dims, isState }] of pills) {
    const { x, y } = places.get(key) ?? { x: 0, y: 0 };
    const shown = label.length > 26 ? `…${label.slice(-25)}` : label;
    next.append(draw(
      "g", { class: isState ? "pill state" : "pill" },
      draw("title", {}, label),
      draw("rect", { x: x - BOX / 2, y, width: BOX, height: PILL, rx: PILL / 2 }),
      draw("text", { x, y: y + 16, class: "pill-name" }, shown),
      draw("text", { x, y: y + 30, class: "node-under" }, inDims(dims)),
    ));
  }
  const kinds = [...new Set(view.nodes.map(({ op }) => op))];
  for (const node of view.nodes) next.append(nodeOf(node, places.get(`${node.id}`) ?? { x: 0, y: 0 }, colourOf(kinds.indexOf(node.op))));
  if (drawing) drawing.replaceWith(next);
  else parts.canvas.append(next);
  drawing = next;
}

/** @type {(node: GraphNode, place: { x: number, y: number }, colour: string) => SVGElement} */
function nodeOf({ id, op, outputs, place }, { x, y }, colour) {
  const cost = costOf(id);
  const name = shortOp(op);
  const shapes = outputs.map(({ dims, number }) => (dims.length ? inDims(dims) : `${number}`)).join(" ");
  const under = line(shapes, cost && inTime(cost.time));
  return draw(
    "g", {
      class: id === chosen ? "node chosen" : "node", tabindex: 0, role: "button", "aria-label": line(name, under), "aria-pressed": String(id === chosen), "data-op": id,
      onclick: () => pick(id), onkeydown: (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); pick(id); } },
    },
    draw("title", {}, line(cost && inPercent(cost.share), place.source)),
    draw("rect", { x: x - BOX / 2, y, width: BOX, height: HIGH, rx: 7 }),
    draw("rect", { x: x - BOX / 2, y, width: 5, height: HIGH, rx: 2, fill: colour, class: "stripe" }),
    cost && draw("rect", { x: x - BOX / 2 + 5, y: y + HIGH - 4, width: (BOX - 10) * Math.min(1, cost.share * 4), height: 3, class: "cost" }),
    draw("text", { x, y: y + 18, class: "node-name" }, name.length > 24 ? `${name.slice(0, 23)}…` : name),
    draw("text", { x, y: y + 34, class: "node-under" }, under),
  );
}

// ---- one op

/** @param {number} id */
async function pick(id) {
  if (!view) return;
  chosen = id;
  const { is_fused: fused } = view;
  dock.link({ ...callOf(form), section: view.section, passes: fused ? "after" : "before", op: id });
  paint();
  /** @type {HTMLElement | null | undefined} */ (drawing?.querySelector(`[data-op="${id}"]`))?.focus({ preventScroll: true });
  const found = await ask(dock, parts.fault, t`Looking at the op…`, "op", { index: id, fused, ...callOf(form) });
  if (found && chosen === id) showOp(found);
}

/** @param {{ node: GraphNode, launches: any[] }} found */
function showOp({ node, launches }) {
  const cost = costOf(node.id);
  const given = (/** @type {Port} */ { kind, dims, number }) => (kind === "number" || kind === "symint" ? JSON.stringify(number) : inDims(dims));
  const kinds = { value: t`value`, constant: t`constant`, state: t`state`, input: t`input`, symint: t`SymInt`, number: t`number` };
  const row = (/** @type {Port} */ port) => [port.name, kinds[/** @type {keyof typeof kinds} */ (port.kind)] ?? port.kind, given(port), port.dtype, port.label];
  const values = make("div", { class: "room-values" });
  fill(
    parts.details,
    make("h3", {}, `${node.id} · ${node.op}`),
    make("p", { class: "room-facts" }, line(node.place.module, cost && inTime(cost.time), cost && t`${inWords(cost.bytes)} moved`)),
    make("h4", {}, t`In torch`),
    make("pre", { class: "room-source", tabindex: 0, "aria-label": t`In torch` }, node.place.source),
    make("h4", {}, t`Arguments`),
    make("div", { class: "room-scroll", tabindex: 0, role: "region", "aria-label": t`Arguments` }, tableOf(t`Arguments`, [t`Name`, t`Kind`, t`Now`, t`Type`, t`Value`], [...node.inputs, ...node.outputs].map(row))),
    view?.is_fused && make("button", { type: "button", onclick: () => showValues(node.id, values) }, t`What does it compute?`),
    values,
    ...launches.flatMap(launchOf),
  );
}

/** @param {any} launch */
function launchOf({ shader, source, step, grid, workgroup_size: size, params, constants, bindings }) {
  const numbers = Object.entries({ ...constants, ...params }).map(([name, value]) => `${name} = ${Array.isArray(value) ? inDims(value) : Number.isInteger(value) ? value : Number(value).toPrecision(6)}`);
  return [
    make("h4", {}, shader),
    make("p", { class: "room-facts" }, grid[0] ? t`${grid.join(" × ")} workgroups of ${size}` : t`Does not run in such a call`),
    make("p", { class: "room-numbers" }, numbers.join("   ")),
    make("details", {}, make("summary", {}, t`Buffers`), make("ul", {}, ...bindings.map((/** @type {any} */ each) => make("li", {}, line(each.name, each.what, inWords(each.nbytes)))))),
    view?.is_fused && make("button", { type: "button", onclick: () => emit("panelwanted", { name: "kernel_lab", settings: { step } }) }, t`Open the kernel`),
    make("details", {}, make("summary", {}, t`Shader`), make("pre", { class: "room-source", tabindex: 0, "aria-label": t`Shader` }, source)),
  ];
}

/** @param {number} id @param {HTMLElement} into */
async function showValues(id, into) {
  const found = await ask(dock, parts.fault, t`Running as far as this op…`, "op_values", { index: id, ...callOf(form) });
  if (!found) return;
  const short = (/** @type {number} */ value) => decimal(Number(value.toPrecision(4)), undefined);
  into.replaceChildren(...found.flatMap((/** @type {any} */ each) => {
    const most = Math.max(...each.histogram, 1);
    const bars = each.histogram.map((/** @type {number} */ count, /** @type {number} */ at) => draw("rect", { x: at * 9, y: 44 - 42 * count / most, width: 8, height: 42 * count / most, class: "histogram" }));
    const said = line(each.label, inDims(each.dims), t`from ${short(each.least)} to ${short(each.most)}`, t`mean ${short(each.mean)}`, `RMS ${short(each.rms)}`, each.not_finite > 0 && t`${each.not_finite} are NaN`);
    return [
      make("p", { class: "room-facts" }, said),
      draw("svg", { viewBox: "0 0 216 46", width: 216, height: 46, role: "img", "aria-label": t`How often each size occurs` }, ...bars),
      make("p", { class: "room-numbers" }, `${each.first.map((/** @type {number} */ value) => value.toPrecision(4)).join("   ")} …`),
    ];
  }));
}

export const picture = () => drawing;

export const data = () => view ?? null;

// ---- a drawing of boxes in rows, each below what it follows from: a small layered layout

/** @typedef {{ key: string, width: number, height: number }} Box */
/** @typedef {{ from: string, to: string }} Line */
/** @typedef {{ key: string, row: number, width: number, x: number, above: Cell[], below: Cell[] }} Cell */

const [SWEEPS, BEND] = [6, 14]; // how often rows are sorted; the width of a line that passes a row

/**
 * Gives the middle of each box and its top, and a path for each line.
 * @param {Box[]} boxes
 * @param {Line[]} lines
 * @param {{ row: number, gap: number }} sizes
 */
function layers(boxes, lines, { row: rowHeight, gap }) {
  const heights = new Map(boxes.map(({ key, height }) => [key, height]));
  const rank = ranks(boxes, lines);
  /** @type {Map<string, Cell>} */
  const cells = new Map(boxes.map(({ key, width }) => [key, { key, row: rank.get(key) ?? 0, width, x: 0, above: [], below: [] }]));
  /** @type {Cell[][]} */
  const rows = [];
  for (const cell of cells.values()) (rows[cell.row] ??= []).push(cell);
  const chains = lines.map(({ from, to }) => chain(/** @type {Cell} */ (cells.get(from)), /** @type {Cell} */ (cells.get(to)), rows));
  const filled = Array.from(rows, (cellsOfRow) => cellsOfRow ?? []);
  for (let sweep = 0; sweep < SWEEPS; sweep++) sort(filled, sweep % 2 === 0);
  const width = placeRows(filled, gap);
  const places = new Map([...cells].map(([key, { x, row }]) => [key, { x, y: gap + row * rowHeight }]));
  const paths = chains.map((found) => pathOf(found, heights, rowHeight, gap));
  return { places, paths, width, height: 2 * gap + (filled.length - 1) * rowHeight + Math.max(...(filled.at(-1) ?? []).map(({ key }) => heights.get(key) ?? 0), 0) };
}

/** The row of each box: below all that it follows from; what only begins a line stands right above its end. @param {Box[]} boxes @param {Line[]} lines */
function ranks(boxes, lines) {
  const found = new Map(boxes.map(({ key }) => [key, 0]));
  const at = (/** @type {string} */ key) => found.get(key) ?? 0;
  for (let round = 0; round < boxes.length; round++) {
    const moved = lines.filter(({ from, to }) => at(to) < at(from) + 1);
    for (const { from, to } of moved) found.set(to, Math.max(at(to), at(from) + 1));
    if (!moved.length) break;
  }
  const ends = new Set(lines.map(({ to }) => to));
  for (const { key } of boxes) {
    const followers = lines.filter(({ from }) => from === key).map(({ to }) => at(to));
    if (!ends.has(key) && followers.length) found.set(key, Math.min(...followers) - 1);
  }
  return found;
}

/** A line's cells from row to row, new ones where it passes a row. @type {(from: Cell, to: Cell, rows: Cell[][]) => Cell[]} */
function chain(from, to, rows) {
  const found = [from];
  for (let row = from.row + 1; row < to.row; row++) {
    /** @type {Cell} */
    const bend = { key: "", row, width: BEND, x: 0, above: [], below: [] };
    (rows[row] ??= []).push(bend);
    found.push(bend);
  }
  found.push(to);
  found.slice(1).forEach((cell, at) => { cell.above.push(found[at]); found[at].below.push(cell); });
  return found;
}

/** @type {(rows: Cell[][], isDown: boolean) => void} */
function sort(rows, isDown) {
  for (const cells of rows) cells.forEach((cell, at) => { cell.x = at - (cells.length - 1) / 2; });
  for (const cells of isDown ? rows : [...rows].reverse()) {
    const wanted = new Map(cells.map((cell) => [cell, mean(isDown ? cell.above : cell.below) ?? cell.x]));
    cells.sort((a, b) => (wanted.get(a) ?? 0) - (wanted.get(b) ?? 0));
    cells.forEach((cell, at) => { cell.x = at - (cells.length - 1) / 2; });
  }
}

/** @param {Cell[]} cells */
const mean = (cells) => (cells.length ? cells.reduce((sum, { x }) => sum + x, 0) / cells.length : undefined);

/** Puts each row around the middle, as near to its neighbours as its order allows. @type {(rows: Cell[][], gap: number) => number} */
function placeRows(rows, gap) {
  for (const cells of rows) spread(cells, gap, () => 0);
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const isDown = sweep % 2 === 0;
    for (const cells of isDown ? rows : [...rows].reverse()) spread(cells, gap, (cell) => mean(isDown ? cell.above : cell.below) ?? mean(isDown ? cell.below : cell.above) ?? cell.x);
  }
  const every = rows.flat();
  const least = Math.min(...every.map(({ x, width }) => x - width / 2));
  for (const cell of every) cell.x += gap - least;
  return Math.max(...every.map(({ x, width }) => x + width / 2)) + gap;
}

/** @type {(cells: Cell[], gap: number, wantedOf: (cell: Cell) => number) => void} */
function spread(cells, gap, wantedOf) {
  const wanted = cells.map(wantedOf);
  const apart = (/** @type {number} */ at) => (cells[at - 1].width + cells[at].width) / 2 + gap;
  const right = [...wanted];
  for (let at = 1; at < cells.length; at++) right[at] = Math.max(right[at], right[at - 1] + apart(at));
  const left = [...wanted];
  for (let at = cells.length - 2; at >= 0; at--) left[at] = Math.min(left[at], left[at + 1] - apart(at + 1));
  cells.forEach((cell, at) => { cell.x = (left[at] + right[at]) / 2; });
}

/** @type {(cells: Cell[], heights: Map<string, number>, rowHeight: number, gap: number) => string} */
function pathOf(cells, heights, rowHeight, gap) {
  const top = (/** @type {Cell} */ { row }) => gap + row * rowHeight;
  let d = "";
  cells.slice(1).forEach((to, at) => {
    const from = cells[at];
    const [y1, y2] = [top(from) + (heights.get(from.key) ?? 0), top(to)];
    const bend = (y2 - y1) / 2;
    d += `${at ? "" : `M${from.x} ${y1}`}${from.key ? "" : `L${from.x} ${y1}`}C${from.x} ${y1 + bend} ${to.x} ${y2 - bend} ${to.x} ${y2}`;
  });
  return d;
}
