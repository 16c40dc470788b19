// The panel of models: those to choose from, of this site and in this browser (load one, switch to it, delete it), the one
// in use, whether this machine computes it right, and on which kernels. Its other parts are in hub.js and model_files.js.

/** @import { LoadedModel, OfferedModel } from "../inpage.js" */

import { copyOf, page, partOf } from "./elements.js";
import { on } from "./events.js";
import "./hub.js";
import { markdownIn } from "./markdown.js";
import "./model_files.js";
import { fitWords, showInPanel } from "./model_fit.js";
import { actionOf, listModels, loadFrom, loading, models, plainOf, stored } from "./models.js";
import { notify } from "./notices.js";
import { decimal, faultOf, inWords, line, t, tell } from "./wording.js";

const { cancelLoad, layers, model: picker, models: panel, verdict, verify } = page;
/** @type {Set<string>} */
const going = new Set(); // addresses of what the user deletes: until the panel closes, that can be undone
/** @type {typeof loading} */
let pausable; // the load whose files are fetched: Load goes on with what has arrived
let room = Infinity; // bytes that this browser may still keep

/** Gives a model's address as `stored` has it. @param {string | null | undefined} path */
const urlOf = (path) => (!path || /^(hf|local):/.test(path) ? path ?? "" : new URL(path, document.baseURI).href);

/** Names a model; a name that several share says which. @param {OfferedModel} model */
const titleOf = ({ name, path }) => (models.filter((each) => each.name === name)[1] ? `${name} (${path})` : name);

function showRows() {
  const offered = models.map((model) => ({ model, url: urlOf(model.path) }));
  const left = stored.filter(({ url }) => !offered.some((each) => each.url === url));
  page.modelRows.replaceChildren(
    ...offered.map(({ model, url }) => rowOf(model, url)),
    ...left.map(({ name, url, facts, messages }) => rowOf({ name, facts, messages, path: "", stored: true }, url)),
  );
}

/** @type {(model: OfferedModel, url: string) => HTMLElement} */
function rowOf(model, url) {
  const { name, path, stored: isWhole } = model;
  const row = copyOf(page.modelRow);
  const [load, remove] = /** @type {HTMLButtonElement[]} */ (["load", "delete"].map((part) => partOf(row, part)));
  const isInUse = !!url && url === urlOf(inpage.loaded?.path);
  const title = path ? titleOf(model) : name;
  partOf(row, "name").textContent = title;
  partOf(row, "facts").textContent = tell(model.messages) ?? "";
  partOf(row, "fit").textContent = (model.unfit && tell(model.unfit)) || roomWords(model);
  load.textContent = loadWords(model);
  load.ariaLabel = `${load.textContent}: ${title}`;
  load.hidden = isInUse || !path;
  load.disabled = model.fits_gpu === false || (!!model.error && !isWhole);
  load.onclick = () => {
    going.delete(url);
    loadModel(path, name, !isWhole);
  };
  remove.hidden = !stored.some((each) => each.url === url);
  remove.onclick = () => {
    if (!going.delete(url)) going.add(url);
    showGoing();
  };
  function showGoing() {
    const isGoing = going.has(url);
    partOf(row, "words").textContent = isGoing
      ? t`will be deleted when you close this window.`
      : line(isInUse && t`in use`, path ? plainOf(model) : t`no longer offered by this site`, isWhole && t`stored in this browser`, fitWords(model.size ?? 0, model.fits_gpu === false));
    remove.textContent = isGoing ? t`Undo` : t`Delete`;
    remove.ariaLabel = isGoing ? t`Keep ${title}` : t`Delete ${title}`;
  }
  showGoing();
  return row;
}

/** @param {OfferedModel} model */
function loadWords(model) {
  if (model.stored) return inpage.loaded ? t`Switch` : t`Load`;
  return model.kept_bytes ? actionOf(model) : t`Download and load`;
}

/** @param {OfferedModel} model */
function roomWords({ stored: isWhole, size = 0, kept_bytes: kept = 0 }) {
  if (isWhole || size - kept <= room) return "";
  return t`This browser has ${inWords(room)} of storage left: it cannot store this model for your next visit.`;
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

// ---- the model in use, on this machine

function showLoaded() {
  const { loaded } = inpage;
  page.loadedName.textContent = loaded?.name ?? "";
  page.loadedPlain.textContent = loaded ? plainOf(loaded) : "";
  page.loadedFacts.textContent = (loaded && tell(loaded.messages)) ?? "";
  layers.replaceChildren();
  verdict.textContent = "";
  verdict.dataset.outcome = "";
}

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

/** @param {{ messages: import("../inpage.d.ts").EngineMessage[] }} progress */
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
    default: return t`by what the device says of itself`;
  }
}

/** @param {LoadedModel["kernels"]} kernels */
function arithmeticOf({ wide, one_token: one, many_tokens: many }) {
  if (!wide) return "";
  return line(
    one === "bytes" ? t`one token by bytes, as exact as by floats` : t`one token by floats`,
    many === "bytes" ? t`several tokens by bytes, in 15 bits` : t`several tokens by floats`,
  );
}

function showKernels() {
  const kernels = inpage.loaded?.kernels;
  const { kernelFacts } = page;
  kernelFacts.hidden = !kernels;
  if (!kernels) return;
  kernelFacts.replaceChildren(...[
    line(t`Kernels: ${kernels.name}`, whyOf(kernels.chosen)),
    arithmeticOf(kernels),
    ...kernels.measured.map(({ kernels: name, one_token_us: one, many_tokens_us: many }) => t`A layer by ${name}: ${decimal(one)} µs for one token, ${decimal(many)} µs for 128.`),
  ].filter(Boolean).map((text) => Object.assign(document.createElement("li"), { textContent: text })));
}

on("modelchange", showKernels);
showKernels();
