// What a cell printed and showed. Pages and drawings that code made are sanitised, and stand in a shadow root.

/** @import { DOMPurify } from "dompurify" */

import { library } from "../lazy.js";
import { t } from "../wording.js";

/**
 * A piece of output, as it is kept: a text that was printed, a value by its MIME types, or an error.
 * @typedef {{ kind: "printed", text: string } | { kind: "shown", data: Record<string, string>, name: string } | { kind: "error", text: string, hint: string }} Output
 */

/** @typedef {{ number: number, label: string, done: number, total: number | null }} Progress */

const MAX_CHARACTERS = 100_000; // of a text that is shown
const FORBIDDEN = { FORBID_TAGS: ["style", "form", "input", "button", "textarea", "select", "iframe", "audio", "video"], FORBID_ATTR: ["style", "id", "name", "autofocus"] };
const PICTURES = ["image/png", "image/jpeg"];
const HTML = { USE_PROFILES: { html: true, svg: true }, RETURN_DOM_FRAGMENT: true, ...FORBIDDEN };
const SVG = { USE_PROFILES: { svg: true, svgFilters: true }, RETURN_DOM_FRAGMENT: true, ...FORBIDDEN };

const loadPurify = library("dompurify.js");

const STYLE = `
  :host { display: block; overflow-x: auto; }
  table { border-collapse: collapse; font-size: 0.85rem; font-variant-numeric: tabular-nums; margin: 0.3rem 0; }
  th, td { padding: 0.2rem 0.6rem; border-bottom: 1px solid var(--line); text-align: right; white-space: pre; }
  th { color: var(--quiet); font-weight: 600; }
  td:first-child, th:first-child { text-align: left; }
  div { font-size: 0.9rem; }
  a { color: var(--accent); }
  img, svg { max-width: 100%; height: auto; }
  progress { accent-color: var(--accent); }
`;
/** @type {CSSStyleSheet | undefined} */
let sheet;

export class Outputs {
  /** @type {Output[]} */
  #kept = [];
  /** @type {Map<string, HTMLElement>} */
  #named = new Map();
  /** @type {Map<number, HTMLElement>} */
  #bars = new Map();

  /** @param {HTMLElement} element */
  constructor(element) {
    this.element = element;
    this.frame = 0; // that will show what was printed
  }

  get kept() {
    return this.#kept;
  }

  /** Shows what was kept. @param {Output[]} outputs */
  show(outputs) {
    this.clear();
    for (const output of outputs) this.add(output);
  }

  clear() {
    this.#kept = [];
    this.#named.clear();
    this.#bars.clear();
    this.element.replaceChildren();
  }

  /** @param {Output} output */
  add(output) {
    if (output.kind === "printed") return this.print(output.text);
    const before = output.kind === "shown" && output.name ? this.#kept.findIndex((each) => each.kind === "shown" && each.name === output.name) : -1;
    if (before >= 0) this.#kept[before] = output;
    else this.#kept.push(output);
    const element = elementOf(output);
    if (output.kind === "shown" && output.name) {
      this.#named.get(output.name)?.replaceWith(element);
      this.#named.set(output.name, element);
    }
    if (!element.isConnected) this.element.append(element);
  }

