// The page's side of the worker: starts it, follows its start-up, and turns messages into promises.

/** What went wrong while starting or running the engine: `kind` picks the explanation in failures.js. */
export class EngineFailure extends Error {
  constructor({ kind, message, phase }) {
    super(message);
    this.name = "EngineFailure";
    this.kind = kind;
    this.code = kind;
    this.phase = phase;
  }
}

/** An error a call answered with: a `code` for programs, a readable message, perhaps a Python traceback. */
export class CallError extends Error {
  constructor({ code, message, traceback }) {
    super(message);
    this.name = "CallError";
    this.code = code;
    if (traceback) this.traceback = traceback;
  }
}

export class EngineClient {
  #worker;
  #pending = new Map();
  #nextId = 1;
  #dead = null;
  #settleReady;
  #onPhase;
  #onFailure;

  constructor({ onPhase, onFailure }) {
    this.#onPhase = onPhase;
    this.#onFailure = onFailure;
    this.phases = [];
    this.ready = new Promise((resolve, reject) => { this.#settleReady = { resolve, reject }; });
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

  /** Asks the worker for one thing; rejects with CallError, or with EngineFailure once the engine is dead. */
  async call(name, ...args) {
    await this.ready;
    return this.#send(name, args);
  }

  #send(call, args) {
    if (this.#dead) return Promise.reject(this.#dead);
    return new Promise((resolve, reject) => {
      const id = this.#nextId++;
      this.#pending.set(id, { resolve, reject });
      this.#worker.postMessage({ id, call, args });
    });
  }

  #receive(message) {
    if (message.event === "phase") {
      if (message.seconds !== undefined) this.phases.push({ name: message.name, seconds: message.seconds });
      this.#onPhase(message);
    } else if (message.event === "ready") {
      this.isReady = true;
      this.#settleReady.resolve({ ...message.report, phases: this.phases });
    } else if (message.event === "failed") {
      this.#fail(message.failure);
    } else {
      this.#answer(message);
    }
  }

  #answer({ id, result, error }) {
    const { resolve, reject } = this.#pending.get(id);
    this.#pending.delete(id);
    if (error) reject(new CallError(error));
    else resolve(result);
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
    this.#dead = new EngineFailure(failure);
    for (const { reject } of this.#pending.values()) reject(this.#dead);
    this.#pending.clear();
    this.#settleReady.reject(this.#dead);
    this.#worker?.terminate();
    this.#onFailure(this.#dead);
  }
}
