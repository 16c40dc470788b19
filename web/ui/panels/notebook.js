// The notebook: cells that run in the interpreter of the model. Each chat has its own, kept and exported with it.

/** @import { PanelSettings } from "../dock.js" */
/** @import { CellRecord } from "../notebook/files.js" */

import { fileName, giveFile } from "../chat_files.js";
import { saveChat } from "../chat_storage.js";
import { shown } from "../chats.js";
import { styleSheet } from "../elements.js";
import { emit, on } from "../events.js";
import { lazy } from "../lazy.js";
import { notify } from "../notices.js";
import { button, Cell } from "../notebook/cell.js";
import { experiments, fromIpynb, fromPercent, textOf, toIpynb, toPercent } from "../notebook/files.js";
import { t } from "../wording.js";

const SAVE_MILLISECONDS = 800;
const MAX_CHARACTERS = 4_000_000; // of a notebook that is kept: a longer one is kept without its outputs

const loadStyles = lazy(styleSheet("ui/notebook/notebook.css"));

/** The notebook of a chat. */
class Book {
  /** @type {Cell[]} */
  cells = [];
  /** @type {string | undefined} */
  text; // as it was read or kept last
  #timer = 0;
  isStopped = false;

  /** @param {import("../chats.js").Chat} chat */
  constructor(chat) {
    this.chat = chat;
    this.list = document.createElement("div");
    this.list.className = "cells";
    this.read();
  }

  /** Takes in what is kept, unless this tab wrote it. */
  read() {
    if (this.text === this.chat.notebook) return;
    this.text = this.chat.notebook;
    this.put(fromIpynb(this.text || "{}") ?? []);
  }

  /** @param {CellRecord[]} records */
  put(records) {
    this.cells = records.map((record) => new Cell(this, record));
    if (!this.cells.length) this.cells = [new Cell(this, emptyCell())];
    this.#show();
  }

  #show() {
    this.list.replaceChildren(...this.cells.map(({ element }) => element));
    showGallery();
  }

  get isEmpty() {
    return this.cells.every(({ text }) => !text.trim());
  }

  get records() {
    return this.cells.map(({ record }) => record);
  }

  /** @type {(record: CellRecord, at?: number) => Cell} */
  add(record, at = this.cells.length) {
    const cell = new Cell(this, record);
    this.cells.splice(at, 0, cell);
    this.#show();
    this.changed();
    return cell;
  }

  /** @type {(cell: Cell, isNext: boolean) => Promise<void>} */
  async run(cell, isNext) {
    const at = this.cells.indexOf(cell);
    const next = isNext && (this.cells[at + 1] ?? this.add(emptyCell()));
    if (next) setTimeout(() => next.focus(), 50); // its editor may be new
    showGallery();
    await cell.run();
  }

  /** Runs cells one after the other, until one fails or is stopped. @param {Cell[]} cells */
  async runAll(cells = this.cells) {
    this.isStopped = false;
    for (const cell of [...cells]) if (this.isStopped || !await cell.run()) break;
  }

  stop() {
    this.isStopped = true;
    for (const cell of this.cells) if (cell.isRunning) cell.stop();
  }

  /** @param {Cell} cell */
  remove(cell) {
    if (cell.isRunning) cell.stop();
    const at = this.cells.indexOf(cell);
    const [{ record }] = this.cells.splice(at, 1);
    if (!this.cells.length) this.cells = [new Cell(this, emptyCell())];
    this.#show();
    this.changed();
    this.cells[Math.min(at, this.cells.length - 1)].focus();
    if (record.text.trim()) notify(t`The cell is deleted.`, { undo: () => this.add(record, at).focus() });
  }

  /** @type {(cell: Cell, step: -1 | 1) => void} */
  move(cell, step) {
    const at = this.cells.indexOf(cell);
    const to = at + step;
    if (!this.cells[to]) return;
    [this.cells[at], this.cells[to]] = [this.cells[to], this.cells[at]];
    this.#show();
    this.changed();
  }

  changed() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.save(), SAVE_MILLISECONDS);
    showGallery();
  }

  save() {
    clearTimeout(this.#timer);
    const records = this.records;
    let text = this.isEmpty ? "" : toIpynb(records);
    if (text.length > MAX_CHARACTERS) text = toIpynb(records.map((record) => ({ ...record, outputs: [] })));
    if (text === this.chat.notebook) return;
    this.text = this.chat.notebook = text;
    this.chat.set.notebook = Date.now();
    saveChat(this.chat);
    emit("chatschange");
  }
}

/** @returns {CellRecord} */
const emptyCell = (text = "") => ({ kind: "code", text, outputs: [], count: null });

