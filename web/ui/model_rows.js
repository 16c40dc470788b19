// The models to choose from, of this site and in this browser: load one, switch to it, delete it. Fetched with their panel.

/** @import { OfferedModel } from "../inpage.js" */

import { listModels, loadFrom, loading, models, stored } from "./model.js";
import { copyOf, faultOf, inWords, line, notify, page, partOf, t, tell } from "./page.js";
import { actionOf, plainOf } from "./model_wording.js";

const { cancelLoad, model: picker, models: panel } = page;
/** @type {Set<string>} */
const going = new Set(); // addresses of what the user deletes: until the panel closes, that can be undone
/** @type {typeof loading} */
let pausable; // the load whose files are fetched: Load goes on with what has arrived
let room = Infinity; // bytes that this browser may still keep

/** As `stored` has them. @param {string | null | undefined} path */
const urlOf = (path) => (!path || /^(hf|local):/.test(path) ? path ?? "" : new URL(path, document.baseURI).href);

/** A name that several share says which. @param {OfferedModel} model */
const titleOf = ({ name, path }) => (models.filter((each) => each.name === name)[1] ? `${name} (${path})` : name);

export function showRows() {
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
      : line(isInUse && t`in use`, path ? plainOf(model) : t`no longer offered by this site`, isWhole && t`stored in this browser`, model.fits_gpu && t`fits this GPU`);
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
 * A model of the Hub takes the place of the one in use when all of it is here.
 * @type {(where: string, name: string, isFetched: boolean) => Promise<void>}
 */
export async function loadModel(where, name, isFetched) {
  panel.close();
  addEventListener("modelslisted", () => choose(where), { once: true });
  const loaded = loadFrom(where, name);
  if (isFetched) pausable = loading;
  showCancel();
  await loaded;
  if (inpage.loaded && page.loadError.textContent) notify(page.loadError.textContent); // the card that says so is not shown
}

function showCancel() {
  cancelLoad.textContent = loading && loading === pausable ? t`Pause` : t`Cancel`;
}

/** What was paused is what Load goes on with. @param {string} path */
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

new MutationObserver(measure).observe(panel, { attributeFilter: ["open"] });
addEventListener("modelchange", showRows);
addEventListener("modelchange", showCancel);
addEventListener("modelslisted", showRows);
showRows();
