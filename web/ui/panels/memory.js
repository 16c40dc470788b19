// The memory: what lies on the device, whose it is, and how long it is needed.

/** @import { Dock } from "../dock.js" */

import { styleSheet } from "../elements.js";
import { inWords, line, t } from "../wording.js";
import { ask, colourOf, draw, fill, inPercent, labelled, make, sectionName, tableOf } from "./room.js";

/** @typedef {{ label: string, nbytes: number, live_bytes: number, first: number, last: number }} Tenant */
/** @typedef {{ label: string, purpose: string, section: string, nbytes: number, parts: string[], tenants: Tenant[], is_lent: boolean }} Held */

const PURPOSES = ["constants", "state", "inputs", "intermediates", "uniforms"];
const [ROW, LABEL, AXIS] = [20, 74, 20];
const loadStyles = styleSheet("panels/room.css");

/** @type {HTMLElement} */
let root;
/** @type {Dock} */
let dock;
/** @type {Record<string, HTMLElement>} */
let parts;
/** @type {any} */
let view;
let section = "";
/** @type {SVGSVGElement | null} */
let drawing = null;

/** @param {HTMLElement} element @param {Record<string, any>} settings @param {Dock} given */
export async function show(element, settings, given) {
  dock = given;
  await loadStyles();
  if (root !== element) build(root = element);
  if (settings.section !== undefined) ({ section } = settings);
  await load();
}

/** @param {HTMLElement} element */
function build(element) {
  parts = {
    fault: make("p", { class: "error", role: "alert" }),
    facts: make("p", { class: "room-facts" }),
    totals: make("div"),
    title: make("h3", {}, t`When intermediates are needed`),
    canvas: make("div", { class: "room-canvas" }),
    buffers: make("div"),
    others: make("div"),
  };
  element.replaceChildren(...Object.values(parts), make("button", { type: "button", onclick: load }, t`Refresh`));
  new ResizeObserver(() => paint()).observe(parts.canvas);
}

async function load() {
  const found = await ask(dock, parts.fault, t`Looking at the memory…`, "memory");
  if (!found) return;
  view = found;
  dock.link(section ? { section } : {});
  const lent = view.buffers.reduce((/** @type {number} */ sum, /** @type {Held} */ { is_lent: isLent, nbytes }) => sum + (isLent ? nbytes : 0), 0);
  parts.facts.textContent = line(inWords(view.nbytes), lent && t`${inWords(lent)} more are lent by the model’s own graph`, t`${view.buffers.length} buffers`, t`intermediates would take ${inWords(view.unshared)} without sharing`);
  showTotals();
  paint();
  showBuffers();
  showOthers();
}

const purposeNames = () => ({ constants: t`Weights and tables`, state: t`Caches and states`, inputs: t`Inputs`, intermediates: t`Intermediates`, uniforms: t`Parameters` });

/** @param {string} purpose */
const nameOf = (purpose) => purposeNames()[/** @type {"constants"} */ (purpose)] ?? purpose;

/** @param {string} purpose */
const swatch = (purpose) => make("span", { class: "swatch", style: `background: ${colourOf(PURPOSES.indexOf(purpose))}` });

function showTotals() {
  const { totals, nbytes } = view;
  const whole = make("div", { class: "whole-bar", role: "img", "aria-label": PURPOSES.map((purpose) => line(nameOf(purpose), inWords(totals[purpose]))).join(", ") });
  for (const purpose of PURPOSES) whole.append(make("span", { title: line(nameOf(purpose), inWords(totals[purpose])), style: `flex-grow: ${totals[purpose]}; background: ${colourOf(PURPOSES.indexOf(purpose))}` }));
  const rows = PURPOSES.map((purpose) => [make("span", { class: "room-name" }, swatch(purpose), nameOf(purpose)), inWords(totals[purpose]), inPercent(totals[purpose] / (nbytes || 1))]);
  parts.totals.replaceChildren(whole, tableOf(t`Memory by purpose`, [t`Purpose`, t`Size`, t`Share`], [...rows, [t`All`, inWords(nbytes), ""]], [1, 2]));
}

