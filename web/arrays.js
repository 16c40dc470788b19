// Arrays of the engine in JavaScript: what comes as {dtype, shape, base64} becomes {dtype, shape, data}.

/** @import { GlassArray } from "./inpage.d.ts" */

const KINDS = { float32: Float32Array, int32: Int32Array, uint8: Uint8Array };

/** Unpacks all arrays in an answer, wherever they are. @param {any} value @returns {any} */
export function unpacked(value) {
  if (Array.isArray(value)) return value.map(unpacked);
  if (!value || typeof value !== "object") return value;
  if (typeof value.base64 === "string" && value.dtype in KINDS) return unpackedArray(value);
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, unpacked(item)]));
}

/** @param {{ dtype: keyof typeof KINDS, shape: number[], base64: string }} packed @returns {GlassArray} */
function unpackedArray({ dtype, shape, base64 }) {
  const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  return { dtype, shape, data: new KINDS[dtype](bytes.buffer) };
}
