// The page: puts its parts together, starts the engine, and offers it as globalThis.inpage.

import { createInpage } from "./api.js";
import "./ui/files/attachments.js";
import { opened } from "./ui/chat_storage.js";
import { pathOf, shown } from "./ui/chats.js";
import { write } from "./ui/composer.js";
import { page } from "./ui/elements.js";
import { emit, on } from "./ui/events.js";
import { restart, showBusy, showFailure, showPhase, showReady } from "./ui/engine_status.js";
import { script } from "./ui/lazy.js";
import { loadMarkdown } from "./ui/markdown.js";
import { expectNone, loading, loadStored, showModel } from "./ui/models/models.js";
import { arrived, notify } from "./ui/notices.js";
import { keepOffline, reloadsIsolated } from "./ui/service_worker.js";
import { keptContext } from "./ui/settings/settings.js";
import "./ui/shortcuts.js";
import { reopen, tools } from "./ui/sidebar.js";
import { engineElsewhere } from "./ui/tabs.js";
import { t, tell } from "./ui/wording.js";

/** @typedef {"models" | "settings" | "tools"} Dialog */

/**
 * What a button says that a click on it does.
 * @typedef {object} ButtonData
 * @property {string} [act] with its message
 * @property {"attachFiles" | "attachFolder" | "takePhoto" | "files" | "importFile"} [chooses]
 * @property {Dialog} [opens]
 * @property {string} [panel] its name, or none for the last one
 * @property {keyof typeof tools} [tool]
 */

/** The dialogs: their scripts come when they are opened, and may have something to prepare. @type {Record<Dialog, () => Promise<any>>} */
const dialogs = {
  models: script(() => import("./ui/models/panel.js")),
  settings: script(() => import("./ui/settings/dialog.js")),
  tools: script(() => import("./ui/tools/dialog.js")),
};
const loadActions = script(() => import("./ui/message_actions.js"));
const loadCalls = script(() => import("./ui/tools/blocks.js"));
const loadCertainty = script(() => import("./ui/tokens/certainty.js"));
const loadDock = script(() => import("./ui/dock.js"));
const loadHub = script(() => import("./ui/models/hub.js"));
const loadSharingOfChats = script(() => import("./ui/sharing.js"));
const loadSpeech = script(() => import("./ui/speech.js"));
const loadSuggesting = script(() => import("./ui/models/fit.js"));

/** Opens a dialog, once what it shows is here. @param {Dialog} name */
async function openDialog(name) {
  const isPrepared = dialogs[name]().then(({ prepare }) => prepare?.()).then(() => true);
  if (await arrived(isPrepared) && !page[name].open) page[name].showModal();
}

/** Does what a button of a message says, or asks the example on it. @param {Element} button perhaps of a message that is no longer shown */
async function act(button) {
  const name = button.getAttribute("data-act") ?? "";
  const id = button.closest("article")?.dataset.id;
  const message = pathOf(shown).find((each) => each.id === id);
  if (name === "ask") {
    write(button.textContent);
    page.composer.requestSubmit();
  } else if (message) (await arrived(loadActions()))?.actions[name](message, button);
}

/** Opens what a link names: a panel, `#panel=lens&layer=3`, or a chat that it carries. */
async function openLinked() {
  const { chat, panel: name, ...settings } = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
  if (chat !== undefined) (await arrived(loadSharingOfChats()))?.openLink(location.hash);
  if (name) emit("panelwanted", { name, settings });
}

document.addEventListener("click", ({ target }) => {
  const button = /** @type {Element} */ (target).closest("button");
  const { act: isOfMessage, chooses, opens, panel, tool } = /** @type {ButtonData} */ (button?.dataset ?? {});
  if (button && isOfMessage) act(button);
  if (tool) tools[tool]();
  if (opens) openDialog(opens);
  if (chooses) page[chooses].click();
  if (panel !== undefined) emit("panelwanted", { name: panel, settings: {} });
});
on("callsshown", async ({ article, message }) => (await arrived(loadCalls()))?.show(article, message));
on("certaintyshown", async ({ article, message }) => (await arrived(loadCertainty()))?.show(article, message));
on("hubmodelwanted", async (where) => {
  openDialog("models");
  (await arrived(loadHub()))?.look(where);
});
on("panelwanted", async (wanted) => (await arrived(loadDock()))?.showPanel(wanted));
on("answerwritten", (message) => { loadSuggesting().then(({ consider }) => consider(message), () => {}); }); // none is missed
addEventListener("hashchange", openLinked);

// ---- the engine: this tab's own, or that of another tab

const loadSharing = script(() => import("./ui/engine_sharing.js"));
/** @type {Worker | undefined} */
let worker;
/** @type {((options: WorkerOptions) => Worker)} */
const newWorker = (options) => new Worker(new URL("./worker.js", import.meta.url), options);
let begin = newWorker;
let isOffered = false; // the engine of another tab
let guests = 0; // that have come

/** Offers the model of another tab, instead of loading it again, as long as that tab has it. */
async function offerSharing() {
  const isOpen = !inpage.loaded && !loading && begin === newWorker;
  if (!isOpen || (!isOffered && !engineElsewhere())) return;
  const sharing = await arrived(loadSharing());
  sharing?.offer(async (other) => {
    begin = () => sharing.guestOf(other, leaveOther);
    document.body.dataset.guest = "";
    await inpage.restart().catch(() => {}); // the page shows the failure
  });
  if (!isOffered) expectNone();
  isOffered = !!engineElsewhere();
  if (!isOffered) loadStored();
}

/** Goes on with an engine of this tab's own, once the other's is gone. */
function leaveOther() {
  begin = newWorker;
  delete document.body.dataset.guest;
  notify(t`The tab whose model was used here is closed: the model is now loaded in this tab.`);
  restart();
}

on("tabschange", offerSharing);
on("guestcame", async (guest) => {
  guests++;
  if (worker) (await arrived(loadSharing()))?.host(worker, guest);
});

const address = new URLSearchParams(location.search);
const { inpage, client } = createInpage({
  newWorker(options) {
    if (guests) loadSharing().then(({ endGuests }) => endGuests(), () => {});
    return worker = begin(options);
  },
  device: /** @type {const} */ (["gpu", "cpu"]).find((kind) => kind === address.get("device")) ?? null,
  kernels: /** @type {any} */ (address.get("kernels")),
  get kv() { return /** @type {any} */ (address.get("kv")) ?? keptContext(); },
  onBusy: showBusy, onPhase: showPhase, onFailure: showFailure, onModel: showModel, onRestart: showReady,
  onHub: async () => (await arrived(loadHub()))?.permission(),
});
globalThis.inpage = inpage;
inpage.onNotice(({ kind, code, facts, text }) => notify(tell({ code, facts }) ?? text, { stays: kind === "storage" }));
inpage.ready.then(showReady).then(() => isOffered || loadStored(), expectNone);
inpage.ready.then(keepOffline).catch(() => {}); // an engine that did not start, a browser that keeps nothing
if (crossOriginIsolated || !await reloadsIsolated()) client.start();
await Promise.allSettled([opened, loadMarkdown()]);
reopen();
openLinked();
loadSpeech().catch(() => {}); // there are no buttons for it then