/** @type {Map<string, Book>} */
const books = new Map(); // by chat: what runs goes on when another chat is opened
/** @type {HTMLElement} */
let panel;
/** @type {HTMLElement} */
let place;
/** @type {HTMLElement} */
let gallery;
let isGalleryOpen = false;

function bookOf(chat = shown) {
  const book = books.get(chat.id) ?? new Book(chat);
  books.set(chat.id, book);
  return book;
}

/** @type {(element: HTMLElement, settings: PanelSettings) => Promise<void>} */
export async function show(element, { code, experiment }) {
  await loadStyles();
  if (!panel) build(element);
  showBook();
  const book = bookOf();
  if (code) addCode(book, [emptyCell(code)]);
  const found = experiments.find(({ name }) => name === experiment);
  if (found) await tryOut(found.name);
}

/** @param {HTMLElement} element */
function build(element) {
  panel = element;
  place = document.createElement("div");
  gallery = document.createElement("section");
  gallery.className = "gallery";
  gallery.ariaLabel = t`Experiments`;
  const file = Object.assign(document.createElement("input"), { type: "file", accept: ".ipynb,.py", hidden: true });
  file.ariaLabel = t`Import`;
  file.onchange = async () => {
    for (const each of file.files ?? []) await importFile(each);
    file.value = "";
  };
  const bar = document.createElement("div");
  bar.className = "notebook-bar";
  bar.setAttribute("role", "toolbar");
  bar.ariaLabel = t`Notebook`;
  const stop = tool(t`Stop`, () => bookOf().stop());
  stop.className = "stop";
  bar.append(
    tool(t`Run all`, () => bookOf().runAll()),
    stop,
    tool(t`Experiments`, () => { isGalleryOpen = !isGalleryOpen; showGallery(); }),
    tool(t`Import`, () => file.click()),
    tool(".ipynb", () => giveFile(fileName(shown, "ipynb"), toIpynb(bookOf().records), "application/x-ipynb+json"), t`Export as .ipynb`),
    tool(".py", () => giveFile(fileName(shown, "py"), toPercent(bookOf().records), "text/x-python"), t`Export as .py`),
    file,
  );
  const foot = document.createElement("div");
  foot.className = "notebook-foot";
  foot.append(
    tool(t`Add code`, () => bookOf().add(emptyCell()).focus()),
    tool(t`Add text`, () => bookOf().add({ ...emptyCell(), kind: "markdown" }).focus()),
  );
  for (const { name, title, words } of experiments) {
    const card = button(title(), "", () => tryOut(name));
    card.append(Object.assign(document.createElement("b"), { textContent: title() }), Object.assign(document.createElement("small"), { textContent: words() }));
    card.removeAttribute("title");
    card.ariaLabel = null;
    gallery.append(card);
  }
  panel.append(bar, gallery, place, foot);
  on("chatshown", showBook);
  on("chatschange", showBook);
  on("chatmerged", () => { books.get(shown.id)?.read(); });
}

/** @type {(words: string, act: () => void, label?: string) => HTMLButtonElement} */
function tool(words, act, label = words) {
  const made = button(label, words, act);
  if (label === words) made.removeAttribute("title");
  return made;
}

/** Shows the open chat's. */
function showBook() {
  const book = bookOf();
  if (place.firstChild === book.list) return;
  place.replaceChildren(book.list);
  isGalleryOpen = false;
  showGallery();
}

function showGallery() {
  if (gallery) gallery.hidden = !(isGalleryOpen || books.get(shown.id)?.isEmpty);
}

/** Cells at the end, or in the place of an empty one. @type {(book: Book, records: CellRecord[]) => Cell[]} */
function addCode(book, records) {
  if (book.isEmpty) {
    book.put(records);
    book.changed();
    return book.cells;
  }
  const added = records.map((record) => book.add(record));
  added[0]?.element.scrollIntoView({ block: "start" });
  return added;
}

/** Puts an experiment into the notebook, and runs it. @param {string} name */
async function tryOut(name) {
  isGalleryOpen = false;
  const book = bookOf();
  const cells = addCode(book, fromPercent(await textOf(name)));
  showGallery();
  await book.runAll(cells);
}

/** @param {File} file */
async function importFile(file) {
  const text = await file.text();
  const records = file.name.endsWith(".py") ? fromPercent(text) : fromIpynb(text);
  if (!records?.length) return notify(t`${file.name} is not a notebook: choose an .ipynb or a .py file.`, { stays: true });
  addCode(bookOf(), records);
}

/** @returns {SVGSVGElement | null} */
export const picture = () => bookOf().cells.map(({ outputs }) => outputs.picture).findLast(Boolean) ?? null;

export const data = () => JSON.parse(toIpynb(bookOf().records));
