// The panel of models, in three parts: the one in use (with its kernels, and whether this machine computes it right), those that
// this browser stores, and those that are available. A line says what each is and how it would run here; a click on it shows
// the details. The Hub's part is in hub.js, that of the user's own files in files.js.

/** @import { LoadedModel, OfferedModel } from "../../inpage.js" */

import { copyOf, page, partOf } from "../elements.js";
import { on } from "../events.js";
import "./hub.js";
import { markdownIn } from "../markdown.js";
import { addressOfLoaded, canKeep, keepCopy } from "./files.js";
import { fitWords, showInPanel } from "./fit.js";
import { actionOf, listModels, loadFrom, loading, models, plainOf, stored } from "./models.js";
import { notify } from "../notices.js";
import { keep, recall } from "../settings/settings.js";
import { decimal, faultOf, inWords, line, t, tell } from "../wording.js";

const { cancelLoad, deleteLoaded, keepLoaded, layers, loadedStatus, model: picker, models: panel, verdict, verify } = page;
/** @type {Set<string>} */
const going = new Set(); // addresses of what the user deletes: until the panel closes, that can be undone
/** @type {typeof loading} */
let pausable; // the load whose files are fetched: Load goes on with what has arrived
let room = Infinity; // bytes that this browser may still keep

/** Gives a model's address as `stored` has it. @param {string | null | undefined} path */
const urlOf = (path) => (!path || /^(hf|local):/.test(path) ? path ?? "" : new URL(path, document.baseURI).href);

/** Gives the address of the model in use. */
const usedUrl = () => urlOf(addressOfLoaded());

/** @param {string} url */
const isKept = (url) => stored.some((each) => each.url === url);

/** Names a model; a name that several share says which. @param {OfferedModel} model */
const titleOf = ({ name, path }) => (path && models.filter((each) => each.name === name)[1] ? `${name} (${path})` : name);

// ---- what is stored, and what else there is

function showRows() {
  const used = usedUrl();
  const offered = models.map((model) => ({ model, url: urlOf(model.path) }));
  const left = stored.filter(({ url }) => !offered.some((each) => each.url === url))
    .map(({ name, url, facts, messages }) => ({ model: { name, facts, messages, path: "", stored: true }, url }));
  const others = [...offered, ...left].filter(({ url }) => !used || url !== used);
  page.storedRows.replaceChildren(...others.filter(({ url }) => isKept(url)).map(rowOf));
  page.modelRows.replaceChildren(...others.filter(({ url }) => !isKept(url)).map(rowOf));
}

/** @type {(entry: { model: OfferedModel, url: string }) => HTMLElement} */
function rowOf({ model, url }) {
  const { name, path, stored: isWhole } = model;
  const row = copyOf(page.modelRow);
  const [load, remove] = /** @type {HTMLButtonElement[]} */ (["load", "delete"].map((part) => partOf(row, part)));
  const title = titleOf(model);
  partOf(row, "name").textContent = title;
  partOf(row, "facts").textContent = tell(model.messages) ?? "";
  partOf(row, "fit").textContent = (model.unfit && tell(model.unfit)) || roomWords(model);
  load.textContent = model.kept_bytes && !isWhole ? actionOf(model) : t`Use`;
  load.ariaLabel = model.kept_bytes && !isWhole ? `${load.textContent}: ${title}` : t`Use ${title}`;
  load.hidden = !path;
  load.disabled = model.fits_gpu === false || (!!model.error && !isWhole);
  load.onclick = () => {
    going.delete(url);
    loadModel(path, name, !isWhole);
  };
  remove.hidden = !isKept(url);
  remove.onclick = () => {
    turnGoing(url);
    showGoing();
  };
  function showGoing() {
    partOf(row, "words").textContent = going.has(url) ? goingWords()
      : line(path ? plainOf(model) : t`no longer offered by this site`, fitWords(model.size ?? 0, model.fits_gpu === false));
    showDeletion(remove, url, title);
  }
  showGoing();
  return row;
}

