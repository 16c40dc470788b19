// What the panels of the engine room share: elements, colours, numbers in words, and the call to the engine.

/** @import { Dock } from "../dock.js" */

import { decimal, faultOf, t } from "../wording.js";

const SVG = "http://www.w3.org/2000/svg";
// Told apart by all kinds of sight, on light and dark grounds: Okabe and Ito's, and shades between.
const CATEGORIES = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8c7ae6", "#b59f00", "#4c8c8a", "#a0785a"];

/** @typedef {Record<string, string | number | boolean | null | undefined | ((event: any) => void)>} Given */
/** @typedef {(Node | string | null | undefined | false)[]} Children */

/** @type {(index: number) => string} */
export const colourOf = (index) => CATEGORIES[index % CATEGORIES.length];

/**
 * Makes an element: what begins with "on" is a listener, and the rest are attributes; those that are null, undefined or false are left out.
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Given} [given]
 * @param {Children} children
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function make(tag, given = {}, ...children) {
  return /** @type {HTMLElementTagNameMap[Tag]} */ (filled(document.createElement(tag), given, children));
}

/**
 * The same for a drawing.
 * @template {keyof SVGElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Given} [given]
 * @param {Children} children
 * @returns {SVGElementTagNameMap[Tag]}
 */
export function draw(tag, given = {}, ...children) {
  return /** @type {SVGElementTagNameMap[Tag]} */ (filled(document.createElementNS(SVG, tag), given, children));
}

/** @type {(element: Element, given: Given, children: Children) => Element} */
function filled(element, given, children) {
  for (const [name, value] of Object.entries(given)) {
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else if (name === "style") /** @type {HTMLElement} */ (element).style.cssText = String(value); // as an attribute the page's policy forbids it
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.filter((child) => child instanceof Node || typeof child === "string"));
  return element;
}

/** Puts these into an element in place of what is there. @type {(element: HTMLElement, ...children: Children) => void} */
export const fill = (element, ...children) => element.replaceChildren(...children.filter((child) => child instanceof Node || typeof child === "string"));

/** Microseconds in words. @param {number} time */
export function inTime(time) {
  if (time >= 1e6) return `${decimal(time / 1e6, 2)} s`;
  if (time >= 1000) return `${decimal(time / 1000, time >= 1e5 ? 0 : 1)} ms`;
  return `${decimal(time, time >= 100 ? 0 : 1)} µs`;
}

/** @param {number} share */
export const inPercent = (share) => `${decimal(100 * share, share >= 0.1 ? 0 : 1)} %`;

/** An op's name without what is the same for all. @param {string} name */
export const shortOp = (name) => name.replace(/^(inpage|aten|et_vk|users)\./, "").replace(/\.(default|Tensor|int)$/, "");

/** @type {(dims: number[]) => string} */
export const inDims = (dims) => `[${dims.join(", ")}]`;

/** A section in the user's language. @param {string} section */
export function sectionName(section) {
  if (section === "embedding") return t`Embedding`;
  if (section === "head") return t`Head`;
  return section ? t`Layer ${Number(section.slice("layer ".length))}` : t`Graph`;
}

/**
 * Asks the engine, with a line of progress and a way to stop. Faults are told in the element; then the answer is undefined.
 * @param {Dock} dock
 * @param {HTMLElement} fault
 * @param {string} words what is being done
 * @param {string} view
 * @param {Record<string, unknown>} [fields]
 */
export async function ask(dock, fault, words, view, fields = {}) {
  const abort = new AbortController();
  const stop = () => abort.abort();
  fault.textContent = "";
  dock.progress(words, null, stop);
  try {
    const onProgress = (/** @type {{ done: number, total: number }} */ { done, total }) => dock.progress(words, done / total, stop);
    return await inpage.glass(view, fields, { signal: abort.signal, onProgress });
  } catch (error) {
    if (!abort.signal.aborted) fault.textContent = faultOf(error);
    return undefined;
  } finally {
    dock.progress();
  }
}

/**
 * A table with a heading for each column; numbers stand to the right.
 * @param {string} caption for those who cannot see it
 * @param {string[]} head
 * @param {(string | number | Node)[][]} rows
 * @param {number[]} [right] columns of numbers
 */
export function tableOf(caption, head, rows, right = []) {
  const cell = (/** @type {string | number | Node} */ value, /** @type {number} */ at) => (
    make("td", { class: right.includes(at) && "number" }, value instanceof Node ? value : String(value))
  );
  return make(
    "table", { class: "room-table" },
    make("caption", { class: "sr" }, caption),
    make("thead", {}, make("tr", {}, ...head.map((name, at) => make("th", { scope: "col", class: right.includes(at) && "number" }, name)))),
    make("tbody", {}, ...rows.map((row) => make("tr", {}, ...row.map(cell)))),
  );
}

/** A field with its label. @param {string} label @param {HTMLElement} field */
export const labelled = (label, field) => make("label", {}, make("span", {}, label), field);

/** @param {string} name @param {Given} given */
export const numberField = (name, given) => make("input", { name, type: "number", required: true, inputmode: "numeric", ...given });

/** Tokens and the context before them, as a view takes them. @param {HTMLFormElement} form */
export function callOf(form) {
  const given = new FormData(form);
  return { tokens: Number(given.get("tokens")), context: Number(given.get("context")) };
}

/** Puts those of a link, or of another panel, into the fields. @param {HTMLFormElement} form @param {Record<string, any>} settings */
export function takeCall(form, settings) {
  for (const name of ["tokens", "context"]) if (settings[name] !== undefined) /** @type {HTMLInputElement} */ (form.elements.namedItem(name)).value = settings[name];
}

/** Those of a link, or the usual ones. @param {Record<string, any>} settings */
export const callFields = ({ tokens = 1, context = 128 }) => [
  labelled(t`Tokens`, numberField("tokens", { min: 1, value: tokens })),
  labelled(t`After`, numberField("context", { min: 0, value: context })),
];

// ---- colours for numbers, told apart by all kinds of sight and in grey: points of matplotlib's viridis

const POINTS = [[68, 1, 84], [71, 45, 123], [59, 82, 139], [44, 114, 142], [33, 145, 140], [40, 174, 128], [94, 201, 98], [173, 220, 48], [253, 231, 37]];

/** Gives the colour of a share from 0 to 1. @param {number} share */
export function colourAt(share) {
  const place = Math.min(Math.max(share || 0, 0), 1) * (POINTS.length - 1);
  const at = Math.min(Math.floor(place), POINTS.length - 2);
  const mixed = POINTS[at].map((from, channel) => Math.round(from + (place - at) * (POINTS[at + 1][channel] - from)));
  return `rgb(${mixed.join(" ")})`;
}

/** Whether dark letters can be read on the colour of a share; else light ones can. @param {number} share */
export const isLight = (share) => share > 0.55;

/** Gives a colour of a scale with a middle: blue below zero, orange above, for shares from −1 to 1. @param {number} share */
export function colourAround(share) {
  const strength = Math.min(Math.abs(share) || 0, 1);
  const [red, green, blue] = share < 0 ? [33, 102, 172] : [200, 90, 10];
  return `rgb(${[red, green, blue].map((channel) => Math.round(247 + strength * (channel - 247))).join(" ")})`;
}
