// The dock: a region beside the chat, or below it on narrow screens, that shows one of the panels in panels/table.js at a time.
// It is closed without a loss: a panel keeps its elements, and is as it was when it is opened again.

import { giveFile } from "./chat_files.js";
import { page, partOf, styleSheet } from "./elements.js";
import { on } from "./events.js";
import { arrived, copyText } from "./notices.js";
import { table } from "./panels/table.js";
import { keep, recall } from "./settings/settings.js";
import { faultOf } from "./wording.js";

/** @typedef {Record<string, any>} PanelSettings as the one who wants it gives them, or texts as they come from a link */

/**
 * The dock as a panel sees it.
 * @typedef {object} Dock
 * @property {(settings: PanelSettings) => void} link says what the panel's link carries: never a text of the user's, unless they chose so
 * @property {(words?: string, share?: number | null, stop?: () => void) => void} progress shows a line while something takes its time; none without words
 */

/**
 * The script of a panel. Its element is the same each time; `show` is called whenever it is opened, also for other settings.
 * @typedef {object} Panel
 * @property {(element: HTMLElement, settings: PanelSettings, dock: Dock) => unknown} show
 * @property {() => void} [hide] stops what nobody sees
 * @property {() => SVGSVGElement | HTMLCanvasElement | null} [picture] what is exported as a picture, where there is one
 * @property {() => unknown} [data] what is exported: as JSON; a list of flat objects as CSV, too
 */

/**
 * A panel that was opened.
 * @typedef {object} Opened
 * @property {HTMLElement} element
 * @property {Panel} [panel] once its script is here
 * @property {PanelSettings} linked
 * @property {Parameters<Dock["progress"]>} progress
 * @property {string} fault
 */

const [LEAST, MOST] = [20, 80]; // percent of the window
const STEP = 2;
const below = matchMedia("(max-width: 64rem)"); // as dock.css has it

const loadStyles = styleSheet("dock.css");
/** @type {Map<string, Opened>} */
const opened = new Map();
let shown = ""; // the panel that is open
/** @type {Element | null} */
let before = null; // what had the focus

document.querySelector("main")?.after(page.dockFrame.content);
const { dock, dockClose, dockExport, dockExports, dockFault, dockLink, dockLook, dockPanels, dockProgress, dockSize, dockTabs, dockTitle } = page;

/** Opens a panel; without a name, the last one, or closes the dock. @param {{ name: string, settings: PanelSettings }} wanted */
export async function showPanel({ name, settings }) {
  if (!name && shown) return close();
  const known = [name, recall("inpagePanel") ?? "", ...Object.keys(table)].find((each) => Object.hasOwn(table, each));
  if (!known || !await arrived(loadStyles().then(() => true))) return;
  const isClicked = navigator.userActivation?.isActive;
  if (!shown) before = document.activeElement;
  if (known !== shown) hide();
  shown = known;
  keep("inpagePanel", known);
  const mine = opened.get(known) ?? make(known);
  setSize();
  showTabs();
  showFrame();
  if (isClicked) tabOf(known)?.focus();
  mine.panel ??= await arrived(table[known].load()) ?? undefined;
  if (shown !== known || !mine.panel) return; // the user went on to another, or it did not come
  mine.fault = "";
  const given = {
    link: (/** @type {PanelSettings} */ linked) => { mine.linked = linked; if (shown === known) showAddress(); },
    progress: (/** @type {Opened["progress"]} */ ...progress) => { mine.progress = progress; if (shown === known) showProgress(); },
  };
  try {
    await mine.panel.show(mine.element, settings, given);
  } catch (error) {
    mine.fault = faultOf(error);
    console.error(error);
  }
  if (shown === known) showFrame();
}

/** @param {string} name */
function make(name) {
  const element = document.createElement("div");
  Object.assign(element, { id: `panel-${name}`, className: "panel", role: "tabpanel" });
  element.setAttribute("aria-labelledby", `tab-${name}`);
  dockPanels.append(element);
  /** @type {Opened} */
  const mine = { element, linked: {}, progress: [], fault: "" };
  opened.set(name, mine);
  return mine;
}

function hide() {
  opened.get(shown)?.panel?.hide?.();
  dockExports.hidePopover();
}

function close() {
  if (!shown) return;
  const hadFocus = dock.contains(document.activeElement);
  hide();
  shown = "";
  showFrame();
  if (inpage.loaded) inpage.glass("close").catch(() => {}); // nobody looks at what it keeps on the device
  if (!hadFocus) return;
  const isThere = before?.isConnected && before !== document.body && before.checkVisibility();
  /** @type {HTMLElement} */ (isThere ? before : page.draft).focus();
}

// ---- the frame

/** @param {string} name */
const tabOf = (name) => document.getElementById(`tab-${name}`);