/** Slots that intermediates share: each tenant from the op that makes it to the last that reads it. */
function paint() {
  const width = parts.canvas.clientWidth;
  if (!view || width < 100) return;
  /** @type {Held[]} */
  const slots = view.buffers.filter((/** @type {Held} */ { tenants }) => tenants.length).sort((/** @type {Held} */ a, /** @type {Held} */ b) => b.nbytes - a.nbytes);
  const height = slots.length * ROW + AXIS;
  const scale = (/** @type {number} */ op) => LABEL + op / (view.ops + 1) * (width - LABEL - 4);
  const next = draw("svg", { viewBox: `0 0 ${width} ${height}`, width, height, class: "room-drawing", role: "img", "aria-label": t`${slots.length} shared buffers, and when each holds what` });
  slots.forEach(({ nbytes, tenants }, row) => {
    next.append(draw("text", { x: 0, y: row * ROW + 14, class: "tick-name" }, inWords(nbytes)));
    tenants.forEach(({ label, first, last, nbytes: size, live_bytes: live }, at) => {
      const x = scale(first);
      next.append(draw("rect", { x, y: row * ROW + 2, width: Math.max(scale(last + 1) - x - 1, 1.5), height: ROW - 4, rx: 2, fill: colourOf(at), class: "tenant" }, draw("title", {}, line(label, t`ops ${first} to ${last}`, inWords(size), live < size && t`${inWords(live)} in the last call`))));
    });
  });
  const step = Math.max(1, Math.round(view.ops / 6 / 5) * 5);
  for (let op = 0; op < view.ops; op += step) next.append(draw("text", { x: scale(op), y: height - 4, class: "tick-name" }, op ? `${op}` : t`op 0`));
  if (drawing) drawing.replaceWith(next);
  else parts.canvas.append(next);
  drawing = next;
}

function showBuffers() {
  /** @type {Held[]} */
  const every = view.buffers;
  const known = [...new Set(every.map((each) => each.section))].sort((a, b) => a.localeCompare(b, undefined, { numeric: true }));
  if (!known.includes(section)) section = known[0] ?? "";
  const choice = make("select", { onchange: () => { section = choice.value; dock.link(section ? { section } : {}); showBuffers(); choice.focus(); } }, ...known.map((name) => make("option", { value: name, selected: name === section }, name ? sectionName(name) : t`Shared by several`)));
  const shown = every.filter((each) => each.section === section).sort((a, b) => b.nbytes - a.nbytes);
  const rows = shown.map((each) => {
    const what = each.parts.length ? each.parts.join(", ") : each.label;
    const life = each.tenants.length ? t`${each.tenants.length} in turns` : t`As long as the model`;
    return [make("span", { class: "room-name", title: each.label }, swatch(each.purpose), what), inWords(each.nbytes), each.is_lent ? t`Lent by the model` : life];
  });
  const old = parts.buffers.querySelector("select");
  const hadFocus = old === document.activeElement && !!old;
  parts.buffers.replaceChildren(
    make("h3", {}, t`Buffers`),
    make("div", { class: "room-form" }, labelled(t`Section`, choice)),
    make("div", { class: "room-scroll", tabindex: 0, role: "region", "aria-label": t`Buffers` }, tableOf(t`Buffers`, [t`Holds`, t`Size`, t`Lifetime`], rows, [1])),
  );
  if (hadFocus) choice.focus();
}

function showOthers() {
  const rows = view.others.map((/** @type {{ owner: string, count: number, nbytes: number }} */ { owner, count, nbytes }) => [owner, count, inWords(nbytes)]);
  fill(parts.others, rows.length > 0 && make("h3", {}, t`Also on this device`), rows.length > 0 && tableOf(t`Also on this device`, [t`Owner`, t`Buffers`, t`Size`], rows, [1, 2]));
}

export const picture = () => drawing;

export const data = () => view && view.buffers.map((/** @type {Held} */ each) => ({ ...each }));