/** Has a model be deleted, or not any more. @param {string} url */
function turnGoing(url) {
  if (!going.delete(url)) going.add(url);
}

const goingWords = () => t`will be deleted when you close this window.`;

/** @type {(button: HTMLButtonElement, url: string, title: string) => void} */
function showDeletion(button, url, title) {
  const isGoing = going.has(url);
  button.textContent = isGoing ? t`Undo` : t`Delete`;
  button.ariaLabel = isGoing ? t`Keep ${title}` : t`Delete ${title}`;
}

/** @param {OfferedModel} model */
function roomWords({ stored: isWhole, size = 0, kept_bytes: kept = 0 }) {
  if (isWhole || size - kept <= room) return "";
  return t`This browser has ${inWords(room)} of storage left, which is not enough to store this model for your next visit.`;
}

/**
 * Loads what the user has chosen here. A model of the Hub takes the place of the one in use when all of it is here.
 * @type {(where: string, name: string, isFetched: boolean) => Promise<void>}
 */
export async function loadModel(where, name, isFetched) {
  panel.close();
  on("modelslisted", () => choose(where), { once: true });
  const loaded = loadFrom(where, name);
  if (isFetched) pausable = loading;
  showCancel();
  await loaded;
  if (inpage.loaded && page.loadError.textContent) notify(page.loadError.textContent); // the card that says so is not shown
}

function showCancel() {
  cancelLoad.textContent = loading && loading === pausable ? t`Pause` : t`Cancel`;
}

/** Chooses what was paused: Load goes on with it. @param {string} path */
function choose(path) {
  const at = [...picker.options].findIndex(({ value }) => value === path);
  if (at < 0) return;
  picker.selectedIndex = at;
  picker.dispatchEvent(new Event("change"));
}

panel.onclose = async () => {
  const urls = [...going];
  going.clear();
  if (!urls.length) return;
  for (const url of urls) {
    const name = stored.find((each) => each.url === url)?.name ?? url;
    await inpage.deleteStored(url).catch((error) => notify(t`${name} was not deleted: ${faultOf(error)}.`, { stays: true }));
  }
  await listModels();
};

async function measure() {
  if (!panel.open) return;
  const { usage = 0, quota = Infinity } = await navigator.storage.estimate().catch(() => /** @type {StorageEstimate} */ ({}));
  room = Math.max(quota - usage, 0);
  showRows();
}

new MutationObserver(() => { if (panel.open) showInPanel(); }).observe(panel, { attributeFilter: ["open"] });
new MutationObserver(measure).observe(panel, { attributeFilter: ["open"] });
on("modelchange", showRows);
on("modelchange", showCancel);
on("modelslisted", showRows);
on("modelchosen", ({ where, name, isFetched }) => { loadModel(where, name, isFetched); });
showRows();

// ---- one copy for all sites, where the browser offers that

const SHARES = "inpageShares";
const { shareStored, sharingStatus } = page;

page.sharing.hidden = !("crossOriginStorage" in navigator);
shareStored.checked = recall(SHARES) === "1";
shareStored.onchange = async () => {
  const { checked } = shareStored;
  shareStored.disabled = true;
  sharingStatus.textContent = checked ? t`Sharing what is stored…` : "";
  try {
    const can = await inpage.shareStored(checked);
    shareStored.checked = checked && can;
    sharingStatus.textContent = !checked ? t`Copies that are already shared stay in the browser.` : can ? t`Other sites that need the same model do not download it again.` : t`This browser cannot share stored models between sites.`;
  } catch (error) {
    shareStored.checked = !checked;
    sharingStatus.textContent = t`That did not work: ${faultOf(error)}.`;
  }
  keep(SHARES, shareStored.checked ? "1" : "");
  shareStored.disabled = false;
};

// ---- the model in use, on this machine

function showLoaded() {
  const { loaded } = inpage;
  page.loadedName.textContent = loaded?.name ?? "";
  page.loadedFacts.textContent = (loaded && tell(loaded.messages)) ?? "";
  layers.replaceChildren();
  verdict.textContent = "";
  verdict.dataset.outcome = "";
  loadedStatus.textContent = "";
  showLoadedLine();
}