function showTabs() {
  dockTabs.replaceChildren(...Object.entries(table).map(([name, { title }]) => {
    const tab = Object.assign(document.createElement("button"), { id: `tab-${name}`, type: "button", role: "tab", textContent: title() });
    const isOpen = name === shown;
    tab.ariaSelected = String(isOpen);
    tab.tabIndex = isOpen ? 0 : -1;
    if (opened.has(name)) tab.setAttribute("aria-controls", `panel-${name}`);
    tab.onclick = () => showPanel({ name, settings: {} });
    return tab;
  }));
  tabOf(shown)?.scrollIntoView({ block: "nearest", inline: "nearest" });
}

function showFrame() {
  const mine = opened.get(shown);
  document.body.toggleAttribute("data-docked", !!mine);
  dock.hidden = !mine;
  page.openDock.ariaExpanded = String(!!mine);
  for (const [name, { element }] of opened) element.hidden = name !== shown;
  showAddress();
  if (!mine) return;
  dockTitle.textContent = table[shown].title();
  dockLook.textContent = table[shown].look();
  dockFault.textContent = mine.fault;
  dockExport.hidden = !mine.panel?.picture && !mine.panel?.data;
  showProgress();
}

function showProgress() {
  const [words = "", share = null, stop] = opened.get(shown)?.progress ?? [];
  const bar = /** @type {HTMLProgressElement} */ (dockProgress.querySelector("progress"));
  const button = /** @type {HTMLButtonElement} */ (dockProgress.querySelector("button"));
  dockProgress.hidden = !words;
  partOf(dockProgress, "words").textContent = words;
  if (share === null) bar.removeAttribute("value");
  else bar.value = share;
  button.hidden = !stop;
  button.onclick = stop ?? null;
}

/** The address leads back here: after a reload, too. */
function showAddress() {
  const isLinked = location.hash.startsWith("#panel=");
  if (shown || isLinked) history.replaceState(history.state, "", shown ? linkOf(shown) : location.pathname + location.search);
}

/** @param {string} name */
const linkOf = (name) => `${location.pathname}${location.search}#${new URLSearchParams({ panel: name, ...opened.get(name)?.linked })}`;

dockClose.onclick = close;
dockLink.onclick = () => copyText(new URL(linkOf(shown), location.href).href);
on("panelunwanted", close);

// ---- keys

const KEYS = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity };

dockTabs.onkeydown = (/** @type {KeyboardEvent} */ event) => {
  const step = KEYS[/** @type {keyof typeof KEYS} */ (event.key)];
  if (!step) return;
  event.preventDefault();
  const tabs = /** @type {HTMLElement[]} */ ([...dockTabs.children]);
  const at = tabs.findIndex((tab) => tab === document.activeElement) + step;
  tabs[Number.isFinite(at) ? (at + tabs.length) % tabs.length : step < 0 ? 0 : tabs.length - 1].focus();
};

/** Escape leaves a field first, then the dock; what is written or computed in it stays. */
dock.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  event.stopPropagation(); // the chat's answer goes on
  if (event.defaultPrevented || event.isComposing) return;
  event.preventDefault();
  const isField = /** @type {Element} */ (event.composedPath()[0]).closest("input, textarea, select, [contenteditable=true]");
  if (isField) tabOf(shown)?.focus();
  else close();
});

// ---- its size

const kept = () => (below.matches ? "inpageDockHeight" : "inpageDockWidth");

/** In percent of the window; without a number, what was chosen last. @param {number} [wanted] */
function setSize(wanted) {
  const found = wanted ?? (Number(recall(kept())) || (below.matches ? 50 : 45));
  const size = Math.min(Math.max(found, LEAST), MOST);
  document.body.style.setProperty("--dock-size", `${size}${below.matches ? "dvh" : "vw"}`);
  dockSize.ariaOrientation = below.matches ? "horizontal" : "vertical";
  Object.assign(dockSize, { ariaValueNow: String(Math.round(size)), ariaValueMin: String(LEAST), ariaValueMax: String(MOST) });
  if (wanted !== undefined) keep(kept(), size.toFixed(1));
  return size;
}

below.addEventListener("change", () => setSize());

dockSize.onpointerdown = (/** @type {PointerEvent} */ event) => {
  if (event.button) return;
  event.preventDefault();
  dockSize.setPointerCapture(event.pointerId);
  dockSize.onpointermove = (/** @type {PointerEvent} */ { clientX, clientY }) => {
    setSize(below.matches ? 100 * (1 - clientY / innerHeight) : 100 * (1 - clientX / innerWidth));
  };
};
dockSize.onlostpointercapture = () => { dockSize.onpointermove = null; };
dockSize.ondblclick = () => { keep(kept(), ""); setSize(); };
dockSize.onkeydown = (/** @type {KeyboardEvent} */ event) => {
  const size = setSize();
  const [more, less] = below.matches ? ["ArrowUp", "ArrowDown"] : ["ArrowLeft", "ArrowRight"];
  const wanted = { [more]: size + STEP, [less]: size - STEP, Home: LEAST, End: MOST }[event.key];
  if (wanted === undefined) return;
  event.preventDefault();
  setSize(wanted);
};

// ---- exports

