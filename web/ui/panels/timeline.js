// The timeline: every dispatch of a call of the model, one after the other, with what it takes and what it moves.

/** @import { Dock } from "../dock.js" */

import { giveFile } from "../chat_files.js";
import { styleSheet } from "../elements.js";
import { emit } from "../events.js";
import { decimal, inWords, line, t } from "../wording.js";
import { ask, callFields, callOf, colourOf, draw, inPercent, inTime, labelled, make, sectionName, shortOp, tableOf } from "./room.js";

/**
 * A run as the view "timeline" gives it: a column each, `op` and the like with indices into the lists of names.
 * @typedef {Record<string, any>} Run
 */

const [LANE, BAND, RATE, GAP, AXIS] = [50, 16, 14, 8, 18]; // heights
const MOST_TOKENS = 64; // that another panel is asked about
const LEAST_SHARE = 1 / 2000; // of a run, that fills the width
const KINDS = /** @type {const} */ (["op", "section", "shader"]);
const loadStyles = styleSheet("panels/room.css");

/** @type {Run[]} */
const runs = [];
/** @type {HTMLElement} */
let root;
/** @type {Dock} */
let dock;
/** @type {Record<string, HTMLElement>} */
let parts;
/** @type {HTMLFormElement} */
let form;
/** @type {Run | undefined} */
let run;
/** @type {Run | undefined} */
let other;
let kind = /** @type {string} */ ("op");
let sought = "";
let model = inpage.loaded; // whose runs they are
let view = [0, 1]; // what is seen of the run, in microseconds
let chosen = -1; // a dispatch
/** @type {SVGSVGElement | null} */
let drawing = null;

/** @param {HTMLElement} element @param {Record<string, any>} settings @param {Dock} given */
export async function show(element, settings, given) {
  dock = given;
  await loadStyles();
  if (root !== element) build(root = element, settings);
  if (model !== inpage.loaded) [runs.length, run, other, model] = [0, undefined, undefined, inpage.loaded];
  if (settings.by && KINDS.includes(settings.by)) choose(settings.by);
  if (!run) await measure();
}

/** @param {HTMLElement} element @param {Record<string, any>} settings */
function build(element, settings) {
  form = make("form", { class: "room-form", onsubmit: (event) => { event.preventDefault(); measure(); } }, ...callFields(settings), make("button", { class: "primary" }, t`Measure`));
  const by = make(
    "fieldset", { class: "room-kinds" }, make("legend", { class: "sr" }, t`Group by`),
    ...[t`Op`, t`Layer`, t`Shader`].map((name, at) => make("label", {}, make("input", { type: "radio", name: "by", value: KINDS[at], checked: KINDS[at] === kind, onchange: () => choose(KINDS[at]) }), name)),
  );
  const search = make("input", { type: "search", "aria-label": t`Search`, placeholder: t`Search ops, shaders, torch lines`, oninput: () => { sought = search.value.toLowerCase(); paint(); } });
  const zoom = make(
    "div", { class: "room-zoom" },
    ...[[t`Zoom in`, "+", 0.5], [t`Zoom out`, "−", 2], [t`Whole run`, "⤢", Infinity]].map(([name, sign, by_]) => (
      make("button", { type: "button", "aria-label": String(name), title: String(name), onclick: () => zoomBy(Number(by_), chosenAt()) }, String(sign))
    )),
  );
  parts = {
    fault: make("p", { class: "error", role: "alert" }),
    runs: make("div", { class: "room-form" }),
    facts: make("p", { class: "room-facts" }),
    tools: make("div", { class: "room-tools", hidden: true }, by, search, zoom),
    canvas: make("div", { class: "room-canvas" }),
    details: make("div", { class: "room-details", "aria-live": "polite" }),
    groups: make("div"),
  };
  element.replaceChildren(form, ...Object.values(parts));
  new ResizeObserver(() => paint()).observe(parts.canvas);
}

async function measure() {
  const call = callOf(form);
  const found = await ask(dock, parts.fault, t`Measuring every dispatch…`, "timeline", call);
  if (!found) return;
  runs.push(found);
  dock.link({ ...call, by: kind });
  pick(found, runs.length > 1 ? other : undefined);
}

