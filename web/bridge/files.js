// Files for Python: streams from the network, of the user's files and from this browser's storage, block by
// block into the Python heap. It decides nothing: what is read comes from Python (py_runtime/bridge/).

import { BridgeFault } from "./fault.js";

const WHOLE = 16; // a block ends at a multiple of these bytes, or where the file does: the GPU takes whole words
const PATIENCE_MS = 100; // after which a block that is not full is handed over, so that progress shows

/** @import { Reader, Stream } from "../calls.d.ts" */

/**
 * @template Value
 * @param {string} kind
 * @param {string} fault
 * @param {Promise<Value>} promise
 */
const failing = (kind, fault, promise) => promise.catch(({ message }) => {
  throw new BridgeFault(kind, `${fault}: ${message}`);
});

/** @param {import("./heap.js").Heap} heap */
export function createFiles(heap) {
  /** @type {Map<number, Stream>} */
  const streams = new Map();
  /** @type {Map<number, File>} */
  const given = new Map(); // the user's files by their numbers
  let nextHandle = 1;

  /**
   * @param {Promise<Reader>} reader
   * @param {() => void} stop
   */
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

  /**
   * Answers at once, so that closing can break off a request that nobody has answered yet.
   * @param {string} url
   * @param {string} optionsJson fetch's; with `anyStatus` a refusal is an answer, too
   */
  function openUrl(url, optionsJson) {
    const abort = new AbortController();
    const { anyStatus, ...options } = JSON.parse(optionsJson);
    /** @type {<Value>(promise: Promise<Value>) => Promise<Value>} */
    const arriving = (promise) => failing("network", `${url} did not arrive`, promise);
    const reader = arriving(fetch(url, { ...options, signal: abort.signal })).then(({ ok, status, headers, body }) => {
      if (!ok && !anyStatus) throw new BridgeFault(status === 404 ? "missing" : "network", `${url} answered ${status}`);
      const chunks = /** @type {NonNullable<typeof body>} */ (body).getReader();
      return { read: () => arriving(chunks.read()), headers, status };
    });
    return openStream(reader, () => abort.abort());
  }

  /** @param {number} handle of a URL's stream */
  async function streamHeaders(handle) {
    const { headers, status } = await find(handle).reader;
    return JSON.stringify({ ":status": status, ...Object.fromEntries(headers ?? []) });
  }

  /**
   * A file of the user's, or one in storage, or a part of it.
   * @param {Blob} blob
   */
  function openBlob(blob) {
    const body = blob.stream().getReader();
    const read = () => failing("storage", "a file cannot be read", body.read());
    return openStream(Promise.resolve({ read }), () => { body.cancel().catch(() => {}); });
  }

  /**
   * Puts the stream's next bytes at an address of the heap; resolves to their number, 0 at the end.
   * @param {number} handle
   * @param {number} address
   * @param {number} capacity
   */
  async function readBlock(handle, address, capacity) {
    const stream = find(handle);
    const reader = await stream.reader;
    const started = performance.now();
    let { rest: chunk } = stream;
    let filled = 0;
    let ended = false;
    for (;;) {
      // Whoever was cancelled has given the memory back.
      if (stream.closed) throw new BridgeFault("network", "the stream was closed");
      const taken = chunk.subarray(0, capacity - filled);
      new Uint8Array(heap.buffer(), address + filled, taken.length).set(taken);
      filled += taken.length;
      chunk = chunk.subarray(taken.length);
      const late = filled >= WHOLE && performance.now() - started > PATIENCE_MS;
      if (ended || filled === capacity || late) break;
      const { done, value } = await reader.read();
      ended = done;
      if (value) chunk = value;
    }
    const whole = ended || filled === capacity ? filled : filled - (filled % WHOLE);
    // Either the block is full and the chunk may have more, or the chunk is used up.
    stream.rest = whole === filled ? chunk : new Uint8Array(heap.buffer(), address + whole, filled - whole).slice();
    return whole;
  }

  /** @param {number} handle */
  function closeStream(handle) {
    const stream = find(handle);
    stream.closed = true;
    stream.stop();
    streams.delete(handle);
  }

  /**
   * @param {FileSystemSyncAccessHandle} file
   * @param {number} at
   * @param {number} address
   * @param {number} bytes
   */
  const writeFile = (file, at, address, bytes) => file.write(new Uint8Array(heap.buffer(), address, bytes), { at });

  return { given, calls: { openUrl, openBlob, streamHeaders, readBlock, closeStream, writeFile } };
}
