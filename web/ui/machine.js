// The model in use, and whether this GPU computes it right. Fetched with the panel of models.

import { markdownIn } from "./markdown.js";
import "./opening.js"; // whose dialog chooses files
import { plainOf } from "./model_wording.js";
import { faultOf, page, t, tell } from "./page.js";

const { layers, verdict, verify } = page;

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

addEventListener("modelchange", showLoaded);
showLoaded();
