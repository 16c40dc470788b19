// The model: which there are, loading one, what is kept of them, whether this GPU computes right.

import { copyOf, inBytes, line, page } from "./page.js";

const { load, loadError, model: picker, progress, verdict, verify } = page;

let models = [];
let loading; // the AbortController of a load under way

const factsOf = ({ parameters, size, context, gpu_bytes, quantisation }) => line(
  `${(parameters / 1e6).toFixed(1)} million parameters`, inBytes(size), `context of ${context} tokens`,
  `${inBytes(gpu_bytes)} of GPU memory`, quantisation,
);

export async function listModels() {
  const chosen = picker.value;
  const stored = await inpage.stored();
  models = await inpage.models();
  picker.replaceChildren(...models.map(({ name }) => new Option(name, name, false, name === chosen)));
  picker.onchange();
  page.stored.replaceChildren(...stored.map(({ name, url, bytes, complete }) => {
    const row = copyOf(page.storedRow);
    const [words, button] = row.children;
    words.textContent = line(name, inBytes(bytes), !complete && "in part");
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
  page.modelFacts.textContent = model ? factsOf(model) : "This site has no model yet: export one, then reload.";
  load.textContent = model?.stored ? "Load from this browser's storage" : `Load (${inBytes(model?.size ?? 0)})`;
};

/** Shows what is loaded, perhaps by a script. */
function sync() {
  const { loaded } = globalThis.inpage ?? {};
  const name = loaded?.name ?? (loading ? "Loading…" : "No model");
  if (page.modelName.textContent === name) return;
  page.modelName.textContent = name;
  document.body.dataset.model = loading ? "loading" : loaded ? "ready" : "none";
  page.loadedFacts.textContent = loaded && line(name, factsOf(loaded));
  page.layers.replaceChildren();
  verdict.textContent = "";
  dispatchEvent(new Event("modelchange"));
}

export function showStep(phase, text, state) {
  const step = page[`step-${phase}`];
  step.dataset.state = state;
  step.lastElementChild.textContent = text;
}

function onProgress({ phase, done, total, seconds, fraction }) {
  const unit = phase.endsWith("load") ? inBytes : String;
  showStep(phase, `${unit(done)} of ${unit(total)}`, done < total ? "running" : "done");
  progress.value = fraction;
  page.progressText.textContent = line(`${Math.round(fraction * 100)} %`, `${seconds.toFixed(1)} s`);
}

page.loadForm.onsubmit = async (event) => {
  event.preventDefault();
  const { name } = models[picker.selectedIndex];
  const { signal } = loading = new AbortController();
  for (const phase of ["download", "upload", "shaders", "warm-up"]) showStep(phase, "", "");
  progress.removeAttribute("value");
  loadError.textContent = "";
  sync();
  page.cancelLoad.focus();
  try {
    await inpage.load(name, { onProgress, signal });
    page.announcer.textContent = `${name} is ready.`;
  } catch ({ message }) {
    loadError.textContent = signal.aborted ? "Cancelled. Load goes on from what has arrived."
      : `${name} could not be loaded: ${message}. Load tries again, from what has arrived.`;
  }
  loading = undefined;
  sync();
  (inpage.loaded ? page.draft : load).focus();
  listModels();
};
page.cancelLoad.onclick = () => loading.abort();

page.unload.onclick = async () => {
  await inpage.unload();
  page.machine.close();
  load.focus();
};

verify.onclick = async () => {
  verify.disabled = true;
  verdict.textContent = "Verifying…";
  try {
    const { summary, layers } = await inpage.verify();
    verdict.textContent = summary;
    page.layers.replaceChildren();
    for (const { layer, relative_rms, worst } of layers) {
      const row = page.layers.insertRow();
      for (const cell of [layer, relative_rms.toExponential(1), worst.toExponential(1)]) row.insertCell().append(cell);
    }
  } catch ({ message }) {
    verdict.textContent = message;
  }
  verify.disabled = false;
};

document.addEventListener("focusin", sync);
