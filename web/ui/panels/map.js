// The map: the user's chats, or the lines of a file, near each other where the model's embeddings of them are alike.

/** @import { GlassArray } from "../../inpage.js" */
/** @import { Dock } from "../dock.js" */
/** @import { Mark } from "./scatter.js" */
/** @import { Spot, Texts } from "./map_texts.js" */

import { chats, isDeleted, titleOf } from "../chats.js";
import { styleSheet } from "../elements.js";
import { emit } from "../events.js";
import { faultOf, line, t } from "../wording.js";
import { watched } from "./inside.js";
import { LISTS, namesOf, ofChats, ofFile, ofLines, ofMessages } from "./map_texts.js";
import { colourOf, draw, fill, inPercent, labelled, make } from "./room.js";
import { scatter, shapeOf } from "./scatter.js";

/** An answer of the view "map". @typedef {{ model: string, at: number[], is_cut: GlassArray, principal: GlassArray, neighbours: GlassArray, shares: number[], groups: GlassArray }} Places */
/** What one looks at, and what it was made of. @typedef {Places & { spots: Spot[], all: number, source: string, names: string[] }} Found */
/** A kind of points: those of a group, a chat, a role. @typedef {{ name: string, colour: string, kind: number }} Kind */

const MOST_COLOURS = 8; // the rest is grey
const OTHERS = "#8a8f98";
const [LEAST_HEIGHT, MOST_HEIGHT, SHARE] = [260, 540, 0.72]; // of the drawing, and of its width
const MOST_TOLD = 600; // letters of a text
const loadStyles = [styleSheet("panels/room.css"), styleSheet("panels/map.css")];

/** @type {HTMLElement} */
let root;
/** @type {Dock} */
let dock;
/** @type {HTMLFormElement} */
let form;
/** @type {Record<string, HTMLElement>} */
let parts;
/** @type {Record<"source" | "layout" | "colour", HTMLSelectElement>} */
let selects;
/** @type {HTMLInputElement} */
let search;
/** @type {ReturnType<typeof scatter>} */
let plane;
/** @type {File | undefined} */
let file;
/** @type {Found | undefined} */
let found;
/** @type {Kind[]} */
let kinds = [];
let isReading = false; // until it is done, or stopped, no other map is made
let only = ""; // the kind that is looked at alone
let chosen = -1;

/** @param {HTMLElement} element @param {Record<string, any>} settings @param {Dock} given */
export async function show(element, settings, given) {
  dock = given;
  await Promise.all(loadStyles.map((load) => load()));
  if (root !== element) build(root = element);
  for (const [name, select] of Object.entries(selects)) {
    if ([...select.options].some(({ value }) => value === settings[name])) select.value = settings[name];
  }
  showSource();
  link();
}

const link = () => dock.link({ source: selects.source.value, layout: selects.layout.value, colour: selects.colour.value });

/** @type {(name: string, options: [string, string][], onchange: () => void) => HTMLSelectElement} */
const choice = (name, options, onchange) => make("select", { name, onchange: () => { onchange(); link(); } }, ...options.map(([value, words]) => make("option", { value }, words)));

/** @param {HTMLElement} element */
function build(element) {
  selects = {
    source: choice("source", [["chats", t`My chats`], ["messages", t`Messages of my chats`], ["file", t`Lines of a file`], ["own", t`Lines I write here`]], showSource),
    layout: choice("layout", [["neighbours", t`Neighbours (t-SNE)`], ["principal", t`Largest differences (PCA)`]], () => { place(); showFacts(); }),
    colour: choice("colour", [["group", t`Groups that were found`], ["chat", t`Chat`], ["role", t`Who wrote it`]], () => { only = ""; colour(); mark(); }),
  };
  const chooser = make("input", { type: "file", accept: ".txt,.text,.md,.markdown,.csv,.tsv,.jsonl,.ndjson,.log", "aria-label": t`File`, onchange: () => takeFile(chooser.files?.[0]) });
  const own = make("textarea", { name: "own", rows: 5, "aria-label": t`Lines`, placeholder: t`One text a line` });
  form = make(
    "form", { class: "map-form", onsubmit: (event) => { event.preventDefault(); look(); } },
    make("div", { class: "room-form" }, labelled(t`Map of`, selects.source), make("button", { class: "primary" }, t`Draw the map`)),
    make("div", { class: "map-file", "data-source": "file" }, chooser, make("p", { class: "room-facts" }, t`Text, Markdown, CSV or JSON Lines: choose a file or drop it here. It stays on this device.`)),
    make("div", { "data-source": "own" }, own),
  );
  search = make("input", { type: "search", "aria-label": t`Search`, placeholder: t`Search these texts`, oninput: mark });
  const zoom = make(
    "div", { class: "room-zoom" },
    ...[[t`Zoom in`, "+", 1.5], [t`Zoom out`, "−", 1 / 1.5], [t`Whole map`, "⤢", 0]].map(([name, sign, by]) => (
      make("button", { type: "button", "aria-label": String(name), title: String(name), onclick: () => plane.zoomBy(Number(by)) }, String(sign))
    )),
  );
  plane = scatter(t`Texts as points`, { look: tell, choose: (at) => { chosen = at; tell(); }, enter: openChat });
  parts = {
    fault: make("p", { class: "error", role: "alert" }),
    tools: make("div", { class: "room-form room-tools map-tools", hidden: true }, labelled(t`Places`, selects.layout), labelled(t`Colour`, selects.colour), search, zoom),
    facts: make("p", { class: "room-facts" }),
    plane: make("div", { class: "map-plane", hidden: true }, plane.drawing),
    legend: make("ul", { class: "map-legend" }),
    told: make("div", { class: "map-told", "aria-live": "polite", hidden: true }),
  };
  element.replaceChildren(form, ...Object.values(parts));
  element.ondrop = drop;
  new ResizeObserver(fit).observe(parts.plane);
}