/** @param {Run} next @param {Run} [beside] */
function pick(next, beside) {
  [run, other] = [next, beside === next ? undefined : beside];
  view = [0, Math.max(end(next), other ? end(other) : 0)];
  chosen = -1;
  parts.tools.hidden = false;
  showRuns();
  showFacts();
  showDetails();
  paint();
  showGroups();
}

/** @param {Run} of */
const end = (of) => of.microseconds || 1;

/** @param {Run} of */
const nameOf = (of) => line(t`${of.tokens} token|${of.tokens} tokens`, t`after ${of.context}`, inTime(of.microseconds));

function showRuns() {
  const options = (/** @type {Run | undefined} */ selected) => runs.map((each) => make("option", { value: each.run, selected: each === selected }, `${runs.indexOf(each) + 1} · ${nameOf(each)}`));
  const chosenRun = make("select", { onchange: () => pick(/** @type {Run} */ (runs.find((each) => String(each.run) === chosenRun.value)), other) }, ...options(run));
  const beside = make("select", { onchange: () => pick(/** @type {Run} */ (run), runs.find((each) => String(each.run) === beside.value)) }, make("option", { value: "" }, t`nothing`), ...options(other));
  parts.runs.replaceChildren(...(runs.length > 1 ? [labelled(t`Run`, chosenRun), labelled(t`Compare with`, beside)] : []), make("button", { type: "button", onclick: giveTrace }, t`Trace for Perfetto`));
}

async function giveTrace() {
  const found = run && await ask(dock, parts.fault, t`Writing the trace…`, "trace", { run: run.run });
  if (found) giveFile("inpage-trace.json", JSON.stringify(found), "application/json");
}

function showFacts() {
  if (!run) return;
  const { device, gb_per_s: best, timing, step } = run;
  const clock = timing === "segments" ? t`This device has no clock for single dispatches: segments were timed, and shared out by bytes` : t`Times by the device's own clock`;
  parts.facts.textContent = line(inTime(run.microseconds), t`${step.length} dispatches`, best && t`fastest read ${decimal(best, 1)} GB/s`, device, clock);
}

/** @param {string} next */
function choose(next) {
  kind = next;
  for (const field of root.querySelectorAll("input[name=by]")) /** @type {HTMLInputElement} */ (field).checked = /** @type {HTMLInputElement} */ (field).value === next;
  if (!run) return;
  dock.link({ tokens: run.tokens, context: run.context, by: kind });
  paint();
  showGroups();
}

// ---- the drawing

/** Names in the order they are drawn in all runs, so that a colour means the same in each. */
const names = () => [...new Set(runs.flatMap((each) => each[`${kind}s`]))];

/** @type {(of: Run, at: number) => string} */
const groupOf = (of, at) => of[`${kind}s`][of[kind][at]];

/** @type {(of: Run, at: number) => boolean} */
function isSought(of, at) {
  if (!sought) return true;
  return [of.ops[of.op[at]], of.shaders[of.shader[at]], of.sections[of.section[at]], of.sources[of.source[at]]].some((text) => text.toLowerCase().includes(sought));
}

function paint() {
  const width = parts.canvas.clientWidth;
  if (!run || width < 50) return;
  const shown = [run, ...(other ? [other] : [])];
  const height = shown.length * (BAND + LANE + RATE + GAP) + AXIS;
  const scale = (/** @type {number} */ time) => (time - view[0]) / (view[1] - view[0]) * width;
  const colours = new Map(names().map((name, at) => [name, colourOf(at)]));
  const next = draw("svg", {
    viewBox: `0 0 ${width} ${height}`, width, height, class: "room-drawing", role: "listbox", tabindex: 0, "aria-label": t`Dispatches in the order they run`,
    "aria-activedescendant": chosen >= 0 ? `dispatch-${chosen}` : null,
    onkeydown, onwheel, onpointerdown,
  });
  shown.forEach((each, row) => {
    const top = row * (BAND + LANE + RATE + GAP);
    next.append(...bands(each, top, scale, width), ...lane(each, row, top + BAND, scale, width, colours));
  });
  next.append(...axis(height, width));
  const hadFocus = drawing?.contains(document.activeElement);
  if (drawing) drawing.replaceWith(next);
  else parts.canvas.append(next);
  drawing = next;
  if (hadFocus) drawing.focus();
}

