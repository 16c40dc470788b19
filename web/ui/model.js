// The model: which there are, loading one, what is kept of them, whether this GPU computes right.

import { markdownIn } from "./markdown.js";
import { copyOf, line, page } from "./page.js";

const { load, loadError, model: picker, progress, verdict, verify } = page;

let models = [];
let loading; // the AbortController of a load under way

export async function listModels() {
  const chosen = picker.value;
  const stored = await inpage.stored();
  models = await inpage.models();
  picker.replaceChildren(...models.map(({ name }) => new Option(name, name, false, name === chosen)));
  picker.onchange();
  page.stored.replaceChildren(...stored.map(({ name, url, facts }) => {
    const row = copyOf(page.storedRow);
    const [words, button] = row.children;
    words.textContent = facts;
    button.ariaLabel = `Delete ${name}`;
    button.onclick = async () => {
      await inpage.deleteStored(url);
      page.machine.focus();
      await listModels();
    };
    return row;
  }));
}

picker.onchange = () => {
  const model = models[picker.selectedIndex];
  load.disabled = !model;
  page.modelFacts.textContent = model ? model.facts : "This site has no model yet: export one, then reload.";
  load.textContent = model?.action ?? "Load";
};

/** Shows what is loaded, perhaps by a script. */
export function showModel() {
  const { loaded } = inpage;
  const name = loading ? "Loading…" : loaded?.name ?? "No model";
  page.modelName.textContent = name;
  document.body.dataset.model = loading ? "loading" : loaded ? "ready" : "none";
  page.loadedFacts.textContent = loaded && line(name, loaded.facts);
  page.layers.replaceChildren();
  verdict.textContent = "";
  dispatchEvent(new Event("modelchange"));
}

export function showStep(phase, text, state) {
  const step = page[`step-${phase}`];
  step.dataset.state = state;
  step.lastElementChild.textContent = text;
}

function onProgress({ phase, done, total, text, seconds, fraction }) {
  showStep(phase, text, done < total ? "running" : "done");
  progress.value = fraction;
  page.progressText.textContent = line(`${Math.round(fraction * 100)} %`, `${seconds.toFixed(1)} s`);
}

/** A model of this site by its name, or a list of the reader's files. */
async function loadFrom(where, name) {
  const { signal } = loading = new AbortController();
  for (const phase of ["download", "upload", "shaders"]) showStep(phase, "", "");
  progress.removeAttribute("value");
  loadError.textContent = "";
  showModel();
  page.cancelLoad.focus();
  const { about, message } = await inpage.load(where, { onProgress, signal }).catch((error) => error);
  if (loading?.signal !== signal) return about; // another load took its place
  if (signal.aborted) loadError.textContent = "Cancelled. Load goes on from what has arrived.";
  else if (!message) page.announcer.textContent = `${name} is ready.`;
  else if (!about) loadError.textContent = `${name} could not be loaded: ${message}. Load tries again, from what has arrived.`;
  loading = undefined;
  showModel();
  (inpage.loaded ? page.draft : load).focus();
  listModels();
  return about;
}

page.loadForm.onsubmit = (event) => {
  event.preventDefault();
  const { name } = models[picker.selectedIndex];
  loadFrom(name, name);
};
page.cancelLoad.onclick = () => loading.abort();

/** Tells what files hold; a decoder beside its tokenizer can be talked to at once. */
async function open([...files]) {
  const names = files.map(({ name }) => name).join(", ");
  page.about.textContent = `Reading ${names}…`;
  if (!page.opened.open) page.opened.showModal();
  markdownIn(page.about).finish(await loadFrom(files, names) ?? page.loadError.textContent);
}

page.files.onchange = () => open(page.files.files);
document.ondragover = document.ondrop = (event) => {
  const { files, types } = event.dataTransfer;
  if (!types.includes("Files")) return; // but a text, say
  event.preventDefault();
  if (files.length) open(files);
};

page.unload.onclick = async () => {
  await inpage.unload();
  page.machine.close();
  load.focus();
};

verify.onclick = async () => {
  verify.disabled = true;
  verdict.textContent = "Verifying…";
  try {
    const { summary, table } = await inpage.verify();
    verdict.textContent = summary;
    markdownIn(page.layers).finish(table);
  } catch ({ message }) {
    verdict.textContent = message;
  }
  verify.disabled = false;
};
