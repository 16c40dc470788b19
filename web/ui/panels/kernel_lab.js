// The kernel lab: the WGSL of any kernel, edited, tried, and kept or taken back.

/** @import { Dock } from "../dock.js" */

import { giveFile } from "../chat_files.js";
import { styleSheet } from "../elements.js";
import { line, t, tell } from "../wording.js";
import { ask, fill, inDims, inTime, labelled, make, shortOp, tableOf } from "./room.js";

/** @typedef {{ name: string, launches: number, ops: string[], steps: number[], is_changed: boolean }} Shader */

const INDENT = "  ";
const loadStyles = styleSheet("panels/room.css");

/** @type {HTMLElement} */
let root;
/** @type {Dock} */
let dock;
/** @type {Record<string, HTMLElement>} */
let parts;
/** @type {HTMLSelectElement} */
let choice;
/** @type {HTMLTextAreaElement} */
let editor;
/** @type {Record<"tries" | "keeps" | "resets" | "reverts" | "exports", HTMLButtonElement>} */
let buttons;
/** @type {Shader[]} */
let shaders = [];
let canEdit = false;
let model = inpage.loaded; // whose kernels they are
let own = ""; // the engine's WGSL of the kernel that is shown
/** @type {any} */
let trial;
/** @type {Set<number>} */
let faulty = new Set(); // lines

/** @param {HTMLElement} element @param {Record<string, any>} settings @param {Dock} given */
export async function show(element, settings, given) {
  dock = given;
  await loadStyles();
  if (root !== element) build(root = element);
  if (model !== inpage.loaded) [editor.value, trial, model] = ["", undefined, inpage.loaded];
  await list();
  const wanted = shaders.find(({ name, steps }) => name === settings.kernel || steps.includes(Number(settings.step ?? -1)));
  if (wanted) choice.value = wanted.name;
  if (shaders.length && (!editor.value || wanted)) await open();
}

/** @param {HTMLElement} element */
function build(element) {
  choice = make("select", { onchange: open });
  editor = make("textarea", { spellcheck: "false", autocapitalize: "off", autocomplete: "off", wrap: "off", rows: 22, "aria-label": t`WGSL of the kernel`, oninput: () => { faulty = new Set(); showLines(); }, onscroll: () => { parts.lines.scrollTop = editor.scrollTop; }, onkeydown });
  const button = (/** @type {string} */ name, /** @type {() => unknown} */ act, kind = "") => make("button", { type: "button", class: kind || null, onclick: act }, name);
  buttons = {
    tries: button(t`Try it`, tryIt, "primary"),
    keeps: button(t`Keep`, keepIt),
    resets: button(t`Original code`, () => { editor.value = own; faulty = new Set(); showLines(); }),
    reverts: button(t`Undo all changes`, revert),
    exports: button(t`Export .wgsl`, giveFiles),
  };
  parts = {
    fault: make("p", { class: "error", role: "alert" }),
    said: make("p", { class: "room-facts" }),
    form: make("div", { class: "room-form" }, labelled(t`Kernel`, choice)),
    facts: make("p", { class: "room-facts" }),
    lines: make("pre", { class: "lab-lines", "aria-hidden": "true" }),
    tools: make("div", { class: "room-tools" }, ...Object.values(buttons)),
    result: make("div", { class: "room-details", "aria-live": "polite" }),
  };
  const frame = make("div", { class: "lab-editor" }, parts.lines, editor);
  element.replaceChildren(parts.fault, parts.said, parts.form, parts.facts, frame, parts.tools, parts.result);
}

async function list() {
  const found = await ask(dock, parts.fault, t`Listing the kernels…`, "kernels");
  if (!found) return;
  ({ shaders, can_edit: canEdit } = found);
  const before = choice.value;
  choice.replaceChildren(...shaders.map(({ name, is_changed: isChanged }) => make("option", { value: name }, isChanged ? t`${name} (changed)` : name)));
  if (before) choice.value = before;
  parts.said.textContent = canEdit ? "" : t`On the processor, kernels are C that was compiled beforehand: their WGSL can be read here. Load the model onto the graphics card to change it.`;
  editor.readOnly = !canEdit;
  for (const button of Object.values(buttons)) button.hidden = !canEdit;
  const isAnyKept = shaders.some((each) => each.is_changed);
  buttons.reverts.disabled = buttons.exports.disabled = !isAnyKept;
  buttons.keeps.disabled = !trial?.ok;
}