/** Sections as a band over their dispatches. @type {(of: Run, top: number, scale: (time: number) => number, width: number) => SVGElement[]} */
function bands(of, top, scale, width) {
  /** @type {{ name: string, from: number, to: number }[]} */
  const found = [];
  of.step.forEach((/** @type {number} */ _, /** @type {number} */ at) => {
    const [name, from, to] = [of.sections[of.section[at]], of.begin[at], of.begin[at] + of.took[at]];
    const last = found.at(-1);
    if (last && last.name === name) last.to = to;
    else found.push({ name, from, to });
  });
  return found.flatMap(({ name, from, to }, at) => {
    const [left, right] = [Math.max(scale(from), 0), Math.min(scale(to), width)];
    if (right - left < 0.5) return [];
    const label = sectionName(name);
    const fits = right - left > 7 * label.length + 8;
    const box = draw("rect", { x: left, y: top, width: right - left, height: BAND - 2, class: at % 2 ? "band odd" : "band" }, draw("title", {}, line(label, inTime(to - from))));
    return [box, ...(fits ? [draw("text", { x: left + 4, y: top + BAND - 6, class: "band-name" }, label)] : [])];
  });
}

/** @type {(of: Run, row: number, top: number, scale: (time: number) => number, width: number, colours: Map<string, string>) => SVGElement[]} */
function lane(of, row, top, scale, width, colours) {
  /** @type {SVGElement[]} */
  const found = [];
  of.step.forEach((/** @type {number} */ _, /** @type {number} */ at) => {
    const [left, right] = [scale(of.begin[at]), scale(of.begin[at] + of.took[at])];
    if (right < 0 || left > width) return;
    const name = shortOp(of.ops[of.op[at]]);
    const isMine = row === 0;
    const took = inTime(of.took[at]);
    const box = draw("rect", {
      x: Math.max(left, -2), y: top, width: Math.max(Math.min(right, width + 2) - Math.max(left, -2) - 0.4, 0.6), height: LANE, fill: colours.get(groupOf(of, at)),
      class: isSought(of, at) ? "dispatch" : "dispatch other", role: isMine ? "option" : "presentation", id: isMine ? `dispatch-${at}` : null,
      "aria-selected": isMine ? String(at === chosen) : null, "aria-label": isMine ? line(name, took) : null, onclick: isMine ? () => pickDispatch(at) : null,
    }, draw("title", {}, line(name, sectionName(of.sections[of.section[at]]), took)));
    found.push(box);
    const share = Math.min(of.bandwidth_share[at] ?? 0, 1);
    if (share) found.push(draw("rect", { x: Math.max(left, -2), y: top + LANE + 2 + (RATE - 2) * (1 - share), width: Math.max(right - left - 0.4, 0.6), height: (RATE - 2) * share, class: "rate" }, draw("title", {}, t`${inPercent(share)} of the fastest read`)));
    if (right - left > 7 * name.length + 10) found.push(draw("text", { x: Math.max(left, 0) + 5, y: top + LANE / 2 + 4, class: "dispatch-name" }, name));
  });
  return found;
}

/** @type {(height: number, width: number) => SVGElement[]} */
function axis(height, width) {
  const rough = (view[1] - view[0]) / Math.max(2, width / 90);
  const ten = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((by) => by * ten).find((each) => each >= rough) ?? rough;
  const found = [];
  for (let time = Math.ceil(view[0] / step) * step; time < view[1]; time += step) {
    const x = (time - view[0]) / (view[1] - view[0]) * width;
    found.push(draw("line", { x1: x, x2: x, y1: height - AXIS, y2: height - AXIS + 4, class: "tick" }));
    if (x < width - 40) found.push(draw("text", { x: x + 2, y: height - 3, class: "tick-name" }, inTime(time)));
  }
  return found;
}

/** @param {number} at */
function pickDispatch(at) {
  chosen = at;
  if (run) {
    const [from, to] = [run.begin[at], run.begin[at] + run.took[at]];
    const span = view[1] - view[0];
    if (to > view[1] || from < view[0]) setView(from - span / 4, from - span / 4 + span);
  }
  paint();
  showDetails();
}

