// The page: starts the engine, shows how it starts, and offers it as globalThis.inpage.

import { EngineClient } from "./client.js";
import { EXAMPLES } from "./examples.js";
import { describeFailure } from "./failures.js";
import { ensureIsolation } from "./isolation.js";

const PHASE_NAMES = {
  adapter: "Looking for a graphics processor",
  Python: "Python and numpy",
  runtime: "The inpage runtime",
  GPU: "Opening the GPU device",
};

const byId = (id) => document.getElementById(id);
const phaseRows = new Map();

function showPhase({ name, seconds }) {
  if (!phaseRows.has(name)) {
    const row = document.createElement("li");
    row.append(document.createElement("span"), document.createElement("span"));
    row.firstChild.textContent = PHASE_NAMES[name] ?? name;
    byId("phases").append(row);
    phaseRows.set(name, row);
  }
  const row = phaseRows.get(name);
  row.dataset.state = seconds === undefined ? "running" : "done";
  row.lastChild.textContent = seconds === undefined ? "…" : `${seconds.toFixed(2)} s`;
  byId("status").textContent = seconds === undefined ? `${PHASE_NAMES[name] ?? name}…` : byId("status").textContent;
}

function showFailure(failure) {
  for (const row of phaseRows.values()) {
    if (row.dataset.state !== "running") continue;
    row.dataset.state = "failed";
    row.lastChild.textContent = "failed";
  }
  byId("status").textContent = "Stopped.";
  byId("console").hidden = true;
  const panel = byId("failure");
  panel.replaceChildren(...describeFailure(failure));
  panel.hidden = false;
}

function showMachine({ adapter, features, limits, versions, phases }) {
  const seconds = phases.reduce((sum, phase) => sum + phase.seconds, 0);
  byId("status").textContent = `Ready in ${seconds.toFixed(1)} s.`;
  const gibibytes = (bytes) => `${(bytes / 2 ** 30).toFixed(2)} GiB`;
  const facts = {
    Adapter: [adapter.vendor, adapter.architecture, adapter.device, adapter.description].filter(Boolean).join(" · ")
      + (adapter.is_fallback ? " (software)" : ""),
    Features: features.join(", ") || "none of the optional ones",
    "Largest buffer": gibibytes(limits.max_buffer_size),
    "Largest binding": gibibytes(limits.max_storage_buffer_binding_size),
    Python: `${versions.python}, numpy ${versions.numpy}, inpage ${versions.inpage}`,
  };
  for (const [name, value] of Object.entries(facts)) {
    const term = document.createElement("dt");
    const detail = document.createElement("dd");
    term.textContent = name;
    detail.textContent = value;
    byId("facts").append(term, detail);
  }
  byId("machine").hidden = false;
  byId("console").hidden = false;
}

async function runConsole(event) {
  event.preventDefault();
  byId("run").disabled = true;
  byId("output").textContent = "Running…";
  delete byId("output").dataset.failed;
  try {
    const value = await inpage.python(byId("code").value);
    byId("output").textContent = typeof value === "string" ? value : JSON.stringify(value, null, 1);
  } catch (error) {
    byId("output").dataset.failed = "";
    byId("output").textContent = error.traceback ?? `${error.name}: ${error.message}`;
  } finally {
    byId("run").disabled = false;
  }
}

const client = new EngineClient({ onPhase: showPhase, onFailure: showFailure });

globalThis.inpage = {
  /** Resolves to {adapter, features, limits, versions, phases} once Python and the GPU are up. */
  ready: client.ready,
  /** Runs Python in the worker; resolves to the last expression's value as JSON. */
  python: (code) => client.call("python", code),
};

function showExample() {
  byId("code").value = EXAMPLES[byId("example").value];
}

byId("example").append(...Object.keys(EXAMPLES).map((name) => new Option(name)));
byId("example").addEventListener("change", showExample);
showExample();
byId("console-form").addEventListener("submit", runConsole);
byId("code").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) byId("console-form").requestSubmit();
});
client.ready.then(showMachine, () => {});
if (await ensureIsolation() !== "reloading") client.start();