async function open() {
  const found = await ask(dock, parts.fault, t`Reading the kernel…`, "kernel", { name: choice.value });
  if (!found) return;
  ({ own } = found);
  editor.value = found.source;
  trial = undefined;
  faulty = new Set();
  buttons.keeps.disabled = true;
  const { launches, ops } = /** @type {Shader} */ (shaders.find(({ name }) => name === choice.value));
  parts.facts.textContent = line(t`${launches} launch|${launches} launches`, ops.map(shortOp).join(", "));
  parts.result.replaceChildren();
  dock.link({ kernel: choice.value });
  showLines();
  editor.scrollTop = 0;
}

function showLines() {
  const count = editor.value.split("\n").length;
  parts.lines.replaceChildren(...Array.from({ length: count }, (_, at) => make("span", { class: faulty.has(at + 1) ? "faulty" : null }, `${at + 1}\n`)));
  parts.lines.scrollTop = editor.scrollTop;
}

/** Tab indents; Ctrl+Enter tries. @param {KeyboardEvent} event */
function onkeydown(event) {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) tryIt();
  else if (event.key === "Tab" && !event.shiftKey && canEdit && editor.selectionStart !== editor.selectionEnd) editor.setRangeText(INDENT, editor.selectionStart, editor.selectionStart, "preserve");
  else return;
  event.preventDefault();
}

async function tryIt() {
  trial = undefined;
  buttons.keeps.disabled = true;
  parts.result.replaceChildren();
  const found = await ask(dock, parts.fault, t`Compiling, comparing, timing…`, "try_kernel", { name: choice.value, source: editor.value });
  if (!found) return;
  trial = found;
  buttons.keeps.disabled = !found.ok;
  faulty = new Set(found.errors.map((/** @type {any} */ each) => each.line));
  showLines();
  showTrial();
}

function showTrial() {
  const { ok, errors, cases, goldens, times } = trial;
  const verdict = errors.length ? t`It does not compile.` : ok ? t`It computes the same: you can keep it.` : t`It computes something else, so it cannot be kept.`;
  const said = (/** @type {any} */ { line: at, column, text }) => make("li", {}, at ? make("button", { type: "button", class: "link", onclick: () => goTo(at) }, t`Line ${at}, column ${column}`) : null, at ? ": " : null, text);
  const caseRows = cases.map((/** @type {any} */ each) => [each.where === "logits" ? t`The model’s result` : each.where, each.tokens, each.context, inDims(each.dims), each.relative_rms === null || typeof each.relative_rms === "string" ? "∞" : each.relative_rms.toExponential(1), each.ok ? "✓" : "✗"]);
  const timeRows = times.map((/** @type {any} */ each) => [each.tokens, each.context, inTime(each.before), inTime(each.after), each.after ? `${(each.before / each.after).toFixed(2)} ×` : ""]);
  fill(
    parts.result,
    make("p", { class: ok ? "verdict good" : "verdict bad" }, ok ? `✓ ${verdict}` : `✗ ${verdict}`),
    errors.length > 0 && make("ul", { class: "lab-errors" }, ...errors.map(said)),
    goldens && make("p", { class: "room-facts" }, tell(goldens.messages) ?? ""),
    timeRows.length > 0 && tableOf(t`Time before and after`, [t`Tokens`, t`After`, t`Before`, t`Now`, t`Faster`], timeRows, [0, 1, 2, 3, 4]),
    caseRows.length > 0 && make("div", { class: "room-scroll", tabindex: 0, role: "region", "aria-label": t`Cases` }, tableOf(t`Cases`, [t`Case`, t`Tokens`, t`After`, t`Shape`, t`Difference`, ""], caseRows, [1, 2, 4])),
  );
}

/** @param {number} at a line */
function goTo(at) {
  const lines = editor.value.split("\n");
  const begin = lines.slice(0, at - 1).join("\n").length + (at > 1 ? 1 : 0);
  editor.focus();
  editor.setSelectionRange(begin, begin + (lines[at - 1] ?? "").length);
  editor.scrollTop = editor.scrollHeight / lines.length * Math.max(at - 8, 0);
}

async function keepIt() {
  if (!await ask(dock, parts.fault, t`Keeping it…`, "keep_kernel", { trial: trial.trial })) return;
  await list();
  parts.result.prepend(make("p", { class: "verdict good" }, t`The model runs it from now on, until it is loaded again.`));
}

async function revert() {
  if (!await ask(dock, parts.fault, t`Undoing it…`, "revert_kernel")) return;
  await list();
  await open();
}

async function giveFiles() {
  const found = await ask(dock, parts.fault, t`Reading the kernel…`, "kept_kernels");
  for (const [name, text] of Object.entries(found ?? {})) giveFile(name, text, "text/plain");
}

export const data = () => trial ?? null;
