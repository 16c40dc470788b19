// An engine that does not answer, or has failed: what says so, interrupting it, starting it anew. Fetched when that is so.

import { loadFrom } from "./model.js";
import { copyOf, page, partOf, t } from "./page.js";

const line = copyOf(page.busy);
const interrupt = /** @type {HTMLButtonElement} */ (partOf(line, "interrupt"));

/** @param {boolean} isInterrupting */
function show(isInterrupting) {
  partOf(line, "unanswered").hidden = isInterrupting;
  partOf(line, "interrupting").hidden = !isInterrupting;
  interrupt.disabled = isInterrupting;
}

/** @param {boolean} busy */
export function showBusy(busy) {
  const heads = document.querySelectorAll("dialog[open] .dialog-head"); // nothing but a dialog's own can be pressed then
  const head = [...heads].at(-1);
  if (!busy) line.remove();
  else if (head && head.nextSibling !== line) head.after(line);
  else if (!head && line.parentElement !== page.notices) page.notices.append(line);
  if (!busy) show(false);
}

/** Another engine, with the model that the user saw as loaded. */
export async function restart() {
  const { loaded } = inpage;
  showBusy(false);
  if (loaded) await loadFrom(loaded.name, loaded.name, inpage.restart);
  else await inpage.restart().catch(() => {}); // the page shows the failure
}

/**
 * The words are in index.html.
 * @param {import("../inpage.d.ts").InpageError} fault
 */
export function showFailure({ kind, phase, message }) {
  const { failure } = page;
  const explanation = page[`failure-${kind}`] ?? page["failure-start-failed"];
  failure.replaceChildren(explanation.content.cloneNode(true), page.failureDetail.content.cloneNode(true));
  partOf(failure, "detail").textContent = phase ? t`While starting “${phase}”: ${message}` : message;
  partOf(failure, "reload").onclick = () => location.reload();
  partOf(failure, "restart").onclick = restart;
  failure.hidden = false;
  failure.scrollIntoView();
  page.status.textContent = t`Stopped.`;
}

interrupt.hidden = !crossOriginIsolated;
interrupt.onclick = () => show(inpage.interrupt());
partOf(line, "restart").onclick = restart;