dockExports.addEventListener("beforetoggle", (event) => {
  if (/** @type {ToggleEvent} */ (event).newState !== "open") return;
  const { picture, data } = opened.get(shown)?.panel ?? {};
  const drawn = picture?.();
  const value = data?.();
  const isTable = Array.isArray(value) && value.every((row) => row && typeof row === "object");
  const kinds = { png: drawn, svg: drawn instanceof SVGSVGElement, json: value !== undefined && value !== null, csv: isTable };
  for (const button of dockExports.querySelectorAll("button")) button.hidden = !kinds[/** @type {keyof kinds} */ (button.dataset.kind)];
  partOf(dockExports, "nothing").hidden = Object.values(kinds).some(Boolean);
  const { bottom, right } = dockExport.getBoundingClientRect();
  dockExports.style.setProperty("top", `${bottom + 4}px`);
  dockExports.style.setProperty("right", `${innerWidth - right}px`);
});
dockExports.onclick = async (/** @type {MouseEvent} */ { target }) => {
  const kind = /** @type {HTMLElement} */ (target).closest("button")?.dataset.kind;
  if (!kind) return;
  dockExports.hidePopover();
  const { picture, data } = opened.get(shown)?.panel ?? {};
  await exportAs(kind, `inpage-${shown}`, kind === "png" || kind === "svg" ? picture?.() : data?.());
};

// ---- what a panel shows, as files: pictures with the styles that they have in the page, data as JSON or CSV

const STYLES = "color dominant-baseline fill fill-opacity font-family font-size font-style font-weight letter-spacing opacity paint-order shape-rendering stroke stroke-dasharray stroke-linecap stroke-linejoin stroke-opacity stroke-width text-anchor visibility".split(" ");
const DENSITY = 2; // pixels of a picture for one of the page

/** @type {(kind: string, name: string, given: any) => Promise<void>} */
async function exportAs(kind, name, given) {
  if (!given) return;
  if (kind === "svg") giveFile(`${name}.svg`, svgText(given), "image/svg+xml");
  if (kind === "png") giveFile(`${name}.png`, await pngOf(given), "image/png");
  if (kind === "json") giveFile(`${name}.json`, JSON.stringify(given, plain, 1), "application/json");
  if (kind === "csv") giveFile(`${name}.csv`, csvOf(given), "text/csv");
}

/** Arrays of numbers are lists; what is not finite is a text. @type {(key: string, value: any) => any} */
function plain(key, value) {
  if (ArrayBuffer.isView(value)) return Array.from(/** @type {any} */ (value));
  return typeof value === "bigint" || (typeof value === "number" && !Number.isFinite(value)) ? String(value) : value;
}

/** @param {Record<string, any>[]} rows */
function csvOf(rows) {
  const names = [...new Set(rows.flatMap(Object.keys))];
  const cell = (/** @type {any} */ value) => {
    const text = typeof value === "object" && value ? JSON.stringify(value, plain) : String(value ?? "");
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return `${[names, ...rows.map((row) => names.map((name) => row[name]))].map((row) => row.map(cell).join(",")).join("\r\n")}\r\n`;
}

/** A drawing that stands alone, on the page's ground. @param {SVGSVGElement} drawing */
function svgText(drawing) {
  const copy = /** @type {SVGSVGElement} */ (drawing.cloneNode(true));
  const own = [drawing, ...drawing.querySelectorAll("*")];
  [copy, ...copy.querySelectorAll("*")].forEach((element, at) => {
    const computed = getComputedStyle(own[at]);
    for (const name of STYLES) element.setAttribute(name, computed.getPropertyValue(name));
    for (const name of ["class", "style", "tabindex"]) element.removeAttribute(name);
  });
  const { width, height } = drawing.getBoundingClientRect();
  const [x, y, w, h] = drawing.getAttribute("viewBox")?.split(/[\s,]+/) ?? ["0", "0", `${width}`, `${height}`];
  copy.setAttribute("viewBox", `${x} ${y} ${w} ${h}`);
  copy.setAttribute("width", `${width}`);
  copy.setAttribute("height", `${height}`);
  const ground = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  const place = { x, y, width: w, height: h, fill: getComputedStyle(document.body).backgroundColor };
  for (const [name, value] of Object.entries(place)) ground.setAttribute(name, value);
  copy.prepend(ground);
  return new XMLSerializer().serializeToString(copy);
}

/** @param {SVGSVGElement | HTMLCanvasElement} drawing */
async function pngOf(drawing) {
  const canvas = drawing instanceof HTMLCanvasElement ? drawing : await paintedOf(drawing);
  return new Promise((/** @type {(blob: any) => void} */ resolve) => { canvas.toBlob(resolve); });
}

/** @param {SVGSVGElement} drawing */
async function paintedOf(drawing) {
  const image = new Image();
  image.src = `data:image/svg+xml,${encodeURIComponent(svgText(drawing))}`;
  await image.decode();
  const { width, height } = drawing.getBoundingClientRect();
  const canvas = Object.assign(document.createElement("canvas"), { width: DENSITY * width, height: DENSITY * height });
  canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
  return canvas;
}
