// The panel of steering: vectors with sliders that count while an answer is being written, and parts that are turned off
// to ask the same again.

import { styleSheet } from "../elements.js";
import { on } from "../events.js";
import { requestOptions } from "../settings/settings.js";
import { decimal, faultOf, t } from "../wording.js";

/**
 * @typedef {{ name: string, layer: number, strength: number, length: number }} Vector
 * @typedef {{ layers: number, parts: Record<string, number>[], vectors: Vector[], off: string[], edits: { name: string, strength: number }[], hooks: string[] }} State
 */

const EXAMPLE_HOOK = "blocks.0.attn.hook_z";
const loadStyles = styleSheet("panels/steering.css");
const MOST = 4; // of a slider, in lengths of the vector
const ANSWER = 120; // tokens of each of two answers

/** @type {HTMLElement} */
let root;
/** @type {import("../dock.js").Dock} */
let frame;
/** @type {State | null} */
let state = null;
/** @type {{ question: string, part: string, plain: string, changed: string } | null} */
let compared = null;
/** @type {AbortController | undefined} */
let asking;
/** @type {Map<string, number>} */
const wanted = new Map(); // strengths that the engine is still to hear of
let isTelling = false;

/** @type {(element: HTMLElement, settings: Record<string, any>, dock: import("../dock.js").Dock) => Promise<void>} */
export async function show(element, settings, dock) {
  frame = dock;
  if (!root) {
    await loadStyles();
    root = element;
    build();
    on("modelchange", refresh);
  }
  await refresh();
  if (settings.layer !== undefined) choose(settings);
}

export const hide = () => asking?.abort();

export const data = () => (compared ? [compared] : state?.vectors ?? []);

/** @type {<Name extends keyof HTMLElementTagNameMap>(name: Name, given?: Record<string, any>, ...children: (Node | string)[]) => HTMLElementTagNameMap[Name]} */
function make(name, given = {}, ...children) {
  const element = Object.assign(document.createElement(name), given);
  element.append(...children);
  return element;
}

/** @type {(words: string, field: HTMLElement) => HTMLLabelElement} */
const labelled = (words, field) => make("label", {}, `${words} `, field);

/** @type {Record<string, any>} */
const parts = {};

function build() {
  const form = parts.form = make("form", { className: "steer-form" },
    labelled(t`Name`, parts.name = make("input", { required: true, maxLength: 60, dir: "auto", placeholder: t`cheerful` })),
    labelled(t`More like these, one per line`, parts.positive = make("textarea", { rows: 3, required: true, dir: "auto", placeholder: t`What a wonderful day!` })),
    labelled(t`Less like these, one per line`, parts.negative = make("textarea", { rows: 3, required: true, dir: "auto", placeholder: t`What a terrible day!` })),
    make("div", { className: "steer-row" },
      labelled(t`Layer`, parts.layer = make("input", { type: "number", min: "0", required: true })),
      labelled(t`From`, parts.how = make("select", {}, new Option(t`Difference of the means`, "mean"), new Option(t`Principal component`, "pca"))),
      labelled(t`Taken at`, parts.position = make("select", {}, new Option(t`Last token`, "last"), new Option(t`All tokens`, "mean")))),
    make("div", { className: "buttons" }, make("button", { className: "primary", type: "submit" }, t`Build vector`)));
  form.onsubmit = (event) => { event.preventDefault(); buildVector(); };
  const file = make("input", { type: "file", accept: ".safetensors", hidden: true });
  file.onchange = () => loadFile(file);
  const open = make("button", { type: "button", onclick: () => file.click() }, t`Load a vector…`);
  const ask = parts.ask = make("form", { className: "steer-form" },
    make("div", { className: "steer-row" },
      labelled(t`Part`, parts.kind = make("select", {}, new Option(t`Layer`, "layer"), new Option(t`Attention`, "attention"), new Option(t`MLP`, "mlp"), new Option(t`Attention head`, "head"), new Option(t`Neuron`, "neuron"))),
      labelled(t`Layer`, parts.at = make("input", { type: "number", min: "0", value: "0", required: true })),
      parts.numberLabel = labelled(t`Number`, parts.number = make("input", { type: "number", min: "0", value: "0", required: true }))),
    labelled(t`Question`, parts.question = make("textarea", { rows: 2, required: true, dir: "auto", placeholder: t`What is the capital of France?` })),
    make("div", { className: "buttons" },
      make("button", { className: "primary", type: "submit" }, t`Ask with and without it`),
      make("button", { type: "button", onclick: () => turnOff() }, t`Turn off`)));
  ask.onsubmit = (event) => { event.preventDefault(); askTwice(); };
  ask.oninput = limit;
  const edit = make("form", { className: "steer-form" },
    labelled(t`Hook`, parts.hook = make("input", { required: true, placeholder: EXAMPLE_HOOK })),
    parts.hooks = make("datalist", { id: "steerHooks" }),
    make("div", { className: "steer-row" },
      labelled(t`Action`, parts.what = make("select", {}, new Option(t`Multiply`, "scale"), new Option(t`Ablate`, "ablate"))),
      labelled(t`Strength`, parts.strength = make("input", { type: "number", step: "any", value: "0", required: true })),
      labelled(t`Where`, parts.where = make("select", {}, new Option(t`Everywhere`, "all"), new Option(t`Prompt`, "prompt"), new Option(t`Answer`, "generated"))),
      labelled(t`Heads or neurons`, parts.which = make("input", { pattern: "[0-9, ]*", placeholder: t`all` }))),
    make("div", { className: "buttons" }, make("button", { type: "submit" }, t`Apply`)));
  parts.hook.setAttribute("list", "steerHooks");
  edit.onsubmit = (event) => { event.preventDefault(); applyEdit(); };
  root.append(
    parts.fault = make("p", { className: "error", role: "alert" }),
    parts.empty = make("p", { className: "quiet" }, t`Load a model to steer it.`),
    parts.whole = make("div", {},
      make("h3", {}, t`Vectors`),
      parts.vectors = make("ul", { className: "steer-vectors" }),
      parts.none = make("p", { className: "quiet" }, t`None yet. A vector is the way from one list of texts to another, as the model sees them.`),
      make("details", {}, make("summary", {}, t`New vector`), form),
      make("div", { className: "buttons" }, open, file),
      make("h3", {}, t`Turn a part off`),
      parts.off = make("ul", { className: "steer-off" }),
      ask,
      make("details", {}, make("summary", {}, t`Change any hook`), edit),
      parts.answers = make("div", { className: "steer-answers", ariaLive: "polite" })));
}