function fit() {
  const { clientWidth: width } = parts.plane;
  if (width > 50) plane.resize(width, Math.round(Math.min(Math.max(width * SHARE, LEAST_HEIGHT), MOST_HEIGHT)));
}

function showSource() {
  for (const each of form.querySelectorAll("[data-source]")) /** @type {HTMLElement} */ (each).hidden = /** @type {HTMLElement} */ (each).dataset.source !== selects.source.value;
}

/** Takes a text file that is dropped on the panel: the page opens models, and attaches the rest. @param {DragEvent} event */
function drop(event) {
  const dropped = [...event.dataTransfer?.files ?? []].find(({ name }) => LISTS.test(name));
  if (!dropped) return;
  event.preventDefault();
  selects.source.value = "file";
  showSource();
  link();
  takeFile(dropped);
}

/** @param {File | undefined} next */
async function takeFile(next) {
  if (!next) return;
  file = next;
  await look();
}

/** @returns {Promise<Texts>} */
async function textsOf() {
  const source = selects.source.value;
  if (source === "chats") return ofChats();
  if (source === "messages") return ofMessages();
  if (source === "own") return ofLines(String(new FormData(form).get("own")));
  return file ? ofFile(file) : { spots: [], all: 0 };
}

// ---- the map is made

async function look() {
  if (isReading) return;
  const source = selects.source.value;
  const texts = await textsOf().catch((error) => { parts.fault.textContent = faultOf(error); });
  if (!texts) return;
  const { spots, all } = texts;
  if (!spots.length) {
    parts.fault.textContent = { chats: t`There are no chats yet.`, messages: t`There are no chats yet.`, own: t`Write some lines first.` }[source] ?? (file ? t`${file.name} has no lines with text.` : t`Choose a file first.`);
    return;
  }
  const words = t`Reading ${spots.length} text…|Reading ${spots.length} texts…`;
  isReading = true;
  const answer = await watched(dock, parts.fault, words, (watch) => inpage.glass("map", { texts: spots.map(({ text }) => text) }, watch));
  isReading = false;
  if (!answer) return;
  const groups = Math.max(...answer.groups.data) + 1;
  const placed = answer.at.map((/** @type {number} */ at) => spots[at]); // blank ones have no place
  found = { ...answer, spots: placed, all, source, names: namesOf(placed, answer.groups.data, groups) };
  [only, chosen, search.value] = ["", -1, ""];
  for (const part of ["tools", "plane", "told"]) parts[part].hidden = false;
  const isOfMessages = source === "messages";
  if (!isOfMessages) selects.colour.value = "group";
  /** @type {HTMLElement} */ (selects.colour.parentElement).hidden = !isOfMessages;
  colour();
  fit();
  place();
  showFacts();
  tell();
}

function place() {
  if (found) plane.show(marks(), found[selects.layout.value === "principal" ? "principal" : "neighbours"].data, chosen);
}

function showFacts() {
  if (!found) return;
  const { spots, all, source, is_cut: cut, shares, model } = found;
  const count = spots.length;
  const shown = {
    chats: all > count ? t`the ${count} most recent of ${all} chats` : t`${count} chat|${count} chats`,
    messages: all > count ? t`${count} of ${all} messages, from the most recent chats` : t`${count} message|${count} messages`,
  }[source] ?? (all > count ? t`${count} of ${all} lines, evenly spread` : t`${count} line|${count} lines`);
  const isCut = [...cut.data].filter(Boolean).length;
  const meaning = selects.layout.value === "principal"
    ? t`these two directions hold ${inPercent(shares[0] + shares[1])} of the differences`
    : t`points that are near are alike; the distance between groups says little`;
  parts.facts.textContent = line(shown, model, isCut > 0 && t`only the first words of ${isCut} long text are read|only the first words of ${isCut} long texts are read`, meaning);
}

// ---- colours

/** @param {string | undefined} role */
const nameOfRole = (role) => (role === "user" ? t`You` : t`Answer`);

