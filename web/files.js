// Files for Python: streams from the network, of the reader's files and from this browser's storage, block by
// block into the Python heap. It decides nothing: what is read comes from Python (py_runtime/folder/).

import { BridgeFault } from "./fault.js";

const WHOLE = 16; // a block ends at a multiple of these bytes, or where the file does: the GPU takes whole words
const PATIENCE_MS = 100; // after which a block that is not full is handed over, so that progress shows

/** `heap()` gives the Python heap's ArrayBuffer. */
export function createFiles(heap) {
  const streams = new Map(); // handle → {reader: Promise, rest: bytes read but not handed over, stop(), closed}
  const given = new Map(); // number → File of the reader's
  let nextHandle = 1;

  function openStream(reader, stop) {
    reader.catch(() => {}); // reported where it is read
    streams.set(nextHandle, { reader, stop, rest: new Uint8Array(0), closed: false });
    return nextHandle++;
  }

  /** Answers at once, so that closing can break off a request that nobody has answered yet. */
  function openUrl(url, optionsJson) {
    const abort = new AbortController();
    const options = { ...JSON.parse(optionsJson), signal: abort.signal };
    const arriving = (promise) => failing("network", `${url} did not arrive`, promise);
    const reader = arriving(fetch(url, options)).then((response) => {
      const { ok, status } = response;
      if (!ok) throw new BridgeFault(status === 404 ? "missing" : "network", `${url} answered ${status}`);
      const body = response.body.getReader();
      return { read: () => arriving(body.read()), headers: response.headers };
    });
    return openStream(reader, () => abort.abort());
  }

  const failing = (kind, fault, promise) => promise.catch(({ message }) => {
    throw new BridgeFault(kind, `${fault}: ${message}`);
  });

  const streamHeaders = async (handle) => JSON.stringify(Object.fromEntries((await streams.get(handle).reader).headers));

  /** A file of the reader's, or one in storage, or a part of it. */
  function openBlob(blob) {
    const body = blob.stream().getReader();
    const read = () => failing("storage", "a file cannot be read", body.read());
    return openStream(Promise.resolve({ read }), () => body.cancel().catch(() => {}));
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
    const whole = ended || filled === capacity ? filled : filled - (filled % WHOLE);
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

  const writeFile = (file, at, address, bytes) => file.write(new Uint8Array(heap(), address, bytes), { at });

  return { given, calls: { openUrl, openBlob, streamHeaders, readBlock, closeStream, writeFile } };
}