/** @param {number} by @param {number} [around] a place in the view, from 0 to 1 */
function zoomBy(by, around = 0.5) {
  if (!run) return;
  const most = Math.max(end(run), other ? end(other) : 0);
  const span = Math.min(Math.max((view[1] - view[0]) * by, most * LEAST_SHARE), most);
  const centre = view[0] + (view[1] - view[0]) * around;
  setView(centre - span * around, centre - span * around + span);
  paint();
}

/** The place of the chosen dispatch in the view, or the middle. */
function chosenAt() {
  if (!run || chosen < 0) return 0.5;
  const at = (run.begin[chosen] + run.took[chosen] / 2 - view[0]) / (view[1] - view[0]);
  return at >= 0 && at <= 1 ? at : 0.5;
}

/** @type {(from: number, to: number) => void} */
function setView(from, to) {
  if (!run) return;
  const most = Math.max(end(run), other ? end(other) : 0);
  const span = Math.min(to - from, most);
  const begin = Math.min(Math.max(from, 0), most - span);
  view = [begin, begin + span];
}

/** @param {KeyboardEvent} event */
function onkeydown(event) {
  if (!run) return;
  const last = run.step.length - 1;
  /** @type {Record<string, () => void>} */
  const keys = {
    ArrowRight: () => pickDispatch(Math.min(nextSought(chosen, 1), last)),
    ArrowLeft: () => pickDispatch(Math.max(nextSought(chosen, -1), 0)),
    Home: () => pickDispatch(0),
    End: () => pickDispatch(last),
    "+": () => zoomBy(0.5, chosenAt()),
    "=": () => zoomBy(0.5, chosenAt()),
    "-": () => zoomBy(2, chosenAt()),
    0: () => zoomBy(Infinity),
  };
  if (!keys[event.key] || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  keys[event.key]();
}

/** The next dispatch that is sought. @type {(from: number, step: number) => number} */
function nextSought(from, step) {
  if (!run) return from;
  for (let at = from + step; at >= 0 && at < run.step.length; at += step) if (isSought(run, at)) return at;
  return from < 0 ? 0 : from;
}

/** @param {WheelEvent} event */
function onwheel(event) {
  if (!drawing || !(event.ctrlKey || Math.abs(event.deltaX) > Math.abs(event.deltaY))) return; // else the page scrolls
  event.preventDefault();
  const { left, width } = drawing.getBoundingClientRect();
  if (event.ctrlKey) zoomBy(1.002 ** event.deltaY, (event.clientX - left) / width);
  else pan(event.deltaX / width);
}

/** @param {number} share of what is seen */
function pan(share) {
  const by = share * (view[1] - view[0]);
  setView(view[0] + by, view[1] + by);
  paint();
}

/** @param {PointerEvent} event */
function onpointerdown(event) {
  if (!drawing || event.button) return;
  const { width } = drawing.getBoundingClientRect();
  let x = event.clientX;
  const move = (/** @type {PointerEvent} */ { clientX }) => {
    if (Math.abs(clientX - x) < 3) return;
    pan((x - clientX) / width);
    x = clientX;
  };
  addEventListener("pointermove", move);
  addEventListener("pointerup", () => removeEventListener("pointermove", move), { once: true });
}

// ---- what is said beside it

function showDetails() {
  if (!run || chosen < 0) {
    parts.details.replaceChildren(make("p", { class: "quiet" }, t`Choose a dispatch for its grid, its bytes and the lines of torch that it stands for. Keys: arrows, + and −.`));
    return;
  }
  const of = run;
  const [x, y, z] = of.grid[chosen];
  const share = of.bandwidth_share[chosen];
  const moved = of.bytes_read[chosen] + of.bytes_written[chosen];
  const rate = of.took[chosen] ? moved / of.took[chosen] / 1000 : 0;
  const facts = [
    [t`Time`, line(inTime(of.took[chosen]), inPercent(of.took[chosen] / end(of)))],
    [t`Shader`, of.shaders[of.shader[chosen]]],
    [t`Place`, line(sectionName(of.sections[of.section[chosen]]), of.module[chosen])],
    [t`Grid`, t`${x} × ${y} × ${z} workgroups of ${of.workgroup_size[chosen]}`],
    [t`Reads`, inWords(of.bytes_read[chosen])],
    [t`Writes`, inWords(of.bytes_written[chosen])],
    [t`Rate`, line(`${decimal(rate, 1)} GB/s`, share !== null && t`${inPercent(share)} of the fastest read`)],
  ];
  parts.details.replaceChildren(
    make("h3", {}, `${of.ops[of.op[chosen]]}`),
    make("dl", {}, ...facts.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)])),
    make(
      "div", { class: "room-tools" },
      make("button", { type: "button", onclick: () => emit("panelwanted", { name: "graph", settings: { section: of.sections[of.section[chosen]], op: of.op_index[chosen], tokens: Math.min(of.tokens, MOST_TOKENS), context: of.context } }) }, t`Show in the graph`),
      of.workgroups[chosen] > 0 && make("button", { type: "button", onclick: () => emit("panelwanted", { name: "kernel_lab", settings: { step: of.step[chosen] } }) }, t`Open the kernel`),
    ),
    make("h4", {}, t`In torch`),
    make("pre", { class: "room-source", tabindex: 0, "aria-label": t`In torch` }, of.sources[of.source[chosen]]),
  );
}