/** Shows what is known of the model in use, and what can be done with it. */
function showLoadedLine() {
  const { loaded } = inpage;
  const url = usedUrl();
  keepLoaded.hidden = !loaded || !canKeep() || isKept(url);
  deleteLoaded.hidden = !loaded || !isKept(url);
  showDeletion(deleteLoaded, url, loaded?.name ?? "");
  page.loadedPlain.textContent = !loaded ? "" : going.has(url) ? goingWords()
    : line(plainOf(loaded), isKept(url) ? t`stored in this browser` : t`not stored in this browser`);
}

deleteLoaded.onclick = () => {
  turnGoing(usedUrl());
  showLoadedLine();
};
keepLoaded.onclick = async () => {
  keepLoaded.disabled = true;
  await keepCopy((words) => { loadedStatus.textContent = words; });
  keepLoaded.disabled = false;
  showLoadedLine();
};
on("modelslisted", showLoadedLine);

page.unload.onclick = async () => {
  await inpage.unload();
  page.models.close();
  page.load.focus();
};

/** @type {AbortController | undefined} */
let verifying;

verify.onclick = async () => {
  if (verifying) return verifying.abort();
  const { signal } = verifying = new AbortController();
  const offer = verify.textContent;
  verify.textContent = t`Cancel`;
  verdict.dataset.outcome = "";
  verdict.textContent = t`Verifying…`;
  layers.replaceChildren();
  try {
    const { ok, messages, table } = await inpage.verify({ signal, onProgress: showProgress });
    verdict.textContent = messages.map(tell).join(" ");
    verdict.dataset.outcome = ok ? "good" : "bad";
    markdownIn(layers).finish(table);
  } catch (error) {
    verdict.textContent = signal.aborted ? t`Cancelled.` : faultOf(error);
  }
  verifying = undefined;
  verify.textContent = offer;
};

/** @param {{ messages: import("../../inpage.d.ts").EngineMessage[] }} progress */
function showProgress({ messages }) {
  verdict.textContent = tell(messages) ?? "";
}

on("modelchange", showLoaded);
showLoaded();

// ---- the kernels that the model in use runs on, in what arithmetic, and what was measured to choose them

/** @param {string} chosen */
function whyOf(chosen) {
  switch (chosen) {
    case "measured": return t`measured just now`;
    case "remembered": return t`measured at an earlier load`;
    case "asked for": return t`asked for`;
    case "memory": return t`since memory is short`;
    default: return t`by what the device says of itself`;
  }
}

/** @param {string} arithmetic */
function ofMany(arithmetic) {
  switch (arithmetic) {
    case "bytes": return t`several tokens by bytes, in 15 bits`;
    case "matrices": return t`several tokens by matrix units, in halves`;
    default: return t`several tokens by floats`;
  }
}

/** @param {LoadedModel["kernels"]} kernels */
function arithmeticOf({ wide, one_token: one, many_tokens: many }) {
  if (!wide) return "";
  return line(
    one === "bytes" ? t`one token by bytes, as exact as by floats` : t`one token by floats`,
    ofMany(many),
  );
}

function showKernels() {
  const { kernels, kv } = inpage.loaded ?? {};
  const { kernelFacts } = page;
  kernelFacts.hidden = !kernels;
  if (!kernels) return;
  kernelFacts.replaceChildren(...[
    line(t`Kernels: ${kernels.name}`, whyOf(kernels.chosen)),
    arithmeticOf(kernels),
    kv && line(t`Memory of the context: ${Number(kv.type.slice(1))} bits`, whyOf(kv.chosen)),
    ...kernels.measured.map(({ kernels: name, one_token_us: one, many_tokens_us: many }) => t`A layer by ${name}: ${decimal(one)} µs for one token, ${decimal(many)} µs for 256.`),
  ].filter(Boolean).map((text) => Object.assign(document.createElement("li"), { textContent: text })));
}

on("modelchange", showKernels);
showKernels();
