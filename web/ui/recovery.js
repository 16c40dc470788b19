// An engine that does not answer: the line that says so, interrupting it, starting it anew. Fetched when that is so.

import { loadFrom } from "./model.js";
import { copyOf, page, partOf } from "./page.js";

const line = copyOf(page.busy);
const interrupt = /** @type {HTMLButtonElement} */ (partOf(line, "interrupt"));
const [words, wordsMeanwhile] = /** @type {NodeListOf<HTMLElement>} */ (line.querySelectorAll(".words"));

/** @param {boolean} isInterrupting */
function show(isInterrupting) {
  words.hidden = isInterrupting;
  wordsMeanwhile.hidden = !isInterrupting;
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

interrupt.hidden = !crossOriginIsolated;
interrupt.onclick = () => show(inpage.interrupt());
partOf(line, "restart").onclick = restart;