/** @param {Record<string, any>} settings of a link */
function choose({ part, layer, number }) {
  if (part) parts.kind.value = part;
  parts.at.value = layer;
  if (number !== undefined) parts.number.value = number;
  limit();
}

async function refresh() {
  await attempt(async () => { state = inpage.loaded ? await inpage.glass("steering") : null; });
  draw();
}

/** Does something of the engine's, and says what goes wrong. @param {() => Promise<void>} work */
async function attempt(work) {
  parts.fault.textContent = "";
  try {
    await work();
  } catch (error) {
    if (/** @type {any} */ (error).code !== "aborted") parts.fault.textContent = faultOf(error);
  }
}

function draw() {
  parts.empty.hidden = !!state;
  parts.whole.hidden = !state;
  if (!state) return;
  const { vectors, off, layers } = state;
  parts.none.hidden = !!vectors.length;
  const held = document.activeElement?.closest("li[data-name]");
  for (const row of [...parts.vectors.children]) if (!vectors.some(({ name }) => name === row.dataset.name)) row.remove();
  for (const vector of vectors) {
    const row = [...parts.vectors.children].find(({ dataset }) => dataset.name === vector.name) ?? parts.vectors.appendChild(rowOf(vector));
    if (row !== held && !wanted.has(vector.name)) row.fill(vector);
  }
  parts.hooks.replaceChildren(...state.hooks.map((name) => new Option(name)));
  const others = state.edits.map(({ name, strength }) => make("li", {}, `${name} `, make("small", {}, decimal(strength, 1)),
    make("button", { type: "button", ariaLabel: t`Remove ${name}`, onclick: () => steer({ remove: [name] }) }, t`Remove`)));
  parts.off.replaceChildren(...others, ...off.map((part) => make("li", {}, `${nameOf(part)} `,
    make("button", { type: "button", ariaLabel: t`Turn ${nameOf(part)} on again`, onclick: () => steer({ on: [part] }) }, t`Turn on`))));
  parts.layer.max = parts.at.max = String(layers - 1);
  parts.layer.value ||= String(Math.floor(layers * 0.6));
  limit();
}

/** "head 3.1" in the user's language. @param {string} part */
function nameOf(part) {
  const [kind, place] = part.split(" ");
  const [layer, number] = place.split(".").map(Number);
  const names = {
    layer: () => t`layer ${layer}`, attention: () => t`the attention of layer ${layer}`, mlp: () => t`the MLP of layer ${layer}`,
    head: () => t`head ${number} of layer ${layer}`, neuron: () => t`neuron ${number} of layer ${layer}`,
  };
  return names[/** @type {keyof names} */ (kind)]();
}

/** Keeps the fields to what the model has. */
function limit() {
  const here = state?.parts[Number(parts.at.value)] ?? {};
  for (const option of parts.kind.options) option.disabled = !here[option.value];
  const isNumbered = ["head", "neuron"].includes(parts.kind.value);
  parts.numberLabel.hidden = !isNumbered;
  parts.number.disabled = !isNumbered;
  parts.number.max = String((here[parts.kind.value] ?? 1) - 1);
  frame.link({ part: parts.kind.value, layer: parts.at.value, ...(isNumbered ? { number: parts.number.value } : {}) });
}

const chosenPart = () => `${parts.kind.value} ${parts.at.value}${parts.number.disabled ? "" : `.${parts.number.value}`}`;

// ---- vectors

