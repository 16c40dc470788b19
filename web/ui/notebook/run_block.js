// Runs a Python block of an answer, apart from everything: in a frame whose origin is nobody's and whose policy allows no connection
// (runner.html), in a worker there. It gets Pyodide's files, by their names, and nothing else; what it prints and shows comes back.

import { styleSheet } from "../elements.js";
import { emit } from "../events.js";
import { lazy, siteFacts } from "../lazy.js";
import { faultOf, t } from "../wording.js";
import { button } from "./cell.js";
import { Outputs } from "./outputs.js";

/** Milliseconds: until the frame is there, and for the code itself. Tests have less. */
export const patience = { frame: 20_000, code: 30_000 };

const MAX_SENT = 8000; // characters of a result that the model is sent
const PLAIN = /^[\w.+-]+$/;

const loadStyles = styleSheet("ui/notebook/notebook.css");
const loadScript = lazy(async () => (await fetched("runner_worker.js")).text());

/** @param {string} path */
async function fetched(path) {
  const response = await fetch(new URL(`../../${path}`, import.meta.url));
  if (!response.ok) throw new Error(`${path}: ${response.status}`);
  return response;
}

/** A frame with Python in it, which runs one block after the other until one is stopped. */
class Runner {
  /** @type {(told: any) => void} */
  onTold = () => {};
  #ended = new AbortController();

  constructor() {
    this.frame = Object.assign(document.createElement("iframe"), { hidden: true, title: t`Code from an answer` });
    this.frame.setAttribute("sandbox", "allow-scripts");
    this.frame.setAttribute("credentialless", "");
    this.frame.src = new URL("../../runner.html", import.meta.url).href;
    const { port1, port2 } = new MessageChannel();
    this.port = port1;
    port1.onmessage = ({ data }) => (data.wants ? this.#give(data) : this.onTold(data));
    this.ready = this.#connect(port2);
    document.body.append(this.frame);
  }

  /** @param {MessagePort} port */
  async #connect(port) {
    const { promise, resolve, reject } = Promise.withResolvers();
    const late = setTimeout(() => reject(new Error(t`This site cannot run code from answers: its host does not send the headers that this needs.`)), patience.frame);
    addEventListener("message", ({ source, data }) => {
      if (source !== this.frame.contentWindow) return;
      if (data === "runner") resolve(undefined);
      else this.onTold(data);
    }, { signal: this.#ended.signal });
    const [script] = await Promise.all([loadScript(), promise.finally(() => clearTimeout(late))]);
    this.frame.contentWindow?.postMessage({ script }, "*", [port]);
  }

  /** Pyodide's own files, and the runtime's wheel: code cannot ask for anything else. @param {{ wants: string, number: number }} wanted */
  async #give({ wants, number }) {
    const { pyodide, runtime } = await siteFacts();
    const path = wants === "runtime.whl" ? runtime : `${pyodide}${wants}`;
    const response = PLAIN.test(wants) ? await fetched(path).catch(() => null) : null;
    const content = await response?.arrayBuffer() ?? null;
    this.port.postMessage({ gives: number, content }, content ? [content] : []);
  }

  end() {
    this.#ended.abort();
    this.frame.remove();
    this.port.close();
  }
}

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
