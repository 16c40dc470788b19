// globalThis.inpage: the engine for scripts and the page. Names follow OpenAI's API; inpage.d.ts has their types.

import { EngineClient } from "./client.js";

/** @import { HubPermission, Listeners, PageListeners, Streamed } from "./calls.d.ts" */
/** @import { Inpage, Notice } from "./inpage.d.ts" */

/** The page starts the client. @param {PageListeners} listeners */
export function createInpage(listeners) {
  /** @type {Set<(notice: Notice) => void>} */
  const noticeListeners = new Set();
  /** @type {Map<string, any>} */
  let sources = new Map(); // of the loaded models, by name
  /** @type {Map<string, string | null | undefined>} */
  const drafts = new Map(); // of models, by their names
  /** @type {{ model: string, name: string, where: string | File[] }[]} */
  let adapters = []; // of these models
  /** @type {Listeners["onNotice"]} */
  const onNotice = (notice) => {
    if (notice.kind === "model") {
      inpage.loaded = notice.loaded;
      adapters = adapters.filter(({ model }) => model in notice.paths);
      sources = new Map(Object.entries(notice.paths).map(([name, path]) => [name, sources.get(name) ?? path]));
      listeners.onModel();
    } else for (const listener of noticeListeners) listener(notice);
  };
  const heard = { ...listeners, onNotice, lock: `inpage ${Math.random()}` }; // a worker holds the lock while it lives
  let client = new EngineClient(heard);
  /** @type {AbortController | null} */
  let restoring = null; // while a restart brings models back

  /** What may have to ask the Hub: then the user is asked first. @param {(hub: HubPermission | null) => Promise<any>} begin */
  const allowed = (begin) => begin(null).catch(async (error) => {
    const hub = error.code === "hub_consent" && await listeners.onHub();
    if (!hub) throw error;
    return begin(hub);
  });

  /** @type {(where: string | File[], options: any, isRestored: boolean) => Promise<any>} */
  async function load(where, { onProgress, signal, device, threads, kernels = listeners.kernels, kv = listeners.kv, draft, keep }, isRestored) {
    inpage.loads++;
    try {
      const options = { onEvent: onProgress, signal, urgent: !keep }; // it takes the place of whatever runs
      const result = await allowed((hub) => client.call("load", { where, device, threads, kernels, kv, draft, hub, keep, is_restored: isRestored }, options));
      if (result.adapters?.length && inpage.loaded) adapters.push({ model: inpage.loaded.name, name: result.name, where });
      if (result.context) sources.set(result.name, where); // else it cannot be talked to
      if (result.context) drafts.set(result.name, draft);
      return result;
    } finally {
      inpage.loads--;
    }
  }

  /** A completion, or with `stream: true` an async iterator of its chunks. @type {(call: "chat" | "complete" | "embed" | "rerank", request?: any) => any} */
  function create(call, { signal, ...request } = {}) {
    return request.stream === true
      ? streamed((onEvent, abort) => client.call(call, { request }, { onEvent, signal: abort }), signal)
      : client.call(call, { request }, { signal });
  }

  /** @type {Inpage} */
  const inpage = {
    get ready() { return client.ready; },
    loaded: null,
    loads: 0,
    models: () => client.call("models", {}),
    load(/** @type {string | File[]} */ where, options = {}) {
      if (!options.keep) restoring?.abort(); // the user wants another model instead
      return load(where, options, false);
    },
    adapters: {
      list: () => client.call("adapters", {}),
      async load(where, { name, strength } = {}) {
        const found = await client.call("adapters", { where, name, strength });
        if (inpage.loaded) adapters.push({ model: inpage.loaded.name, name: found.at(-1).name, where });
        return found;
      },
      setStrength: (name, strength) => client.call("adapters", { name, strength }),
      remove: (name) => client.call("adapters", { name, is_removed: true }),
    },
    samplers: () => client.call("samplers", {}),
    hubFiles: (where) => allowed((hub) => client.call("hub_files", { where, hub })),
    hubSearch: (words) => allowed((hub) => client.call("hub_search", { words, hub })),
    keepFiles: (files, { onProgress: onEvent, signal } = {}) => client.call("keep_files", { files }, { onEvent, signal }),
    unload: (name) => client.call("unload", { name }),
    stored: () => client.call("stored", {}),
    shareStored: (isAllowed) => client.call("share_stored", { is_allowed: isAllowed }),
    deleteStored: (nameOrUrl) => client.call("delete_stored", { name_or_url: nameOrUrl }),
    chat: { completions: { create: (request) => create("chat", request) } },
    completions: { create: (request) => create("complete", request) },
    embeddings: { create: (request) => create("embed", request) },
    rerank: (request) => create("rerank", request),
    countTokens: (messages, { tools } = {}) => client.call("count_tokens", { messages, tools }),
    verify: ({ onProgress, signal, thorough = false } = {}) =>
      client.call("verify", { thorough }, { onEvent: onProgress, signal }),
    async glass(view, fields = {}, { model, onProgress, signal } = {}) {
      const answer = await client.call("glass", { view, fields, model }, { onEvent: onProgress, signal });
      return (await import("./arrays.js")).unpacked(answer);
    },
    interrupt: () => client.interrupt(),
    async restart(options = {}) {
      /** @type {any} */
      let last = null;
      const strengths = new Map((inpage.loaded?.adapters ?? []).map(({ name, strength }) => [name, strength]));
      const applied = adapters;
      if (restoring && client.isSilent) sources = new Map(); // what was brought back does not return either
      const own = restoring = new AbortController();
      const signal = options.signal ? AbortSignal.any([options.signal, own.signal]) : own.signal;
      client.end({ code: "restarted", message: "the engine was restarted before it answered" });
      client = new EngineClient(heard);
      client.start();
      inpage.loaded = null;
      listeners.onModel();
      try {
        listeners.onRestart(await client.ready);
        for (const [name, where] of [...sources]) last = await load(where, { ...options, draft: drafts.get(name), signal, keep: true }, true);
        adapters = applied.filter(({ model, name }) => last?.name === model && strengths.has(name));
        for (const { model, name, where } of adapters) await client.call("adapters", { model, where, name, strength: strengths.get(name) });
      } finally {
        if (restoring === own) restoring = null;
      }
      return last;
    },
    python: (code, { onPrint: onEvent, signal, asText = false } = {}) =>
      client.call("python", { code: String(code), is_told: !!onEvent, as_text: asText }, { onEvent, signal }),
    call: (name, fields, { onEvent, signal } = {}) => client.call(name, fields, { onEvent, signal }),
    onNotice(listener) {
      noticeListeners.add(listener);
      return () => noticeListeners.delete(listener);
    },
  };
  return { inpage, lock: heard.lock, get client() { return client; } };
}

/** Who leaves the loop early stops the generation. @type {Streamed} */
async function* streamed(begin, signal) {
  /** @type {any[]} */
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
      else await new Promise((/** @type {(nothing: void) => void} */ resolve) => { wake = resolve; });
    }
    await end;
  } finally {
    leaving.abort();
  }
}