/** @param {Vector} vector */
function rowOf({ name, layer }) {
  const output = make("output");
  const slider = make("input", { type: "range", min: `${-MOST}`, max: `${MOST}`, step: "0.1", ariaLabel: t`Strength of ${name}` });
  const row = make("li", {},
    make("span", { className: "name", dir: "auto" }, name), make("small", {}, t`layer ${layer}`), slider, output,
    make("button", { type: "button", ariaLabel: t`Save ${name} as a file`, onclick: () => save(name) }, t`Save`),
    make("button", { type: "button", ariaLabel: t`Remove ${name}`, onclick: () => steer({ remove: [name] }) }, t`Remove`));
  row.dataset.name = name;
  const write = (/** @type {number} */ strength) => { output.value = decimal(strength, 1); };
  slider.oninput = () => {
    wanted.set(name, Number(slider.value));
    write(Number(slider.value));
    tell();
  };
  return Object.assign(row, {
    fill: (/** @type {Vector} */ { strength }) => {
      slider.min = `${Math.min(-MOST, strength)}`;
      slider.max = `${Math.max(MOST, strength)}`;
      slider.value = `${strength}`;
      write(strength);
    },
  });
}

/** Tells the engine the newest strengths: a slider gives more than it can take. */
async function tell() {
  if (isTelling) return;
  isTelling = true;
  while (wanted.size) {
    const strengths = Object.fromEntries(wanted);
    await attempt(async () => {
      for (const [which, strength] of Object.entries(strengths)) await inpage.glass("strength", { which, strength });
    });
    for (const [name, strength] of Object.entries(strengths)) if (wanted.get(name) === strength) wanted.delete(name);
  }
  isTelling = false;
}

/** @param {Record<string, unknown>} fields */
async function steer(fields) {
  await attempt(async () => { state = await inpage.glass("steering", fields); });
  draw();
}

/** @param {HTMLTextAreaElement} field */
const linesOf = (field) => field.value.split("\n").map((text) => text.trim()).filter(Boolean);

async function buildVector() {
  const stop = new AbortController();
  const fields = {
    name: parts.name.value, positive: linesOf(parts.positive), negative: linesOf(parts.negative),
    layer: Number(parts.layer.value), how: parts.how.value, position: parts.position.value,
  };
  const words = t`Reading the texts`;
  frame.progress(words, null, () => stop.abort());
  await attempt(async () => {
    state = await inpage.glass("steering_vector", fields, {
      signal: stop.signal, onProgress: ({ done, total }) => frame.progress(words, done / total, () => stop.abort()),
    });
    parts.form.parentElement.open = false;
  });
  frame.progress();
  draw();
}

/** @param {string} name */
async function save(name) {
  await attempt(async () => {
    const { file, base64 } = await inpage.glass("save_steering_vector", { name });
    const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
    const link = make("a", { href: URL.createObjectURL(new Blob([bytes])), download: file });
    link.click();
    URL.revokeObjectURL(link.href);
  });
}

/** @param {HTMLInputElement} field */
async function loadFile(field) {
  const [file] = field.files ?? [];
  field.value = "";
  if (!file) return;
  await attempt(async () => {
    const bytes = new Uint8Array(await file.arrayBuffer());
    const base64 = btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
    state = await inpage.glass("load_steering_vector", { file: file.name, base64 });
  });
  draw();
}

// ---- parts

function applyEdit() {
  const hook = parts.hook.value.trim();
  const chosen = (parts.which.value.match(/[0-9]+/g) ?? []).map(Number);
  const which = chosen.length ? { [/\.attn\./.test(hook) ? "heads" : "neurons"]: chosen } : {};
  return steer({ edit: { hook, kind: parts.what.value, strength: Number(parts.strength.value), positions: parts.where.value, ...which } });
}

const turnOff = () => steer({ off: [chosenPart()] });

async function askTwice() {
  const part = chosenPart();
  const question = parts.question.value;
  const { signal } = asking = new AbortController();
  const mine = compared = { question, part, plain: "", changed: "" };
  const columns = [t`Unchanged`, t`Without ${nameOf(part)}`].map((words) => {
    const text = make("p", { dir: "auto" });
    parts.answers.append(make("section", {}, make("h4", {}, words), text));
    return text;
  });
  parts.answers.replaceChildren(...[...parts.answers.children].slice(-2));
  const words = t`Asking twice`;
  frame.progress(words, null, () => asking?.abort());
  await attempt(async () => {
    mine.plain = await answerTo(question, columns[0], signal);
    frame.progress(words, 0.5, () => asking?.abort());
    const isNew = !state?.off.includes(part);
    state = await inpage.glass("steering", { off: [part] }, { signal });
    try {
      mine.changed = await answerTo(question, columns[1], signal);
    } finally {
      if (isNew) state = await inpage.glass("steering", { on: [part] });
    }
  });
  frame.progress();
  draw();
}

/** @type {(question: string, element: HTMLElement, signal: AbortSignal) => Promise<string>} */
async function answerTo(question, element, signal) {
  const messages = [{ role: /** @type {const} */ ("user"), content: question }];
  const request = { ...requestOptions(), messages, temperature: 0, max_tokens: ANSWER, stream: /** @type {const} */ (true), signal };
  for await (const chunk of inpage.chat.completions.create(request)) element.textContent += chunk.choices[0]?.delta?.content ?? "";
  return element.textContent ?? "";
}
