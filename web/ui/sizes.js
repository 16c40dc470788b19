// Bytes in words, as py_runtime/base/sizes.py has them: a megabyte is a million.

import { decimal, t } from "./page.js";

/** @param {number} bytes */
export function inWords(bytes) {
  let [size, unit] = [bytes, "bytes"];
  for (const larger of ["kB", "MB", "GB", "TB"]) if (size >= 1000) [size, unit] = [size / 1000, larger];
  return unit === "bytes" ? t`${size} bytes` : `${decimal(size, size >= 100 ? 0 : 1)} ${unit}`;
}
