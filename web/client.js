// The page's side of the worker: starts it, and turns messages into promises.

/** @import { AnyNotice, Call, Failure, Fault, InpageError, Listeners, Pending, Send } from "./calls.d.ts" */
/** @import { ReadyReport, StartPhase } from "./inpage.d.ts" */

/** In milliseconds; a worker may stay silent for so many beats. Tests have less. */
export const patience = { beat: 1000, beats: 10, cancel: 2000, load: 30, interrupt: 250, again: 30 };

/** As inpage.d.ts has it; `kind` picks the explanation in index.html. @implements {InpageError} */
class CallError extends Error {
  /** @type {"CallError"} */
  name = "CallError";

  /** @param {Fault} fault */
  constructor({ message, ...facts }) {
    super(message);
    this.code = facts.code;
    Object.assign(this, facts);
  }
}

/** What JSON cannot hold is named, not dropped. @type {(name: string, value: unknown) => unknown} */
function checked(name, value) {
  if (/function|symbol|bigint/.test(typeof value) || (typeof value === "number" && !Number.isFinite(value))) {
    throw new CallError({ code: "invalid_request", message: `${name} cannot be ${String(value)}`, param: name });
  }
  return value;
}

export class EngineClient {
  /** @type {Worker | undefined} */
  #worker;
  /** @type {Map<number, Pending>} */
  #pending = new Map();
  #nextId = 1; // 0 stands for notices
  #nextFile = Math.floor(Math.random() * 2 ** 40); // tabs may share a worker (ui/engine_sharing.js)
  /** @type {CallError | null} */
  #dead = null;
  /** @type {PromiseWithResolvers<ReadyReport>} */
  #settleReady = Promise.withResolvers();
  #listeners;
  #shared = globalThis.crossOriginIsolated ? new Int32Array(new SharedArrayBuffer(16)) : undefined; // see worker.js
  #asked = 0; // the last question to the event loop
  #answered = 0;
  #silent = 0; // beats since then
  #watching = 0;

  /** @param {Listeners} listeners */
  constructor(listeners) {
    this.#listeners = listeners;
    /** @type {StartPhase[]} */
    this.phases = [];
    this.isReady = false;
    this.ready = this.#settleReady.promise;
    this.ready.catch(() => {}); // the page shows the failure; a caller who awaits still sees it
  }

