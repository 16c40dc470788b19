// Fetches and unzips a file whose size is known, such as Python's memory.

import { fetchOk } from "./interpreter.js";

/** @type {import("./calls.d.ts").Unzip} */
export async function unzip(url, size) {
  const { body } = /** @type {Response & { body: {} }} */ (await fetchOk(url));
  const chunks = body.pipeThrough(new DecompressionStream("gzip")).getReader();
  const bytes = new Uint8Array(size);
  for (let at = 0; at < size;) {
    const { value } = /** @type {any} */ (await chunks.read());
    bytes.set(value, at);
    at += value.length;
  }
  return bytes.buffer;
}
