// Model and machine: what is loaded, whether this GPU computes it right, what is kept. Fetched when somebody opens it.

import { markdownIn } from "./markdown.js";
import { listModels, stored } from "./model.js";
import "./opening.js"; // whose dialog chooses files
import { copyOf, line, page, partOf, t } from "./page.js";

const { layers, verdict, verify } = page;
/** @type {Set<string>} */
const going = new Set(); // stored models that the user deletes: until the panel closes, that can be undone

function showLoaded() {
  const { loaded } = inpage;
  page.loadedFacts.textContent = loaded && line(loaded.name, t(loaded.facts));
  layers.replaceChildren();
  verdict.textContent = "";
  verdict.dataset.outcome = "";
}

function showStored() {
  page.stored.replaceChildren(...stored.map(({ name, url, facts }) => {
    const row = copyOf(page.storedRow);
    const button = partOf(row, "delete");
    const showGoing = () => {
      const isGoing = going.has(url);
      partOf(row, "words").textContent = isGoing ? t`${name} is deleted when you close this.` : t(facts);
      button.textContent = isGoing ? t`Undo` : t`Delete`;
      button.ariaLabel = isGoing ? t`Keep ${name}` : t`Delete ${name}`;
    };
    button.onclick = () => {
      if (!going.delete(url)) going.add(url);
      showGoing();
    };
    showGoing();
    return row;
  }));
}

page.machine.onclose = async () => {
  const urls = [...going];
  going.clear();
  for (const url of urls) await inpage.deleteStored(url);
  if (urls.length) await listModels();
};

page.unload.onclick = async () => {
  await inpage.unload();
  page.machine.close();
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
    const { ok, summary, table } = await inpage.verify({ signal, onProgress: showProgress });
    verdict.textContent = t(summary);
    verdict.dataset.outcome = ok ? "good" : "bad";
    markdownIn(layers).finish(table);
  } catch (error) {
    verdict.textContent = signal.aborted ? t`Cancelled.` : /** @type {Error} */ (error).message;
  }
  verifying = undefined;
  verify.textContent = offer;
};

/** @param {{ phase: string, done: number, total: number }} progress */
function showProgress({ phase, done, total }) {
  verdict.textContent = t`Verifying ${t(phase)}: ${Math.round(100 * done / total)} %`;
}

addEventListener("modelchange", showLoaded);
addEventListener("modelslisted", showStored);
showLoaded();
showStored();
