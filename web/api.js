// globalThis.inpage: the engine for scripts, the console and the page itself. Names follow OpenAI's API.

import { EngineClient } from "./client.js";

/** Gives {inpage, client}; the page starts the client. Listeners: onPhase, onFailure, onModel. */
export function createInpage(listeners) {
  const noticeListeners = new Set();
  const onNotice = (notice) => {
    if (notice.kind === "model") {
      inpage.loaded = notice.loaded;
      listeners.onModel();
    } else for (const listener of noticeListeners) listener(notice);
  };
  const client = new EngineClient({ ...listeners, onNotice });

  /** A completion, or with `stream: true` an async iterator of its chunks. */
  function create(call, { signal, ...request } = {}) {
    return request.stream === true
      ? streamed((onEvent, abort) => client.call(call, [request], { onEvent, signal: abort }), signal)
      : client.call(call, [request], { signal });
  }

  const inpage = {
    /** Resolves to {adapter, features, limits, versions, phases} once Python and the GPU are up. */
    ready: client.ready,
    /** What load() gave; null while no model is loaded. */
    loaded: null,
    models: () => client.call("models"),
    load: (nameOrUrl, { onProgress, signal } = {}) =>
      client.call("load", [nameOrUrl], { onEvent: onProgress, signal }),
    unload: () => client.call("unload"),
    stored: () => client.call("stored"),
    deleteStored: (nameOrUrl) => client.call("deleteStored", [nameOrUrl]),
    chat: { completions: { create: (request) => create("chat", request) } },
    completions: { create: (request) => create("complete", request) },
    countTokens: (messages) => client.call("countTokens", [messages]),
    verify: ({ onProgress, signal, thorough = false } = {}) =>
      client.call("verify", [thorough], { onEvent: onProgress, signal }),
    /** Runs Python in the worker; resolves to the last expression's value as JSON. */
    python: (code) => client.call("python", [String(code)]),
    /** Hears {kind, text, …} when a reader should know something; gives the function that ends it. */
    onNotice(listener) {
      noticeListeners.add(listener);
      return () => noticeListeners.delete(listener);
    },
  };
  return { inpage, client };
}

/** Chunks as they come; who leaves the loop early stops the generation. */
async function* streamed(begin, signal) {
  const chunks = [];
  const leaving = new AbortController();
  let wake = () => {};
  let over = false;
  const abort = signal ? AbortSignal.any([signal, leaving.signal]) : leaving.signal;
  const end = begin((chunk) => {
    chunks.push(chunk);
    wake();
  }, abort).finally(() => {
    over = true;
    wake();
  });
  end.catch(() => {}); // thrown below, once the chunks before it are read
  try {
    while (chunks.length || !over) {
      if (chunks.length) yield chunks.shift();
      else await new Promise((resolve) => { wake = resolve; });
    }
    await end;
  } finally {
    leaving.abort();
  }
}
