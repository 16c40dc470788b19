// The engine's status: how it starts, and what says that it does not answer or has failed, interrupts it, starts it anew.

/** @import { Phase } from "../calls.js" */
/** @import { Device, InpageError, ReadyReport } from "../inpage.js" */

import { copyOf, page, partOf } from "./elements.js";
import { emit, on } from "./events.js";
import { listModels, loadFrom, showStep } from "./models/models.js";
import { decimal, t } from "./wording.js";

/** Shows the phase that the start is in. @param {Phase} phase */
export function showPhase({ name, seconds }) {
  const phase = page[`phase-${name}`];
  const text = partOf(phase, "words").textContent;
  page.failure.hidden = true; // of the engine before this one
  page.status.textContent = text;
  showStep("Python", text, "running");
  emit("readiness");
  if (seconds !== undefined) partOf(phase, "time").textContent = t`${decimal(seconds, 2)} s`;
}

/** @type {Device} */
let ownDevice = { kind: "gpu", threads: null }; // of the engine, for loads that ask for none

/** Shows what models run on, in words where it is the processor. @param {Device} device */
function showDevice({ kind, threads }) {
  document.body.dataset.device = kind;
  const words = kind === "cpu" ? t`Running on your processor (${threads ?? 1} thread).|Running on your processor (${threads ?? 1} threads).` : "";
  for (const element of document.querySelectorAll(".threads")) element.textContent = words;
}

on("modelchange", () => showDevice(inpage.loaded?.device ?? ownDevice));

/** Shows the engine that has started, and what it can load. @param {ReadyReport} report */
export async function showReady({ adapter, device, facts, phases }) {
  ownDevice = device;
  const seconds = t`${decimal(phases.reduce((sum, phase) => sum + phase.seconds, 0), 1)} s`;
  page.status.textContent = t`Ready in ${seconds}.`;
  showDevice(device);
  showStep("Python", seconds, "done");
  page.facts.textContent = facts;
  document.body.toggleAttribute("data-software", adapter.is_fallback);
  await listModels();
}

/** Starts another engine, with the model that the user saw as loaded. */
export async function restart() {
  const { loaded } = inpage;
  showBusy(false);
  if (loaded) await loadFrom(loaded.name, loaded.name, inpage.restart);
  else await inpage.restart().catch(() => {}); // the page shows the failure
}

/** Shows why the engine has failed; the words are in index.html. @param {InpageError} fault */
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

// ---- an engine that does not answer

/** @type {HTMLElement | undefined} */
let busyLine; // while there is none

/** Shows whether the engine answers. @param {boolean} isBusy */
export function showBusy(isBusy) {
  if (!isBusy) {
    busyLine?.remove();
    busyLine = undefined;
    return;
  }
  const line = busyLine ??= newBusyLine();
  const heads = document.querySelectorAll("dialog[open] .dialog-head"); // nothing but a dialog's own can be pressed then
  const head = [...heads].at(-1);
  if (head && head.nextSibling !== line) head.after(line);
  else if (!head && line.parentElement !== page.notices) page.notices.append(line);
}

function newBusyLine() {
  const line = copyOf(page.busy);
  const interrupt = /** @type {HTMLButtonElement} */ (partOf(line, "interrupt"));
  interrupt.hidden = !crossOriginIsolated;
  interrupt.onclick = () => {
    const isInterrupting = inpage.interrupt();
    partOf(line, "unanswered").hidden = isInterrupting;
    partOf(line, "interrupting").hidden = !isInterrupting;
    interrupt.disabled = isInterrupting;
  };
  partOf(line, "restart").onclick = restart;
  return line;
}
