// The models: which there are, which one is loaded, and loading one.

/** @import { LoadedModel, LoadProgress, OfferedModel, StoredModel } from "../../inpage.js" */

import { page, partOf } from "../elements.js";
import { emit, on } from "../events.js";
import { keep, recall } from "../settings/settings.js";
import { decimal, faultOf, inWords, line, t, tell } from "../wording.js";

const { load, loadError, model: picker, progress } = page;

/** @type {OfferedModel[]} */
export let models = [];
let listFault = ""; // why there is no list of them
/** @type {StoredModel[]} */
export let stored = []; // what this browser keeps
/** @type {AbortController | undefined} */
export let loading; // a load under way
export let isListed = false;
let isComing = !!recall("inpageModel"); // the model of the last visit, unless it is gone
let isWanted = false; // by a message: sending it is a click on the button
let name = recall("inpageModelName") ?? ""; // of the model that is coming

/** Names the model that is being loaded, if one is. */
export const loadingName = () => (loading ? name : "");

/** Asks the engine which models there are, and offers them. */
export async function listModels() {
  const chosen = picker.value;
  stored = await inpage.stored().catch(() => stored); // without an answer the old list stands
  listFault = "";
  models = await inpage.models().catch((error) => {
    listFault = t`The models of this site could not be listed: ${faultOf(error)}. Reload to try again.`;
    return models;
  });
  picker.replaceChildren(...models.map((model) => new Option(model.name, model.path, false, model.path === chosen)));
  isListed = true;
  showChosen();
  emit("readiness");
  emit("modelslisted");
}

function showChosen() {
  const model = models[picker.selectedIndex];
  load.disabled = !model || (!!model.error && !model.stored);
  page.modelFacts.textContent = model ? plainOf(model) : listFault || t`This site has no model yet: export one, then reload.`;
  load.textContent = model ? actionOf(model) : t`Start chatting`;
}

picker.onchange = showChosen;

/** Shows what is loaded, perhaps by a script. */
export function showModel() {
  showState(inpage.loaded);
  emit("modelchange");
}

/** @param {LoadedModel | null} loaded */
function showState(loaded) {
  const isLoading = !!loading || (isComing && !loaded);
  page.modelName.textContent = isLoading ? t`Loading…` : loaded?.name ?? t`No model`;
  page.loadingHeading.textContent = name ? t`Loading ${name}…` : t`Loading the model`;
  document.body.dataset.model = isLoading ? "loading" : loaded ? "ready" : "none";
}

/**
 * Shows how a step on the way to a model goes.
 * @type {(phase: LoadProgress["phase"] | "Python", text: string, state: "" | "running" | "done") => void}
 */
export function showStep(phase, text, state) {
  const step = page[`step-${phase}`];
  step.dataset.state = state;
  partOf(step, "detail").textContent = text;
}

/** @param {LoadProgress} load */
function onProgress({ phase, done, total, messages, seconds, fraction }) {
  if (loading?.signal.aborted) return;
  showStep(phase, tell(messages) ?? "", done < total ? "running" : "done");
  progress.value = fraction;
  page.progressText.textContent = line(`${Math.round(fraction * 100)} %`, t`${decimal(seconds, 1)} s`);
  emit("readiness");
}

/**
 * Loads a model of this site by its name, or the user's files; gives what is known of these, and whether it is loaded. `begin` is what loads it,
 * unless the engine does from there.
 * @type {(where: string | File[], name: string, begin?: (options: any) => Promise<any>) => Promise<{ about?: string, isLoaded: boolean }>}
 */
export async function loadFrom(where, title, begin = (/** @type {any} */ options) => inpage.load(where, options)) {
  const { signal } = loading = new AbortController();
  name = title;
  isWanted = false;
  const isAsked = page.loadForm.contains(document.activeElement);
  for (const phase of /** @type {const} */ (["download", "upload", "shaders"])) showStep(phase, "", "");
  progress.removeAttribute("value");
  page.progressText.textContent = "";
  loadError.textContent = "";
  showModel();
  if (isAsked) page.cancelLoad.focus();
  /** @type {{ about?: string, fault?: string }} */
  const { about, fault } = await begin({ onProgress, signal }).catch((error) => ({ about: error.about, fault: faultOf(error) }));
  const outcome = { about, isLoaded: !fault };
  if (loading?.signal !== signal) return outcome; // another load took its place
  if (signal.aborted) loadError.textContent = t`Cancelled. Starting again resumes the download.`;
  else if (!fault) page.announcer.textContent = t`${title} is ready.`;
  else if (!about) loadError.textContent = t`${title} could not be loaded: ${fault}. Trying again resumes the download.`;
  loading = undefined;
  isComing = false;
  showModel();
  if (inpage.loaded?.path) {
    keep("inpageModel", inpage.loaded.path);
    keep("inpageModelName", inpage.loaded.name);
    if (inpage.loaded.is_encoder) keep("inpageEncoder", inpage.loaded.path); // files are searched by it
  }
  if (isAsked) (inpage.loaded ? page.draft : load).focus();
  listModels();
  return outcome;
}

page.loadForm.onsubmit = (event) => {
  event.preventDefault();
  const { name: title, path } = models[picker.selectedIndex];
  loadFrom(path, title);
};
page.cancelLoad.onclick = () => {
  if (!loading) return expectNone();
  loading.abort();
  page.progressText.textContent = t`Stopping…`;
};

/** Loads the model of the last visit, or else the first that this browser keeps: nobody has to ask for it. */
export function loadStored() {
  const here = models.filter((model) => model.stored);
  const last = here.find(({ path }) => path === recall("inpageModel")) ?? here[0];
  const isCancelled = !isComing && !!recall("inpageModel");
  expectNone();
  if (last && !isCancelled && !inpage.loaded && !inpage.loads) loadFrom(last.path, last.name);
  loadWanted();
}

/** No longer announces the model of the last visit. */
export function expectNone() {
  isComing = false;
  showModel();
}

/** Loads the model that the button names, where a message waits for one that nobody has asked for. */
function loadWanted() {
  if (!isWanted || !isListed || isComing || loading || inpage.loaded || inpage.loads) return;
  if (!page.guest.hidden) page.joinEngine.click();
  else if (!load.disabled) page.loadForm.requestSubmit();
}

on("messagesent", () => {
  isWanted = !inpage.loaded;
  loadWanted();
});
if (isComing) showState(null); // before the engine knows of any

// ---- a model for people who never heard of parameters, and words for the button that loads it

const WORDS_PER_TOKEN = 0.75;
const SMALL = 300e6; // bytes
const MEDIUM = 1500e6;

/** @param {number} size */
function kindOf(size) {
  if (size < SMALL) return t`small and fast`;
  return size < MEDIUM ? t`medium-sized` : t`large and slower`;
}

/** "small and fast · 101 MB · remembers about 1,500 words"; what is not known is left out. @param {LoadedModel | OfferedModel} model */
export function plainOf(model) {
  const { size, context, messages } = model;
  if ("error" in model) return tell(messages) ?? "";
  const words = Number(((context ?? 0) * WORDS_PER_TOKEN).toPrecision(2)); // nobody remembers 1,536 words
  return line(size && kindOf(size), size && inWords(size), words && t`remembers about ${words} words`);
}

/** @param {OfferedModel} model */
export function actionOf({ stored: isWhole, size, kept_bytes: kept }) {
  if (isWhole || !size) return t`Start chatting`;
  return kept ? t`Resume download (${inWords(kept)} of ${inWords(size)})` : t`Start chatting (${inWords(size)} download)`;
}
