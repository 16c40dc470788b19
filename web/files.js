// Files for Python: streams from the network and from this browser's storage (OPFS), block by block
// into the Python heap, and files written to storage from there. It decides nothing: what is fetched,
// kept, renamed and deleted, and under which name, comes from Python (py_runtime/folder/).

import { BridgeFault } from "./fault.js";

const FOLDER = "inpage-models"; // in the origin's private file system
const WHOLE = 16; // a block ends at a multiple of these bytes, or where the file does: the GPU takes whole words
const PATIENCE_MS = 100; // after which a block that is not full is handed over, so that progress shows

/** `heap()` gives the Python heap's ArrayBuffer. */
export function createFiles(heap) {
  const streams = new Map(); // handle → {reader: Promise, rest: bytes read but not handed over, stop(), closed}
  const writers = new Map(); // handle → FileSystemSyncAccessHandle
  let nextHandle = 1;

  const keep = (map, object) => {
    map.set(nextHandle, object);
    return nextHandle++;
  };

  // Streams ------------------------------------------------------------------------------------

  function openStream(reader, stop) {
    reader.catch(() => {}); // reported where it is read
    return keep(streams, { reader, stop, rest: new Uint8Array(0), closed: false });
  }

  /** Answers at once, so that closing can break off a request that nobody has answered yet. */
  function openUrl(url, optionsJson) {
    const abort = new AbortController();
    const options = { ...JSON.parse(optionsJson), signal: abort.signal };
    const reader = arriving(url, fetch(url, options)).then((response) => {
      if (!response.ok) throw new BridgeFault("network", `${url} answered ${response.status}`);
      const body = response.body.getReader();
      return { read: () => arriving(url, body.read()) };
    });
    return openStream(reader, () => abort.abort());
  }

  const arriving = (url, promise) => promise.catch((error) => {
    throw new BridgeFault("network", `${url} did not arrive: ${error.message}`);
  });

  function openStored(name) {
    const reader = storing(async () => {
      const body = (await (await (await folder()).getFileHandle(name)).getFile()).stream().getReader();
      return { read: () => storing(() => body.read()), cancel: () => body.cancel() };
    });
    return openStream(reader, () => reader.then(({ cancel }) => cancel(), () => {}));
  }

  /** Puts the stream's next bytes at an address of the heap; resolves to their number, 0 at the end. */
  async function readBlock(handle, address, capacity) {
    const stream = streams.get(handle);
    const reader = await stream.reader;
    const started = performance.now();
    let { rest: chunk } = stream;
    let filled = 0;
    let ended = false;
    for (;;) {
      // A reader who was cancelled has given the memory back.
      if (stream.closed) throw new BridgeFault("network", "the stream was closed");
      const taken = chunk.subarray(0, capacity - filled);
      new Uint8Array(heap(), address + filled, taken.length).set(taken);
      filled += taken.length;
      chunk = chunk.subarray(taken.length);
      const late = filled >= WHOLE && performance.now() - started > PATIENCE_MS;
      if (ended || filled === capacity || late) break;
      const { done, value } = await reader.read();
      ended = done;
      if (value) chunk = value;
    }
    const whole = ended ? filled : filled - (filled % WHOLE);
    // Either the block is full and the chunk may have more, or the chunk is used up.
    stream.rest = whole === filled ? chunk : new Uint8Array(heap(), address + whole, filled - whole).slice();
    return whole;
  }

  function closeStream(handle) {
    const stream = streams.get(handle);
    stream.closed = true;
    stream.stop();
    streams.delete(handle);
  }

  // Storage ------------------------------------------------------------------------------------

  async function storing(work) {
    try {
      return await work();
    } catch (error) {
      if (error instanceof BridgeFault) throw error;
      const kind = error.name === "QuotaExceededError" ? "quota" : "storage";
      throw new BridgeFault(kind, `${error.name}: ${error.message}`);
    }
  }

  async function folder() {
    if (!navigator.storage?.getDirectory) {
      throw new BridgeFault("storage", "navigator.storage.getDirectory is missing");
    }
    return (await navigator.storage.getDirectory()).getDirectoryHandle(FOLDER, { create: true });
  }

  /** [[name, bytes, milliseconds of the last change], …] of everything stored. */
  async function listStored() {
    const rows = [];
    for await (const [name, entry] of (await folder()).entries()) {
      // What another tab deletes meanwhile is not listed.
      const file = await entry.getFile().catch(() => null);
      if (file) rows.push([name, file.size, file.lastModified]);
    }
    return JSON.stringify(rows);
  }

  const estimateStorage = async () => JSON.stringify(await navigator.storage.estimate());

  async function createStored(name) {
    const entry = await (await folder()).getFileHandle(name, { create: true });
    return keep(writers, await entry.createSyncAccessHandle());
  }

  function writeStored(handle, at, address, bytes) {
    const written = writers.get(handle).write(new Uint8Array(heap(), address, bytes), { at });
    if (written !== bytes) throw new BridgeFault("quota", `${written} of ${bytes} bytes could be written`);
  }

  function closeStored(handle) {
    const writer = writers.get(handle);
    writers.delete(handle);
    writer.close(); // flushes
  }

  async function renameStored(from, to) {
    await (await (await folder()).getFileHandle(from)).move(to);
  }

  async function deleteStored(name) {
    await (await folder()).removeEntry(name);
  }

  const storageCalls = {
    listStored, estimateStorage, createStored, writeStored, closeStored, renameStored, deleteStored,
  };
  const calls = { openUrl, openStored, readBlock, closeStream };
  for (const [name, call] of Object.entries(storageCalls)) {
    calls[name] = (...args) => storing(() => call(...args));
  }
  return calls;
}
