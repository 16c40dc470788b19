// The page's side of the worker: starts it, follows its start-up, and turns messages into promises.

/**
 * What a call answered with: a `code` for programs, a readable message, facts, perhaps a Python traceback.
 * When the engine did not start or ended, `kind` picks the explanation in index.html.
 */
class CallError extends Error {
  constructor({ message, ...facts }) {
    super(message);
    Object.assign(this, { name: "CallError" }, facts);
  }
}

/** JSON would drop a function and turn NaN into null: what it cannot hold is named instead. */
function checked(name, value) {
  if (/function|symbol|bigint/.test(typeof value) || (typeof value === "number" && !Number.isFinite(value))) {
    throw new CallError({ code: "invalid_request", message: `${name} cannot be ${String(value)}`, param: name });
  }
  return value;
}

export class EngineClient {
  #worker;
  #pending = new Map();
  #nextId = 1; // 0 stands for notices
  #nextFile = 0;
  #dead = null;
  #settleReady = Promise.withResolvers();
  #listeners;

  /** Listeners: onPhase, onFailure, onNotice. */
  constructor(listeners) {
    this.#listeners = listeners;
    this.phases = [];
    this.ready = this.#settleReady.promise;
    this.ready.catch(() => {}); // the page shows the failure; a caller who awaits still sees it
  }

  start() {
    if (!navigator.gpu) {
      this.#fail({ kind: "no-webgpu", message: "navigator.gpu is missing in this page" });
      return;
    }
    this.#worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module", name: "inpage" });
    this.#worker.addEventListener("message", ({ data }) => this.#receive(data));
    this.#worker.addEventListener("error", (event) => {
      event.preventDefault();
      this.#workerError(event.message ?? "the worker's script could not be loaded or run");
    });
  }

  /**
   * Asks the worker for one thing; rejects with CallError.
   * `onEvent` hears what the call tells meanwhile; `signal` cancels it.
   */
  async call(name, args = [], { onEvent, signal } = {}) {
    await this.ready;
    return this.#send(name, args, onEvent, signal);
  }

  #send(call, args, onEvent, signal) {
    if (this.#dead) return Promise.reject(this.#dead);
    return new Promise((resolve, reject) => {
      const id = this.#nextId++;
      const cancel = () => this.#worker.postMessage({ id });
      const settled = () => signal?.removeEventListener("abort", cancel);
      const files = []; // [number, File]: they go as they are, the JSON has their numbers
      const json = JSON.stringify(args, (key, value) => {
        if (!(value instanceof File)) return checked(key, value);
        files.push([this.#nextFile, value]);
        return { number: this.#nextFile++, name: value.name, size: value.size };
      });
      this.#worker.postMessage({ id, call, args: json, files, aborted: signal?.aborted });
      this.#pending.set(id, { resolve, reject, onEvent, settled });
      signal?.addEventListener("abort", cancel);
    });
  }

  #receive(message) {
    if (message.event === "phase") {
      if (message.seconds !== undefined) this.phases.push({ name: message.name, seconds: message.seconds });
      this.#listeners.onPhase?.(message);
    } else if (message.event === "ready") {
      this.isReady = true;
      this.#settleReady.resolve({ ...message.report, phases: this.phases });
    } else if (message.event === "failed") {
      this.#fail(message.failure);
    } else if (message.id === 0) {
      this.#listeners.onNotice?.(JSON.parse(message.json));
    } else {
      this.#hear(message);
    }
  }

  #hear({ id, json, done }) {
    if (this.#dead) return; // it was on its way when the engine ended
    const value = JSON.parse(json);
    const { resolve, reject, onEvent, settled } = this.#pending.get(id);
    if (!done) {
      onEvent?.(value);
      return;
    }
    this.#pending.delete(id);
    settled();
    if (value.error) reject(new CallError(value.error));
    else resolve(value.result);
  }

  /** Before the engine is ready an error ends it; later on, only if Python no longer answers. */
  async #workerError(message) {
    if (!this.isReady) return this.#fail({ kind: "crashed", message });
    console.error(`inpage worker: ${message}`);
    const answered = await Promise.race([
      this.#send("python", ["None"]).then(() => true, () => false),
      new Promise((resolve) => { setTimeout(resolve, 5000, false); }),
    ]);
    if (!answered) this.#fail({ kind: "crashed", message });
  }

  #fail(failure) {
    if (this.#dead) return;
    this.#dead = new CallError({ ...failure, code: failure.kind });
    for (const { reject, settled } of this.#pending.values()) {
      settled();
      reject(this.#dead);
    }
    this.#pending.clear();
    this.#settleReady.reject(this.#dead);
    this.#worker?.terminate();
    this.#listeners.onFailure?.(this.#dead);
  }
}
