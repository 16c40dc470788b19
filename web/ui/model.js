// The model: which there are, and loading one.

import { actionOf, plainOf } from "./model_wording.js";
import { decimal, faultOf, keep, line, page, partOf, t, tell } from "./page.js";

/** @import { LoadFrom, ShowStep } from "./elements.js" */
/** @import { LoadProgress, OfferedModel, StoredModel } from "../inpage.js" */

const { load, loadError, model: picker, progress } = page;

/** @type {OfferedModel[]} */
export let models = [];
let listFault = ""; // why there is no list of them
/** @type {StoredModel[]} */
export let stored = []; // what this browser keeps
/** @type {AbortController | undefined} */
export let loading; // a load under way
export let isListed = false;

export const tellReadiness = () => dispatchEvent(new Event("readiness"));

export async function listModels() {
  const chosen = picker.value;
  stored = await inpage.stored().catch(() => stored); // without an answer the old list stands
  listFault = "";
  models = await inpage.models().catch((error) => {
    listFault = t`The models of this site could not be listed: ${faultOf(error)}. Reload to try again.`;
    return models;
  });
  picker.replaceChildren(...models.map(({ name, path }) => new Option(name, path, false, path === chosen)));
  isListed = true;
  showChosen();
  tellReadiness();
  dispatchEvent(new Event("modelslisted"));
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
  const { loaded } = inpage;
  page.modelName.textContent = loading ? t`Loading…` : loaded?.name ?? t`No model`;
  document.body.dataset.model = loading ? "loading" : loaded ? "ready" : "none";
  dispatchEvent(new Event("modelchange"));
}

/** @type {ShowStep} */
export function showStep(phase, text, state) {
  const step = page[`step-${phase}`];
  step.dataset.state = state;
  partOf(step, "detail").textContent = text;
}

/** @param {LoadProgress} load */
function onProgress({ phase, done, total, messages, seconds, fraction }) {
  showStep(phase, tell(messages) ?? "", done < total ? "running" : "done");
  progress.value = fraction;
  page.progressText.textContent = line(`${Math.round(fraction * 100)} %`, t`${decimal(seconds, 1)} s`);
  tellReadiness();
}

/** A model of this site by its name, or the user's files; gives what is known of these. @type {LoadFrom} */
export async function loadFrom(where, name, begin = (/** @type {any} */ options) => inpage.load(where, options)) {
  const { signal } = loading = new AbortController();
  const isAsked = page.loadForm.contains(document.activeElement);
  for (const phase of /** @type {const} */ (["download", "upload", "shaders"])) showStep(phase, "", "");
  progress.removeAttribute("value");
  loadError.textContent = "";
  showModel();
  if (isAsked) page.cancelLoad.focus();
  /** @type {{ about?: string, fault?: string }} */
  const { about, fault } = await begin({ onProgress, signal }).catch((error) => ({ about: error.about, fault: faultOf(error) }));
  if (loading?.signal !== signal) return about; // another load took its place
  if (signal.aborted) loadError.textContent = t`Cancelled. Starting again resumes the download.`;
  else if (!fault) page.announcer.textContent = t`${name} is ready.`;
  else if (!about) loadError.textContent = t`${name} could not be loaded: ${fault}. Trying again resumes the download.`;
  loading = undefined;
  showModel();
  if (inpage.loaded?.path) keep("inpageModel", inpage.loaded.path);
  if (isAsked) (inpage.loaded ? page.draft : load).focus();
  listModels();
  return about;
}

page.loadForm.onsubmit = (event) => {
  event.preventDefault();
  const { name, path } = models[picker.selectedIndex];
  loadFrom(path, name);
};
page.cancelLoad.onclick = () => loading?.abort();
