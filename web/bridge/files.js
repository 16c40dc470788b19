// Files for Python (py_runtime/bridge/): streams from anywhere, block by block into its heap.

import { BridgeFault } from "./fault.js";

const WHOLE = 16; // a block ends at a multiple of these bytes, or where the file does: the GPU takes whole words
const STALLED_SECONDS = 60; // without a byte, after which a server has stopped sending (base/patience.py has the same figure)
const CHUNK = 1 << 20; // bytes that are read at once, at most
const PATIENCE_MILLISECONDS = 100; // after which a block that is not full is handed over, so that progress shows

/** @import { Failing, FileCalls, Reader, Stream } from "../calls.d.ts" */

/** @type {Failing} */
const failing = (kind, fault, promise) => promise.catch(({ message }) => {
  throw new BridgeFault(kind, `${fault}: ${message}`);
});

/** @type {<Value>(promise: Promise<Value>, seconds: number) => Promise<Value>} */
function inTime(promise, seconds) {
  const { promise: late, reject } = Promise.withResolvers();
  const timer = setTimeout(() => reject(new Error(`nothing has come for ${seconds} seconds`)), 1000 * seconds);
  return Promise.race([promise, /** @type {Promise<never>} */ (late)]).finally(() => clearTimeout(timer));
}

/**
 * Chunks in one piece of memory, where the browser can: a large model's would pile up until garbage is collected.
 * A chunk is gone when the next one is read.
 * @param {ReadableStream<Uint8Array<ArrayBuffer>>} body
 */
function chunksOf(body) {
  /** @type {ReadableStreamBYOBReader} */
  let reader;
  try {
    reader = body.getReader({ mode: "byob" });
  } catch { // no stream of bytes
    return body.getReader();
  }
  let memory = new ArrayBuffer(CHUNK);
  return {
    async read() {
      const result = await reader.read(new Uint8Array(memory));
      if (result.value) memory = result.value.buffer;
      return /** @type {ReadableStreamReadResult<Uint8Array>} */ (result);
    },
    cancel: () => reader.cancel(),
  };
}

/** @param {import("./heap.js").Heap} heap */
export function createFiles(heap, stalledSeconds = STALLED_SECONDS) {
  /** @type {Map<number, Stream>} */
  const streams = new Map();
  /** @type {Map<number, File>} */
  const given = new Map(); // the user's files by their numbers
  let nextHandle = 1;

  /** @type {(reader: Promise<Reader>, stop: () => void) => number} */
  function openStream(reader, stop) {
    reader.catch(() => {}); // reported where it is read
    streams.set(nextHandle, { reader, stop, rest: new Uint8Array(0), closed: false });
    return nextHandle++;
  }

  /** @param {number} handle */
  function find(handle) {
    const stream = streams.get(handle);
    if (!stream) throw new BridgeFault("internal", `there is no stream ${handle}`);
    return stream;
  }

  /** @type {FileCalls} */
  const calls = {
    openUrl(url, optionsJson) {
      const abort = new AbortController();
      const { anyStatus, ...options } = JSON.parse(optionsJson);
      /** @type {<Value>(promise: Promise<Value>) => Promise<Value>} */
      const arriving = (promise) => failing("network", `${url} did not arrive`, inTime(promise, stalledSeconds));
      const reader = arriving(fetch(url, { ...options, signal: abort.signal })).then(({ ok, status, headers, body }) => {
        if (!ok && !anyStatus) throw new BridgeFault(status === 404 ? "missing" : "network", `${url} answered ${status}`);
        const chunks = chunksOf(/** @type {NonNullable<typeof body>} */ (body));
        return { read: () => arriving(chunks.read()), headers, status };
      });
      return openStream(reader, () => abort.abort());
    },
    async streamHeaders(handle) {
      const { headers, status } = await find(handle).reader;
      return JSON.stringify({ ":status": status, ...Object.fromEntries(headers ?? []) });
    },
    openBlob(blob) {
      const body = chunksOf(blob.stream());
      const read = () => failing("storage", "a file cannot be read", body.read());
      return openStream(Promise.resolve({ read }), () => { body.cancel().catch(() => {}); });
    },
    async readBlock(handle, address, capacity) {
      const stream = find(handle);
      const reader = await stream.reader;
      const started = performance.now();
      let { rest: chunk } = stream;
      let filled = 0;
      let ended = false;
      for (;;) {
        // The stream was cancelled meanwhile, and its memory given back.
        if (stream.closed) throw new BridgeFault("network", "the stream was closed");
        const taken = chunk.subarray(0, capacity - filled);
        new Uint8Array(heap.buffer(), address + filled, taken.length).set(taken);
        filled += taken.length;
        chunk = chunk.subarray(taken.length);
        const late = filled >= WHOLE && performance.now() - started > PATIENCE_MILLISECONDS;
        if (ended || filled === capacity || late) break;
        const { done, value } = await reader.read();
        ended = done;
        if (value) chunk = value;
      }
      const whole = ended || filled === capacity ? filled : filled - (filled % WHOLE);
      // Either the block is full and the chunk may have more, or the chunk is used up.
      stream.rest = whole === filled ? chunk : new Uint8Array(heap.buffer(), address + whole, filled - whole).slice();
      return whole;
    },
    closeStream(handle) {
      const stream = find(handle);
      stream.closed = true;
      stream.stop();
      streams.delete(handle);
    },
    writeFile: (file, at, address, bytes) => file.write(new Uint8Array(heap.buffer(), address, bytes), { at }),
  };
  return { given, calls };
}
