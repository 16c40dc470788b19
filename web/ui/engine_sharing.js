// An engine that two tabs use: its own tab passes the other's calls on to the worker, which another tab takes for its own.

/** @import { FromWorker } from "../calls.js" */

import { tab, tell } from "./chat_storage.js";
import { page } from "./elements.js";
import { engineElsewhere, lockOf } from "./tabs.js";
import { t } from "./wording.js";

/** What goes over the wire: from a guest, or to one; to all of them where `to` is "". @typedef {{ from?: string, to?: string, message: any }} Wired */

const FIRST = 1e9; // numbers of guests' calls: the tab's own stay below
const ENDED = { event: "failed", failure: { kind: "crashed", message: "the engine of the other tab has ended" } };

/** @param {string} name */
const wireOf = (name) => new BroadcastChannel(`inpage engine ${name}`);

// ---- the tab that has the engine

/** @type {BroadcastChannel | undefined} */
let wire;
/** @type {Worker | undefined} */
let own;
/** @type {Map<number, { guest: string, id: number }>} */
const calls = new Map(); // by their numbers here
let next = FIRST;

/** Lets another tab use this one's engine. @type {(worker: Worker, guest: string) => Promise<void>} */
export async function host(worker, guest) {
  wire ??= openWire();
  if (own !== worker) {
    if (own) endGuests(); // they asked an engine that is no more
    own = worker;
    worker.addEventListener("message", ({ data }) => passBack(data));
  }
  navigator.locks.request(lockOf(guest), () => leave(guest)); // it is free once that tab is gone
  const report = await inpage.ready;
  const { loaded } = inpage;
  const notice = { kind: "model", loaded, paths: loaded?.path ? { [loaded.name]: loaded.path } : {} };
  for (const message of [{ event: "ready", report }, { id: 0, json: JSON.stringify(notice) }]) wire.postMessage({ to: guest, message });
}

/** Tells the guests that the engine they used has ended. */
export function endGuests() {
  calls.clear();
  wire?.postMessage({ to: "", message: ENDED });
}

function openWire() {
  const opened = wireOf(tab);
  opened.onmessage = (/** @type {MessageEvent<Wired>} */ { data: { from = "", message } }) => {
    if (!message) leave(from);
    else if (message.call) {
      calls.set(++next, { guest: from, id: message.id });
      own?.postMessage({ ...message, id: next });
    } else for (const [number, { guest, id }] of calls) if (guest === from && id === message.id) own?.postMessage({ id: number });
  };
  return opened;
}

/** @param {string} guest */
function leave(guest) {
  for (const [number, call] of calls) if (call.guest === guest) own?.postMessage({ id: number });
}

/** @param {FromWorker & { done?: boolean }} data */
function passBack(data) {
  const call = data.id ? calls.get(data.id) : undefined;
  if (call) wire?.postMessage({ to: call.guest, message: { ...data, id: call.id } });
  else if (data.id === 0) wire?.postMessage({ to: "", message: data });
  if (data.id && data.done) calls.delete(data.id);
}

// ---- the tab that uses it

/** Makes what client.js takes for its worker. @type {(name: string, onGone: () => void) => Worker} */
export function guestOf(name, onGone) {
  const heard = new EventTarget();
  const hear = (/** @type {object} */ data) => heard.dispatchEvent(new MessageEvent("message", { data }));
  const channel = wireOf(name);
  channel.onmessage = (/** @type {MessageEvent<Wired>} */ { data: { to, message } }) => {
    if (to === tab || (to === "" && message.event !== "failed")) hear(message);
    else if (to === "") onGone();
  };
  const left = new AbortController();
  navigator.locks.request(lockOf(name), { signal: left.signal }, onGone).catch(() => {}); // it was left before
  /** @param {any} message as worker.js takes them */
  function postMessage({ question, ...message }) {
    if (question) queueMicrotask(() => hear({ event: "answer", question }));
    else if (message.id) channel.postMessage({ from: tab, message });
    else tell({ joins: name });
  }
  const terminate = () => {
    left.abort();
    channel.postMessage({ from: tab });
    channel.close();
  };
  return /** @type {any} */ (Object.assign(heard, { postMessage, terminate }));
}

/** Shows that another tab has a model, or that none has. @type {(join: (tab: string) => void) => void} */
export function offer(join) {
  const other = engineElsewhere();
  page.guest.hidden = !other;
  page.guestHeading.textContent = other ? t`${other.model} is loaded in another tab` : "";
  page.joinEngine.onclick = () => {
    page.guest.hidden = true;
    if (other) join(other.tab);
  };
}