  start() {
    const { device, lock, newWorker, outerPage } = this.#listeners;
    this.#worker = newWorker({ type: "module", name: lock });
    this.#worker.postMessage({ shared: this.#shared, outerPage, device });
    this.#worker.addEventListener("message", ({ data }) => this.#receive(data));
    this.#worker.addEventListener("messageerror", () => this.#crash("a message could not be read"));
    this.#worker.addEventListener("error", (event) => {
      event.preventDefault();
      this.#workerError(event.message ?? "the worker's script could not be loaded or run");
    });
  }

  /** Rejects with CallError; `onEvent` hears what it tells meanwhile. @type {Call} */
  async call(name, fields, { onEvent, signal, urgent } = {}) {
    await this.ready;
    return this.#send(name, fields, onEvent, signal, urgent);
  }

  /** @type {Send} */
  #send(call, fields, onEvent, signal, urgent) {
    if (this.#dead) return Promise.reject(this.#dead);
    return new Promise((resolve, reject) => {
      const id = this.#nextId++;
      const cancel = () => this.#cancel(id);
      const settled = () => signal?.removeEventListener("abort", cancel);
      /** @type {[number, File][]} */
      const files = []; // [number, File]: they go as they are, the JSON has their numbers
      const json = JSON.stringify(fields, (key, value) => {
        if (!(value instanceof File)) return checked(key, value);
        files.push([this.#nextFile, value]);
        return { number: this.#nextFile++, name: value.name, size: value.size };
      });
      if (urgent) this.#hurry(id, () => ([...this.#pending.values()].some(({ name }) => name === "python") ? id : 0));
      this.#worker?.postMessage({ id, call, fields: json, files, aborted: signal?.aborted });
      this.#pending.set(id, { name: call, resolve, reject, onEvent, settled });
      signal?.addEventListener("abort", cancel);
      this.#watching ||= setInterval(() => this.#watch(), patience.beat);
    });
  }

  #cancel(/** @type {number} */ id) {
    const turn = this.#shared?.[3];
    this.#worker?.postMessage({ id });
    this.#hurry(id, () => id);
    if (turn === undefined || this.#pending.get(id)?.name !== "load") return; // an answer ends with what is written by then
    setTimeout(() => this.#insist(id, turn), patience.load);
  }

  /**
   * Interrupts the code that keeps the worker from hearing of a call; `which` tells whose it may be.
   * @param {number} id
   * @param {() => number} which
   */
  #hurry(id, which) {
    const question = this.#ask();
    setTimeout(() => {
      if (this.#answered < question && this.#pending.has(id) && !this.interrupt(which())) this.#silent = patience.beats;
    }, patience.cancel);
  }

  /** Whether Python has kept the worker from answering for longer than users are patient. */
  get isSilent() {
    return this.#silent >= patience.beats;
  }

  /** Breaks off Python code, of one call or any. False: it cannot. */
  interrupt(call = 0) {
    const turn = this.#shared?.[3];
    this.#ask(); // who answers by then is left alone
    if (turn !== undefined) setTimeout(() => this.#insist(call, turn), patience.interrupt);
    return !!this.#shared;
  }

  /** Interrupts again and again, until the event loop turns. @type {(call: number, turn: number) => void} */
  #insist(call, turn) {
    const shared = this.#shared;
    if (!shared || shared[3] !== turn || this.#dead) return;
    shared.set([0, turn, call]);
    shared[0] = 2; // SIGINT
    setTimeout(() => this.#insist(call, turn), patience.again);
  }

  /** The event loop answers as soon as Python lets it. */
  #ask() {
    this.#worker?.postMessage({ question: ++this.#asked });
    return this.#asked;
  }

  /** Counts beats, not seconds: a computer may sleep, too. */
  #watch() {
    if (!this.#pending.size) this.#watching = clearInterval(this.#watching) ?? 0;
    else if (this.#answered === this.#asked) this.#ask();
    else if (++this.#silent >= patience.beats) this.#listeners.onBusy(true);
  }

  #awake() {
    if (this.#silent >= patience.beats) this.#listeners.onBusy(false);
    this.#silent = 0;
  }

  /** @param {any} message as worker.js has them */
  #receive(message) {
    if (this.#dead) return;
    if (message.event === "phase") {
      if (message.seconds !== undefined) this.phases.push({ name: message.name, seconds: message.seconds });
      this.#listeners.onPhase(message);
    } else if (message.event === "ready") {
      this.isReady = true;
      this.#settleReady.resolve({ ...message.report, phases: this.phases });
    } else if (message.event === "failed") {
      this.#fail(message.failure);
    } else if (message.event === "alive") {
      navigator.locks.request(this.#listeners.lock, () => this.#crash("the worker has ended"));
    } else if (message.event === "answer") {
      this.#answered = message.question;
      this.#awake();
    } else if (message.id === 0) {
      this.#listeners.onNotice(JSON.parse(message.json));
    } else {
      this.#hear(message);
    }
  }

  /** @param {{ id: number, json: string, done: boolean }} message */
  #hear({ id, json, done }) {
    const pending = this.#pending.get(id);
    if (!pending) return; // it was on its way when the engine ended
    const { resolve, reject, onEvent, settled } = pending;
    const value = JSON.parse(json);
    if (!done) {
      onEvent?.(value);
      return;
    }
    this.#pending.delete(id);
    settled();
    if (value.error) reject(new CallError(value.error));
    else resolve(value.result);
  }

  /** Before the engine is ready an error ends it; later on, only if Python is dead. */
  #workerError(/** @type {string} */ message) {
    if (!this.isReady) return this.#crash(message);
    console.error(`inpage worker: ${message}`);
    this.#send("python", { code: "None" }).catch(() => {}); // a dead one fails at it
  }

  #crash(/** @type {string} */ message) {
    this.#fail({ kind: "crashed", message });
  }

  /** @param {Failure} failure */
  #fail(failure) {
    if (!this.#dead) this.#listeners.onFailure(this.end({ ...failure, code: failure.kind }));
  }

  /** Nothing stays pending. */
  end(/** @type {Fault} */ reason) {
    const dead = this.#dead = new CallError(reason);
    for (const { reject, settled } of this.#pending.values()) {
      settled();
      reject(dead);
    }
    this.#pending.clear();
    this.#settleReady.reject(dead);
    this.#worker?.terminate();
    this.#awake();
    return dead;
  }
}
