// The page: starts the engine, shows how it starts, and offers it as globalThis.inpage.

/** @import { ButtonData, Dialog } from "./ui/elements.js" */

import { createInpage } from "./api.js";
import { opened } from "./ui/chat_store.js";
import "./ui/hearing.js";
import { loadMarkdown } from "./ui/markdown.js";
import { listModels, showModel, showStep, stored, tellReadiness } from "./ui/model.js";
import { decimal, fetched, lazy, notify, page, partOf, t, tell } from "./ui/page.js";
import { reopen } from "./ui/sidebar.js";

/** @param {import("./calls.d.ts").Phase} phase */
function onPhase({ name, seconds }) {
  const phase = page[`phase-${name}`];
  const text = partOf(phase, "words").textContent;
  page.failure.hidden = true; // of the engine before this one
  page.status.textContent = text;
  showStep("Python", text, "running");
  tellReadiness();
  if (seconds !== undefined) partOf(phase, "time").textContent = t`${decimal(seconds, 2)} s`;
}

// Few need these.
const recovery = lazy(() => import("./ui/recovery.js"));
const arriving = lazy(() => import("./ui/arriving.js"));
const hub = lazy(() => import("./ui/hub.js"));
const turns = lazy(() => import("./ui/turns.js"));
const tools = lazy(() => import("./ui/chat_tools.js"));

/** @param {import("./inpage.d.ts").ReadyReport} report */
async function showMachine({ adapter, facts, phases }) {
  const seconds = t`${decimal(phases.reduce((sum, phase) => sum + phase.seconds, 0), 1)} s`;
  page.status.textContent = t`Ready in ${seconds}.`;
  showStep("Python", seconds, "done");
  page.facts.textContent = facts;
  document.body.toggleAttribute("data-software", adapter.is_fallback);
  await listModels();
}

/** Its script comes when a dialog is opened: few open one. @param {Dialog} name */
async function openDialog(name) {
  if (await fetched(import(`./ui/${name}.js`).then(({ prepare }) => prepare?.() ?? true))) page[name].showModal();
}

document.addEventListener("click", ({ target }) => {
  const button = /** @type {Element} */ (target).closest("button");
  const { act, chooses, opens, tool } = /** @type {ButtonData} */ (button?.dataset ?? {});
  if (button && act) turns.act(button);
  if (tool) tools[tool]();
  if (opens) openDialog(opens);
  if (chooses) page[chooses].click();
});
page.chatTitle.onchange = () => { tools.rename(); };
page.importFile.onchange = () => { tools.importFiles(); };

const { inpage, client } = createInpage({
  newWorker: (options) => new Worker(new URL("./worker.js", import.meta.url), options),
  kernels: /** @type {any} */ (new URLSearchParams(location.search).get("kernels")),
  onBusy: recovery.showBusy, onPhase, onFailure: recovery.showFailure, onHub: hub.permission, onModel: showModel, onRestart: showMachine,
});
globalThis.inpage = inpage;
inpage.onNotice(({ kind, code, facts, text }) => notify(tell({ code, facts }) ?? text, { stays: kind === "storage" }));
inpage.ready.then(showMachine).then(() => { if (stored.length) arriving.loadStored(); }, () => {});
const isolation = crossOriginIsolated ? undefined : await fetched(import("./isolation.js"));
if (!await isolation?.reloadsIsolated()) client.start();
await Promise.allSettled([opened, loadMarkdown()]);
reopen();
import("./ui/later.js").catch(() => {}); // what nobody needs in the first second
