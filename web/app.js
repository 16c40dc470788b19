// The page: starts the engine, shows how it starts, and offers it as globalThis.inpage.

import { createInpage } from "./api.js";
import { reloadsIsolated } from "./isolation.js";
import { opened } from "./ui/chats.js";
import "./ui/console.js";
import { loadMarkdown } from "./ui/markdown.js";
import { listModels, showModel, showStep } from "./ui/model.js";
import { notify, page } from "./ui/page.js";
import { reopen } from "./ui/sidebar.js";

function onPhase({ name, seconds }) {
  const { firstChild: text, lastElementChild: time } = page[`phase-${name}`];
  page.status.textContent = text.data;
  showStep("Python", text.data, "running");
  if (seconds >= 0) time.textContent = `${seconds.toFixed(2)} s`;
}

/** The words are in index.html. */
function onFailure({ kind, phase, message }) {
  const { failure } = page;
  const words = page[`failure-${kind}`] ?? page["failure-start-failed"];
  failure.replaceChildren(words.content.cloneNode(true), page.failureDetail.content.cloneNode(true));
  failure.querySelector("pre").textContent = phase ? `While starting “${phase}”: ${message}` : message;
  failure.querySelector("button").onclick = () => location.reload();
  failure.hidden = false;
  page.status.textContent = "Stopped.";
}

function showMachine({ facts, phases }) {
  const seconds = `${phases.reduce((sum, phase) => sum + phase.seconds, 0).toFixed(1)} s`;
  page.status.textContent = `Ready in ${seconds}.`;
  showStep("Python", seconds, "done");
  listModels();
  page.facts.textContent = facts;
}

document.addEventListener("click", ({ target }) => {
  const { opens, chooses } = target.closest("button")?.dataset ?? {};
  if (opens) page[opens].showModal();
  if (chooses) page[chooses].click();
});

const { inpage, client } = createInpage({ onPhase, onFailure, onModel: showModel });
globalThis.inpage = inpage;
inpage.onNotice(({ text }) => notify(text));
inpage.ready.then(showMachine, () => {});
if (!await reloadsIsolated()) client.start();
await Promise.allSettled([opened, loadMarkdown()]);
reopen();