/** @param {Run} of */
function sums(of) {
  /** @type {Map<string, { count: number, time: number, bytes: number }>} */
  const found = new Map();
  of.step.forEach((/** @type {number} */ _, /** @type {number} */ at) => {
    const sum = found.get(groupOf(of, at)) ?? { count: 0, time: 0, bytes: 0 };
    found.set(groupOf(of, at), { count: sum.count + 1, time: sum.time + of.took[at], bytes: sum.bytes + of.bytes_read[at] });
  });
  return found;
}

function showGroups() {
  if (!run) return;
  const [mine, theirs] = [sums(run), other && sums(other)];
  const total = end(run);
  const every = names();
  const said = (/** @type {string} */ name) => (kind === "op" ? shortOp(name) : kind === "section" ? sectionName(name) : name);
  const rows = every.filter((name) => mine.has(name) || theirs?.has(name)).map((name) => {
    const { count = 0, time = 0, bytes = 0 } = mine.get(name) ?? {};
    const before = theirs?.get(name)?.time ?? 0;
    const swatch = make("span", { class: "swatch", style: `background: ${colourOf(every.indexOf(name))}` });
    const bar = make("span", { class: "bar", style: `width: ${100 * time / total}%; background: ${colourOf(every.indexOf(name))}` });
    const share = make("span", { class: "bar-cell" }, bar, inPercent(time / total));
    const cells = [make("span", { class: "room-name", title: name }, swatch, said(name)), count, inTime(time), share];
    const more = theirs ? [inTime(before), `${time < before ? "−" : "+"}${inTime(Math.abs(time - before))}`] : [inWords(bytes)];
    return { time: Math.max(time, before), cells: [...cells, ...more] };
  }).sort((a, b) => b.time - a.time);
  const head = [{ op: t`Op`, section: t`Layer`, shader: t`Shader` }[kind] ?? "", t`Dispatches`, t`Time`, t`Share`, ...(theirs ? [t`Other run`, t`Difference`] : [t`Reads`])];
  parts.groups.replaceChildren(make("div", { class: "room-scroll", tabindex: 0, role: "region", "aria-label": t`Where the time goes` }, tableOf(t`Where the time goes`, head, rows.map(({ cells }) => cells), [1, 2, 4, 5])));
}

export const picture = () => drawing;

export function data() {
  if (!run) return null;
  const of = run;
  return of.step.map((/** @type {number} */ step, /** @type {number} */ at) => ({
    step, op: of.ops[of.op[at]], shader: of.shaders[of.shader[at]], section: of.sections[of.section[at]], module: of.module[at], microseconds: of.took[at], begin: of.begin[at],
    grid: of.grid[at], workgroup_size: of.workgroup_size[at], bytes_read: of.bytes_read[at], bytes_written: of.bytes_written[at], bandwidth_share: of.bandwidth_share[at],
    sources: of.sources[of.source[at]].split("\n"), timing: of.timing, tokens: of.tokens, context: of.context,
  }));
}