  /** Of a loop that prints for ever, the end. @param {string} text */
  print(text) {
    let last = this.#kept.at(-1);
    if (last?.kind !== "printed" || !(this.element.lastElementChild instanceof HTMLPreElement)) {
      last = { kind: "printed", text: "" };
      this.#kept.push(last);
      const lines = document.createElement("pre");
      lines.tabIndex = 0;
      this.element.append(lines);
    }
    last.text = overwritten(last.text + text);
    if (last.text.length > 2 * MAX_CHARACTERS) last.text = `…${last.text.slice(-MAX_CHARACTERS)}`;
    const [printed, lines] = [last, /** @type {HTMLElement} */ (this.element.lastElementChild)];
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      lines.textContent = printed.text;
      lines.scrollTop = lines.scrollHeight;
    });
    if (!this.element.checkVisibility()) lines.textContent = printed.text;
  }

  /** @param {Progress} progress */
  progress({ number, label, done, total }) {
    const bar = this.#bars.get(number) ?? document.createElement("div");
    if (!this.#bars.has(number)) {
      bar.className = "bar";
      bar.append(document.createElement("progress"), document.createElement("span"));
      this.#bars.set(number, bar);
      this.element.append(bar);
    }
    const [meter, words] = /** @type {[HTMLProgressElement, HTMLElement]} */ ([...bar.children]);
    meter.ariaLabel = label || t`Progress`;
    if (total) [meter.max, meter.value] = [total, done];
    const share = total ? `${done} / ${total}` : String(done);
    words.textContent = `${label} ${share}`.trim();
  }

  /** A field that code waits for; resolves to what is typed. @type {(prompt: string, signal: AbortSignal) => Promise<string>} */
  ask(prompt, signal) {
    const { promise, resolve } = Promise.withResolvers();
    const form = document.createElement("form");
    form.className = "asks";
    const label = Object.assign(document.createElement("label"), { textContent: prompt || t`The code is waiting for a line of input` });
    const field = Object.assign(document.createElement("input"), { autocomplete: "off" });
    const button = Object.assign(document.createElement("button"), { type: "submit", textContent: t`Enter` });
    label.append(field);
    form.append(label, button);
    form.onsubmit = (event) => {
      event.preventDefault();
      form.remove();
      this.print(`${prompt}${field.value}\n`);
      resolve(field.value);
    };
    signal.addEventListener("abort", () => form.remove());
    this.element.append(form);
    field.focus();
    return promise;
  }

  /** The picture that was shown last. */
  get picture() {
    const hosts = [...this.element.querySelectorAll(".rich")];
    const drawings = hosts.flatMap((host) => [...host.shadowRoot?.querySelectorAll("svg") ?? []]);
    return drawings.at(-1) ?? null;
  }
}

/** A carriage return goes back to the line's beginning. @param {string} text */
const overwritten = (text) => (text.includes("\r") ? text.replaceAll("\r\n", "\n").split("\n").map((line) => line.slice(line.lastIndexOf("\r", line.length - 2) + 1)).join("\n") : text);

/** @param {Exclude<Output, { kind: "printed" }>} output */
function elementOf(output) {
  if (output.kind === "error") {
    const box = document.createElement("div");
    box.className = "fault";
    const trace = Object.assign(document.createElement("pre"), { textContent: output.text, tabIndex: 0 });
    box.append(trace);
    if (output.hint) box.append(Object.assign(document.createElement("p"), { textContent: output.hint }));
    return box;
  }
  const { data } = output;
  const picture = PICTURES.find((kind) => data[kind]);
  if (data["text/html"] || data["image/svg+xml"]) return richOf(data);
  if (picture) {
    const image = new Image();
    image.src = `data:${picture};base64,${data[picture].replace(/\s/g, "")}`;
    image.alt = data["text/plain"]?.slice(0, 200) || t`A picture`;
    return image;
  }
  return textOf(data["text/plain"] ?? "");
}

/** @param {string} text */
function textOf(text) {
  const lines = document.createElement("pre");
  lines.tabIndex = 0;
  lines.textContent = text.length > MAX_CHARACTERS ? `${text.slice(0, MAX_CHARACTERS)}…` : text;
  return lines;
}

/** @param {Record<string, string>} data */
function richOf(data) {
  const host = document.createElement("div");
  host.className = "rich";
  const root = host.attachShadow({ mode: "open" });
  if (!sheet) {
    sheet = new CSSStyleSheet();
    sheet.replaceSync(STYLE);
  }
  root.adoptedStyleSheets = [sheet];
  root.append(textOf(data["text/plain"] ?? "")); // until what makes it safe is here
  loadPurify().then(({ default: purify }) => {
    const [text, config] = data["text/html"] ? [data["text/html"], HTML] : [data["image/svg+xml"], SVG];
    root.replaceChildren(purify.sanitize(text, config));
    for (const link of root.querySelectorAll("a")) Object.assign(link, { target: "_blank", rel: "noopener noreferrer" });
  }).catch(() => {});
  return host;
}
