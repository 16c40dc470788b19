// Runs a Python block of an answer below itself, apart from everything (runner.js); the result can be sent to the model.

import { styleSheet } from "../elements.js";
import { emit } from "../events.js";
import { faultOf, t } from "../wording.js";
import { button } from "./cell.js";
import { Outputs } from "./outputs.js";
import { patience, Runner } from "./runner.js";

const MAX_SENT = 8000; // characters of a result that the model is sent

const loadStyles = styleSheet("ui/notebook/notebook.css");

/** @type {Runner | undefined} */
let runner;
/** @type {(() => void) | undefined} */
let stop; // what runs

/** Runs the block that a button belongs to, or stops it. @param {Element} pressed */
export async function runBlock(pressed) {
  const block = /** @type {HTMLElement} */ (pressed.closest("pre"));
  if (block.hasAttribute("data-runs")) return stop?.();
  stop?.();
  await loadStyles();
  const code = block.querySelector("code")?.textContent ?? "";
  const box = boxBelow(block);
  const results = document.createElement("div");
  Object.assign(results, { className: "outputs", role: "log", ariaLabel: t`Output` });
  const status = document.createElement("p");
  status.className = "quiet";
  status.role = "status";
  status.textContent = t`Starting Python…`;
  box.replaceChildren(results, status);
  const outputs = new Outputs(results);
  const halted = new AbortController();
  const say = (/** @type {string} */ words) => { status.textContent = words; };
  block.dataset.runs = "";
  pressed.textContent = t`Stop`;
  const over = Promise.withResolvers();
  stop = () => {
    runner?.end();
    runner = undefined;
    over.resolve(t`Stopped.`);
  };
  const halt = stop;
  let limit = 0;
  try {
    const mine = runner ??= new Runner();
    mine.onTold = ({ started, told, done, failed }) => {
      if (started) {
        say(t`Running…`);
        limit = setTimeout(() => { halt(); }, patience.code);
      }
      if (told) hear(JSON.parse(told));
      if (failed) {
        halt();
        outputs.add({ kind: "error", text: failed, hint: "" });
      }
      if (done) outputs.add({ kind: "error", ...JSON.parse(done) });
      if (done !== undefined || failed) over.resolve("");
    };
    const hear = (/** @type {import("../../calls.js").CellEvent} */ { printed, shown: data, name = "", progress, asks }) => {
      if (printed !== undefined) outputs.print(printed);
      if (data) outputs.add({ kind: "shown", data, name });
      if (progress) outputs.progress(progress);
      if (asks) outputs.ask(asks.prompt ?? "", halted.signal).then((value) => mine.port.postMessage({ number: asks.number, value }));
    };
    await Promise.race([mine.ready, over.promise]);
    mine.port.postMessage({ run: code });
    say(/** @type {string} */ (await over.promise));
  } catch (error) {
    halt();
    outputs.add({ kind: "error", text: faultOf(error), hint: "" });
    say("");
  }
  clearTimeout(limit);
  halted.abort();
  stop = undefined;
  delete block.dataset.runs;
  pressed.textContent = t`Run ▸`;
  const result = wordsOf(outputs);
  if (!status.textContent && !results.childElementCount) say(t`Done. Nothing was printed.`);
  if (result) box.append(button(t`Send the result to the model`, t`Send the result to the model`, () => {
    emit("messagesent", { content: `${t`I ran the code. The result:`}\n\n\`\`\`\n${result}\n\`\`\`` });
  }));
}

/** @param {HTMLElement} block */
function boxBelow(block) {
  const next = block.nextElementSibling;
  if (next?.classList.contains("block-run")) return next;
  const box = document.createElement("div");
  box.className = "block-run";
  block.after(box);
  return box;
}

/** @param {Outputs} outputs */
function wordsOf({ kept }) {
  const words = kept.map((output) => (output.kind === "shown" ? output.data["text/plain"] ?? "" : output.text));
  return words.join("\n").trim().slice(0, MAX_SENT);
}
