// A cell of the notebook: code with its outputs, or a text in Markdown.

/** @import { InpageError } from "../../inpage.js" */
/** @import { Editor } from "./editor.js" */
/** @import { CellRecord } from "./files.js" */

import { answerIn, promptOf } from "../answers.js";
import { pathOf, shown, titleOf } from "../chats.js";
import { emit } from "../events.js";
import { markdownIn } from "../markdown.js";
import { t } from "../wording.js";
import { editorIn } from "./editor.js";
import { Outputs } from "./outputs.js";

/**
 * What a cell needs of its notebook.
 * @typedef {object} Book
 * @property {() => void} changed
 * @property {(cell: Cell, isNext: boolean) => void} run
 * @property {(cell: Cell) => void} remove
 * @property {(cell: Cell, step: -1 | 1) => void} move
 */

const LOOK_MILLISECONDS = 100;

let runs = 0; // cells of this page that have run

export class Cell {
  /** @type {Editor | undefined} */
  #editor;
  #text;
  /** @type {AbortController | undefined} */
  #running;

  /**
   * @param {Book} book
   * @param {CellRecord} record
   */
  constructor(book, { kind, text, outputs, count }) {
    this.book = book;
    this.kind = kind;
    this.#text = text;
    this.count = count;
    this.element = document.createElement("section");
    this.element.className = `cell ${kind}`;
    this.element.ariaLabel = kind === "code" ? t`Code cell` : t`Text cell`;
    this.source = document.createElement("div");
    this.source.className = "source";
    const results = document.createElement("div");
    Object.assign(results, { className: "outputs", role: "log", ariaLabel: t`Output` });
    this.outputs = new Outputs(results);
    this.status = document.createElement("p");
    this.status.className = "quiet";
    this.status.role = "status";
    this.runButton = button(t`Run`, "▸", () => (this.#running ? this.stop() : book.run(this, false)));
    this.runButton.className = "run";
    const tools = document.createElement("div");
    tools.className = "cell-tools";
    tools.append(
      button(t`Move up`, "↑", () => book.move(this, -1)),
      button(t`Move down`, "↓", () => book.move(this, 1)),
      button(t`Delete this cell`, "×", () => book.remove(this)),
    );
    this.element.append(...(kind === "code" ? [this.runButton] : []), this.source, tools, results, this.status);
    this.outputs.show(outputs);
    if (kind === "code") this.#edit();
    else this.#showText();
    this.#showState();
  }

  get text() {
    return this.#editor?.text() ?? this.#text;
  }

  get isRunning() {
    return !!this.#running;
  }

  /** @returns {CellRecord} */
  get record() {
    return { kind: this.kind, text: this.text, outputs: this.outputs.kept, count: this.count };
  }

  focus() {
    if (this.#editor) this.#editor.focus();
    else this.source.focus();
  }

  async #edit() {
    const plain = Object.assign(document.createElement("pre"), { textContent: this.#text });
    this.source.append(plain); // until the editor is here
    this.#editor = await editorIn(this.source, {
      text: this.#text,
      label: t`Code`,
      onChange: () => this.book.changed(),
      onRun: (isNext) => this.book.run(this, isNext),
    });
    plain.remove();
  }

  #showText() {
    const view = document.createElement("div");
    view.className = "text";
    this.source.replaceChildren(view);
    this.source.tabIndex = 0;
    markdownIn(view).finish(this.#text || t`*Empty: double-click to write*`);
    const write = () => this.#writeText();
    this.source.ondblclick = write;
    this.source.onkeydown = (event) => { if (event.key === "Enter" && event.target === this.source) write(); };
  }

  #writeText() {
    const field = document.createElement("textarea");
    Object.assign(field, { value: this.#text, ariaLabel: t`Text`, rows: 4 });
    field.oninput = () => { this.#text = field.value; this.book.changed(); };
    field.onblur = () => this.#showText();
    this.source.replaceChildren(field);
    this.source.ondblclick = this.source.onkeydown = null;
    field.focus();
  }

  /** @param {string} [words] */
  #showState(words = "") {
    this.element.toggleAttribute("data-running", !!this.#running);
    this.runButton.textContent = this.#running ? "■" : "▸";
    this.runButton.title = this.runButton.ariaLabel = this.#running ? t`Stop` : t`Run`;
    this.runButton.dataset.count = this.count === null ? "" : String(this.count);
    this.status.textContent = words;
  }

  stop() {
    this.#running?.abort();
    this.#showState(t`Stopping…`);
  }

  /** Runs the code; whether it came to its end. */
  async run() {
    if (this.#running || this.kind !== "code") return true;
    const own = this.#running = new AbortController();
    this.outputs.clear();
    this.count = ++runs;
    this.#showState(t`Running…`);
    let words = "";
    let isWell = true;
    try {
      const chat = { title: titleOf(shown), messages: promptOf(shown.system, pathOf(shown)) };
      await inpage.call("cell", { code: this.text, number: this.count, chat }, { onEvent: (told) => this.#hear(told, own.signal), signal: own.signal });
    } catch (error) {
      const { traceback, message, hint = "" } = /** @type {InpageError & { hint?: string }} */ (error);
      isWell = false;
      words = own.signal.aborted ? t`Stopped.` : "";
      if (!own.signal.aborted) this.outputs.add({ kind: "error", text: traceback ?? message, hint });
    }
    this.#running = undefined;
    this.#showState(words);
    own.abort(); // fields that nobody waits for any more
    this.book.changed();
    return isWell;
  }

  /** @type {(told: import("../../calls.js").CellEvent, signal: AbortSignal) => void} */
  #hear({ printed, shown: data, name = "", progress, asks }, signal) {
    if (printed !== undefined) this.outputs.print(printed);
    if (data) this.outputs.add({ kind: "shown", data, name });
    if (progress) this.outputs.progress(progress);
    if (asks) this.#answer(asks, signal);
  }

  /** @type {(asks: NonNullable<import("../../calls.js").CellEvent["asks"]>, signal: AbortSignal) => Promise<void>} */
  async #answer({ number, kind, prompt = "", text = "" }, signal) {
    const value = kind === "send" ? await sent(text) : await this.outputs.ask(prompt, signal);
    await inpage.call("answer_cell", { number, value });
  }
}

/** Sends a message in the open chat, and gives the chat with its answer. @param {string} text */
async function sent(text) {
  const chat = shown;
  const given = () => ({ title: titleOf(chat), messages: promptOf(chat.system, pathOf(chat)) });
  if (!inpage.loaded) return { ...given(), error: t`No model is loaded: load one first.` };
  emit("messagesent", { content: text });
  while (answerIn(chat)) await new Promise((resolve) => { setTimeout(resolve, LOOK_MILLISECONDS); });
  return given();
}

/** @type {(label: string, sign: string, act: () => void) => HTMLButtonElement} */
export function button(label, sign, act) {
  const made = Object.assign(document.createElement("button"), { type: "button", title: label, ariaLabel: label, textContent: sign });
  made.onclick = act;
  return made;
}