/** The kind of each text, and all kinds, the most frequent first. @returns {{ name: string, of: number[] }[]} */
function sorted() {
  if (!found) return [];
  const { spots, groups, names } = found;
  const nameOf = {
    group: (/** @type {number} */ at) => line(t`Group ${groups.data[at] + 1}`, names[groups.data[at]]),
    chat: (/** @type {number} */ at) => (spots[at].chat ? titleOf(spots[at].chat) : ""),
    role: (/** @type {number} */ at) => nameOfRole(spots[at].role),
  }[selects.colour.value];
  const keyOf = (/** @type {number} */ at) => (selects.colour.value === "chat" ? spots[at].chat?.id : nameOf?.(at));
  /** @type {Map<string | undefined, { name: string, of: number[] }>} */
  const all = new Map();
  spots.forEach((_, at) => {
    const kind = all.get(keyOf(at)) ?? { name: nameOf?.(at) ?? "", of: [] };
    kind.of.push(at);
    all.set(keyOf(at), kind);
  });
  const isOfGroups = selects.colour.value === "group";
  return [...all.values()].sort((a, b) => (isOfGroups ? groups.data[a.of[0]] - groups.data[b.of[0]] : b.of.length - a.of.length));
}

/** Gives each text its kind, and says what they are. */
function colour() {
  if (!found) return;
  const all = sorted();
  kinds = [];
  const legend = all.map(({ name, of }, at) => {
    const kind = at < MOST_COLOURS ? { name, colour: colourOf(at), kind: at } : { name: t`Others`, colour: OTHERS, kind: 0 };
    for (const each of of) kinds[each] = kind;
    return { ...kind, count: of.length };
  });
  const rest = legend.splice(MOST_COLOURS);
  if (rest.length) legend.push({ ...rest[0], count: rest.reduce((sum, { count }) => sum + count, 0) });
  const swatch = (/** @type {Kind} */ kind) => draw("svg", { viewBox: "-7 -7 14 14", width: 14, height: 14, "aria-hidden": "true" }, draw("path", { d: shapeOf(kind.kind), fill: kind.colour }));
  fill(parts.legend, ...(legend.length > 1 ? legend : []).map((kind) => make("li", {}, make(
    "button", { type: "button", "aria-pressed": String(kind.name === only), onclick: () => { only = kind.name === only ? "" : kind.name; colour(); mark(); } },
    swatch(kind), make("span", { class: "name" }, kind.name), make("span", { class: "quiet" }, String(kind.count)),
  ))));
}

/** @returns {Mark[]} */
function marks() {
  const words = search.value.trim().toLocaleLowerCase();
  return (found?.spots ?? []).map(({ text, label }, at) => ({
    label, name: line(label, kinds[at].name), colour: kinds[at].colour, shape: kinds[at].kind,
    isDim: (!!words && !`${label}\n${text}`.toLocaleLowerCase().includes(words)) || (!!only && kinds[at].name !== only),
  }));
}

function mark() {
  plane.mark(marks());
  tell();
}

// ---- what is said beside it

/** Says what is pointed at, or else what is chosen. @param {number} [pointed] */
function tell(pointed = -1) {
  if (!found) return;
  const at = pointed >= 0 ? pointed : chosen;
  const spot = found.spots[at];
  if (!spot) {
    const isSought = search.value.trim() || only;
    const count = marks().filter(({ isDim }) => !isDim).length;
    fill(parts.told, make("p", { class: "quiet" }, isSought ? t`${count} text is highlighted.|${count} texts are highlighted.` : hint()));
    return;
  }
  const { text, chat, role, line: number } = spot;
  const where = new Set([number ? t`Line ${number}` : chat && titleOf(chat), role && nameOfRole(role), kinds[at].name]);
  fill(
    parts.told,
    make("p", { class: "quiet" }, line(...where)),
    make("p", { class: "text" }, text.length > MOST_TOLD ? `${text.slice(0, MOST_TOLD)}…` : text),
    chat && make("button", { type: "button", onclick: () => openChat(at) }, t`Open this chat`),
  );
}

function hint() {
  const isOfChats = !!found?.spots[0]?.chat;
  if (matchMedia("(pointer: coarse)").matches) return isOfChats ? t`Tap a point to read its text, and once more to open its chat.` : t`Tap a point to read its text.`;
  if (isOfChats) return t`Point at a text to read it; click it to open its chat. Keys: arrows, Enter, + and −. Ctrl and the wheel zoom.`;
  return t`Point at a text to read it. Keys: arrows, + and −. Ctrl and the wheel zoom.`;
}

/** @param {number} at */
function openChat(at) {
  const id = found?.spots[at].chat?.id;
  const chat = id && chats.get(id);
  if (!chat) return;
  if (isDeleted(chat)) parts.fault.textContent = t`This chat was deleted.`;
  else emit("chatwanted", chat);
}

export const picture = () => (found ? plane.drawing : null);

/** Gives a row for each text, with both of its places. */
export function data() {
  if (!found) return null;
  const { spots, principal, neighbours, groups } = found;
  return spots.map(({ text, chat, role, line: number }, at) => ({
    ...(number ? { line: number } : { chat: chat && titleOf(chat) }), ...(role ? { role } : {}), text, group: groups.data[at] + 1,
    neighbours_x: neighbours.data[2 * at], neighbours_y: neighbours.data[2 * at + 1], principal_x: principal.data[2 * at], principal_y: principal.data[2 * at + 1],
  }));
}
