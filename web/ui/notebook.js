// The notebook: runs Python in the worker's interpreter; shows what it prints as it happens, then what it gives.

import { page } from "./elements.js";
import { on } from "./events.js";
import { t } from "./wording.js";

const MAX_CHARACTERS = 100_000; // characters that are shown
const INDENT = "    ";
const { code, notebookForm, example, output, pythonStatus: status, run, stopPython } = page;
/** @type {AbortController | undefined} */
let running;
let printed = "";
let frame = 0;

notebookForm.onsubmit = async (/** @type {SubmitEvent} */ event) => {
  event.preventDefault();
  if (running) return;
  running = new AbortController();
  remember(code.value);
  printed = "";
  output.replaceChildren();
  showRunning(t`Running…`);
  await runCode(code.value, running.signal);
  running = undefined;
  showRunning(status.textContent);
  output.scrollIntoView({ block: "nearest" });
};

/** @type {(text: string, signal: AbortSignal) => Promise<void>} */
async function runCode(text, signal) {
  try {
    const value = await inpage.python(text, { onPrint: print, signal, asText: true });
    showPrinted();
    output.append(value);
    status.textContent = output.textContent ? "" : t`Done. No output.`;
  } catch (error) {
    const { traceback, message } = /** @type {import("../inpage.js").InpageError} */ (error);
    showPrinted();
    status.textContent = signal.aborted ? t`Stopped.` : "";
    if (!signal.aborted) output.append(Object.assign(document.createElement("span"), { className: "fault", textContent: traceback ?? message }));
  }
}

/** @param {string} words */
function showRunning(words) {
  const hadFocus = [run, stopPython].includes(/** @type {HTMLButtonElement} */ (document.activeElement));
  run.hidden = !!running;
  stopPython.hidden = !running;
  status.textContent = words;
  if (hadFocus) (running ? stopPython : run).focus();
}

function stop() {
  running?.abort();
  status.textContent = t`Stopping…`;
}

/** Of a loop that prints for ever, the end. @param {string} text */
function print(text) {
  printed += text;
  if (printed.length > 2 * MAX_CHARACTERS) printed = `…${printed.slice(-MAX_CHARACTERS)}`;
  frame ||= requestAnimationFrame(showPrinted);
}

function showPrinted() {
  cancelAnimationFrame(frame);
  frame = 0;
  output.textContent = printed;
  output.scrollTop = output.scrollHeight;
}

// ---- what was run before

/** @type {string[]} */
const before = [];
let at = 0; // in them; past their end is what is being written
let written = "";

/** @param {string} text */
function remember(text) {
  if (text !== before.at(-1)) before.push(text);
  at = before.length;
}

/** Whether there is another one. @param {-1 | 1} step */
function bringBack(step) {
  const rest = step < 0 ? code.value.slice(0, code.selectionStart) : code.value.slice(code.selectionEnd);
  const next = at + step;
  if (rest.includes("\n") || next < 0 || next > before.length) return false;
  if (at === before.length) written = code.value;
  at = next;
  code.value = before[at] ?? written;
  const line = code.value.indexOf("\n");
  if (step < 0 && line >= 0) code.setSelectionRange(line, line); // where the key goes on
  return true;
}

// ---- the keyboard

let tabLeaves = false;

/** All lines that are selected; a step back where `isBack`. @param {boolean} isBack */
function indent(isBack) {
  const { selectionStart: from, selectionEnd: to, value } = code;
  if (from === to && !isBack) return code.setRangeText(INDENT, from, to, "end");
  const begin = value.lastIndexOf("\n", from - 1) + 1;
  const lines = value.slice(begin, to).split("\n");
  const changed = lines.map((each) => (isBack ? each.replace(/^ {1,4}/, "") : INDENT + each)).join("\n");
  code.setRangeText(changed, begin, to, from === to ? "end" : "select");
}

/** Whether the key has done its work. @param {KeyboardEvent} event */
function pressed({ key, ctrlKey, metaKey, shiftKey }) {
  const couldLeave = tabLeaves;
  tabLeaves = key === "Escape" || (key === "Shift" && tabLeaves);
  if (key === "Enter" && (ctrlKey || metaKey)) notebookForm.requestSubmit();
  else if (key === "Tab" && !couldLeave) indent(shiftKey);
  else if (key === "ArrowUp" || key === "ArrowDown") return !shiftKey && bringBack(key === "ArrowUp" ? -1 : 1);
  else return key === "Escape" && !couldLeave; // once more closes the box
  return true;
}

code.onkeydown = (/** @type {KeyboardEvent} */ event) => {
  if (!running && !event.isComposing && pressed(event)) event.preventDefault();
};
page.notebook.onkeydown = (event) => {
  if (event.key !== "Escape" || !running) return;
  event.preventDefault(); // it stays open
  event.stopPropagation();
  stop();
};
stopPython.onclick = stop;

// ---- examples

function showNeeds() {
  const needs = example.selectedOptions[0].dataset.needsModel !== undefined && code.value === example.value && !inpage.loaded;
  if (!running) status.textContent = needs ? t`This example needs a model: load one first.` : "";
}

example.onchange = () => {
  code.value = example.value;
  showNeeds();
};
code.oninput = showNeeds;
on("modelchange", showNeeds);
code.value = example.value;
