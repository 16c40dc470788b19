// The page: starts the engine, shows how it starts, and offers it as globalThis.inpage.

import { createInpage } from "./api.js";
import { opened } from "./ui/chats.js";
import { loadMarkdown } from "./ui/markdown.js";
import { listModels, showModel, showStep } from "./ui/model.js";
import { fetched, notify, page, partOf } from "./ui/page.js";
import { reopen } from "./ui/sidebar.js";

/** @param {import("./calls.d.ts").Phase} phase */
function onPhase({ name, seconds }) {
  const phase = page[`phase-${name}`];
  const text = partOf(phase, "words").textContent;
  page.failure.hidden = true; // of the engine before this one
  page.status.textContent = text;
  showStep("Python", text, "running");
  if (seconds !== undefined) partOf(phase, "time").textContent = `${seconds.toFixed(2)} s`;
}

/**
 * The words are in index.html.
 * @param {import("./inpage.d.ts").InpageError} failure
 */
function onFailure({ kind, phase, message }) {
  const { failure } = page;
  const words = page[`failure-${kind}`] ?? page["failure-start-failed"];
  failure.replaceChildren(words.content.cloneNode(true), page.failureDetail.content.cloneNode(true));
  partOf(failure, "detail").textContent = phase ? `While starting “${phase}”: ${message}` : message;
  partOf(failure, "reload").onclick = () => location.reload();
  partOf(failure, "restart").onclick = async () => (await recovery())?.restart();
  failure.hidden = false;
  failure.scrollIntoView();
  page.status.textContent = "Stopped.";
}

const recovery = () => fetched(import("./ui/recovery.js")); // few need it
const onBusy = async (/** @type {boolean} */ busy) => (await recovery())?.showBusy(busy);

/** @param {import("./inpage.d.ts").ReadyReport} report */
function showMachine({ facts, phases }) {
  const seconds = `${phases.reduce((sum, phase) => sum + phase.seconds, 0).toFixed(1)} s`;
  page.status.textContent = `Ready in ${seconds}.`;
  showStep("Python", seconds, "done");
  listModels();
  page.facts.textContent = facts;
}

const more = () => import("./ui/hub.js");
const onHub = async () => (await fetched(more()))?.permission();

/**
 * Dialogs whose script comes when they are opened: few open them.
 * @type {Record<string, () => Promise<object>>}
 */
const panels = {
  console: () => import("./ui/console.js"),
  machine: () => import("./ui/machine.js"),
  hub: more,
};

/** @param {"console" | "hub" | "machine" | "settings"} name */
async function openDialog(name) {
  if (name in panels && !await fetched(panels[name]())) return;
  page[name].showModal();
}

/**
 * @param {Iterable<File>} files
 * @param {Iterable<any>} items
 */
async function openFiles(files, items = []) {
  const listed = [...files]; // the browser takes the lists back
  const handles = [...items].map((item) => item.getAsFileSystemHandle?.());
  (await fetched(import("./ui/opening.js")))?.openFiles(listed, handles);
}

document.addEventListener("click", ({ target }) => {
  const { opens, chooses } = /** @type {Element} */ (target).closest("button")?.dataset ?? {};
  if (opens) openDialog(/** @type {Parameters<typeof openDialog>[0]} */ (opens));
  if (chooses) page[/** @type {"files" | "importFile"} */ (chooses)].click();
});
page.files.onchange = () => openFiles(page.files.files ?? []);
document.ondragover = document.ondrop = (event) => {
  const { files, items, types } = /** @type {DataTransfer} */ (event.dataTransfer);
  if (!types.includes("Files")) return; // but a text, say
  event.preventDefault();
  if (files.length) openFiles(files, items);
};

const { inpage, client } = createInpage({ onBusy, onPhase, onFailure, onHub, onModel: showModel, onRestart: showMachine });
globalThis.inpage = inpage;
inpage.onNotice(({ text }) => notify(text));
inpage.ready.then(showMachine, () => {});
const isolation = crossOriginIsolated ? undefined : await fetched(import("./isolation.js"));
if (!await isolation?.reloadsIsolated()) client.start();
await Promise.allSettled([opened, loadMarkdown()]);
reopen();
import("./ui/later.js").catch(() => {}); // what nobody needs in the first second
