// The model in use, and whether this GPU computes it right. Fetched with the panel of models.

import { markdownIn } from "./markdown.js";
import "./opening.js"; // whose dialog chooses files
import { page, t } from "./page.js";

const { layers, verdict, verify } = page;

function showLoaded() {
  const { loaded } = inpage;
  page.loadedName.textContent = loaded?.name ?? "";
  page.loadedPlain.textContent = t(loaded?.plain ?? "");
  page.loadedFacts.textContent = t(loaded?.facts ?? "");
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
showLoaded();
