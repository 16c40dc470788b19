// The page's side of the worker: starts it, follows its start-up, and turns messages into promises.

/**
 * @typedef {import("./inpage.d.ts").ErrorCode} ErrorCode
 * @typedef {import("./inpage.d.ts").InpageError} InpageError
 * @typedef {Partial<InpageError> & { code: ErrorCode, message: string }} Fault
 * @typedef {{ kind: ErrorCode, message: string, phase?: string }} Failure
 * @typedef {import("./inpage.d.ts").Notice | { kind: "model", text: string, loaded: any }} AnyNotice
 * @typedef {{ name: import("./inpage.d.ts").StartPhase["name"], seconds?: number }} Phase
 *
 * @typedef {object} Listeners
 * @property {(phase: Phase) => void} onPhase a phase begins, or has taken so many seconds
 * @property {(failure: InpageError) => void} onFailure
 * @property {(notice: AnyNotice) => void} onNotice
 *
 * @typedef {object} Pending
 * @property {(value: any) => void} resolve
 * @property {(error: CallError) => void} reject
 * @property {((event: any) => void) | undefined} onEvent
 * @property {() => void} settled
 */

/**
 * What a call answered with: a `code` for programs, a readable message, facts, perhaps a Python traceback.
 * When the engine did not start or ended, `kind` picks the explanation in index.html.
 * @implements {InpageError}
 */
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

/**
 * JSON would drop a function and turn NaN into null: what it cannot hold is named instead.
 * @param {string} name
 * @param {unknown} value
 */
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
  #nextFile = 0;
  /** @type {CallError | null} */
  #dead = null;
  /** @type {PromiseWithResolvers<import("./inpage.d.ts").ReadyReport>} */
  #settleReady = Promise.withResolvers();
  #listeners;

  /** @param {Listeners} listeners */
  constructor(listeners) {
    this.#listeners = listeners;
    /** @type {import("./inpage.d.ts").StartPhase[]} */
    this.phases = [];
    this.isReady = false;
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
   * @param {string} name
   * @param {unknown[]} [args]
   * @param {{ onEvent?: (event: any) => void, signal?: AbortSignal }} [options]
   * @returns {Promise<any>}
   */
  async call(name, args = [], { onEvent, signal } = {}) {
    await this.ready;
    return this.#send(name, args, onEvent, signal);
  }

  /**
   * @param {string} call
   * @param {unknown[]} args
   * @param {(event: any) => void} [onEvent]
   * @param {AbortSignal} [signal]
   * @returns {Promise<any>}
   */
  #send(call, args, onEvent, signal) {
    if (this.#dead) return Promise.reject(this.#dead);
    return new Promise((resolve, reject) => {
      const id = this.#nextId++;
      const cancel = () => this.#worker?.postMessage({ id });
      const settled = () => signal?.removeEventListener("abort", cancel);
      /** @type {[number, File][]} */
      const files = []; // [number, File]: they go as they are, the JSON has their numbers
      const json = JSON.stringify(args, (key, value) => {
        if (!(value instanceof File)) return checked(key, value);
        files.push([this.#nextFile, value]);
        return { number: this.#nextFile++, name: value.name, size: value.size };
      });
      this.#worker?.postMessage({ id, call, args: json, files, aborted: signal?.aborted });
      this.#pending.set(id, { resolve, reject, onEvent, settled });
      signal?.addEventListener("abort", cancel);
    });
  }

  /** @param {any} message as worker.js has them */
  #receive(message) {
    if (message.event === "phase") {
      if (message.seconds !== undefined) this.phases.push({ name: message.name, seconds: message.seconds });
      this.#listeners.onPhase(message);
    } else if (message.event === "ready") {
      this.isReady = true;
      this.#settleReady.resolve({ ...message.report, phases: this.phases });
    } else if (message.event === "failed") {
      this.#fail(message.failure);
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

  /** Before the engine is ready an error ends it; later on, only if Python no longer answers. */
  async #workerError(/** @type {string} */ message) {
    if (!this.isReady) return this.#fail({ kind: "crashed", message });
    console.error(`inpage worker: ${message}`);
    const answered = await Promise.race([
      this.#send("python", ["None"]).then(() => true, () => false),
      new Promise((resolve) => { setTimeout(resolve, 5000, false); }),
    ]);
    if (!answered) this.#fail({ kind: "crashed", message });
  }

  /** @param {Failure} failure */
  #fail(failure) {
    if (this.#dead) return;
    const dead = this.#dead = new CallError({ ...failure, code: failure.kind });
    for (const { reject, settled } of this.#pending.values()) {
      settled();
      reject(dead);
    }
    this.#pending.clear();
    this.#settleReady.reject(dead);
    this.#worker?.terminate();
    this.#listeners.onFailure(dead);
  }
}
