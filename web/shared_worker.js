// One engine for several tabs: worker.js in a SharedWorker (docs/embedding.md). What it posts goes to the tab whose call
// it answers, and what is nobody's to all of them; web/shared_tab.js is a tab's side.

/** @import { FromTab, FromWorker } from "./calls.d.ts" */

const RELOADING_MILLISECONDS = 500; // a tab that is reloaded comes back
/** @type {Set<MessagePort>} */
const tabs = new Set();
/** @type {Map<number, { port: MessagePort, id: number }>} */
const calls = new Map(); // a call's number here → whose it is, and its number there
/** @type {FromWorker[]} */
const told = []; // how the engine started: for tabs that come later
/** @type {FromWorker | undefined} */
let model; // the last notice of one
let lastCall = 0;
let isStarted = false;

const scope = /** @type {any} */ (globalThis);

/** As worker.js calls it. @param {FromWorker} message */
scope.postMessage = (message) => {
  const { id } = message;
  const call = id && calls.get(id);
  if (call) {
    call.port.postMessage({ ...message, id: call.id });
    if (message.done) calls.delete(id);
  } else if (!id) {
    if (id === undefined) told.push(message);
    else if (JSON.parse(message.json).kind === "model") model = message;
    for (const port of tabs) port.postMessage(message);
  }
};
const engine = import("./worker.js");

/** @param {object} data */
const tell = (data) => engine.then(() => scope.dispatchEvent(new MessageEvent("message", { data })));

/** What nobody waits for ends. @param {MessagePort} port */
function leave(port) {
  tabs.delete(port);
  for (const [number, call] of calls) if (call.port === port) tell({ id: number });
  port.close();
  setTimeout(closeIfEmpty, RELOADING_MILLISECONDS);
}

/** The door stays shut until this worker has ended: whoever comes meanwhile gets the next one (web/shared_tab.js). */
const closeIfEmpty = () => navigator.locks.request(`door of ${scope.name}`, () => {
  if (tabs.size) return;
  scope.close();
  return new Promise(() => {});
});

/** @type {(port: MessagePort, message: FromTab) => void} */
function receive(port, { id, call, question, lock, outerPage, device, ...rest }) {
  if (question) return port.postMessage({ event: "answer", question });
  if (lock) {
    if (!isStarted) tell({ outerPage, device });
    isStarted = true;
    for (const message of model ? [model, ...told] : told) port.postMessage(message);
    tabs.add(port);
    port.postMessage({ event: "entered" });
    navigator.locks.request(lock, () => leave(port)); // the tab holds it while it is there
  } else if (call) {
    calls.set(++lastCall, { port, id });
    tell({ ...rest, call, id: lastCall });
  } else {
    for (const [number, one] of calls) if (one.port === port && one.id === id) tell({ id: number });
  }
}

addEventListener("connect", (event) => {
  const [port] = /** @type {MessageEvent} */ (event).ports;
  port.onmessage = ({ data }) => receive(port, data);
});
