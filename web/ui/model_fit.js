// How well models fit this machine: its memory, as far as the browser tells, and its speed, which answers have shown.

/** @import { ChatMessage } from "./chats.js" */

import { keep, recall } from "./settings.js";
import { decimal, line, t } from "./wording.js";

const SPEED = "inpageBandwidth"; // bytes of weights a second, of each kind of device
const PROCESSOR_BYTES = 3.5e9; // that a WebAssembly memory has for a model
const SHARE = 0.5; // of the machine's memory, for a model
const TIGHT = 0.7; // of that
const OVERHEAD = 1.2; // times its size: what a model takes with its cache

/** Gives the kind of device that models run on. */
export const kind = () => inpage.loaded?.device.kind ?? (document.body.dataset.device === "cpu" ? "cpu" : "gpu");

/** Notes how fast an answer was written: each token reads all weights once. @param {ChatMessage} message */
export function note({ made }) {
  const { loaded } = inpage;
  const rate = made?.decode_tokens_per_s;
  if (!rate || !loaded?.size || made.model !== loaded.name) return;
  keep(`${SPEED} ${kind()}`, String(Math.round(rate * loaded.size)));
}

/** Gives the tokens a second that a model of so many bytes would write, or 0 where nothing is known. @param {number} size */
export const speedOf = (size) => (size ? Number(recall(`${SPEED} ${kind()}`) ?? 0) / size : 0);

/** Says whether a model of so many bytes fits: the browser knows roughly how much memory there is. @param {number} size @returns {"fits" | "tight" | "large"} */
export function fitOf(size) {
  const { deviceMemory: gigabytes = 8 } = /** @type {{ deviceMemory?: number }} */ (navigator);
  const room = kind() === "cpu" ? Math.min(PROCESSOR_BYTES, gigabytes * 1e9 * SHARE) : gigabytes * 1e9 * SHARE;
  const needed = size * OVERHEAD;
  return needed > room ? "large" : needed > room * TIGHT ? "tight" : "fits";
}

/** Words how a model of so many bytes would run here. @type {(size: number, isRefused?: boolean) => string} */
export function fitWords(size, isRefused = false) {
  if (!size) return "";
  const fit = isRefused ? "large" : fitOf(size);
  const speed = speedOf(size);
  const words = { fits: t`fits`, tight: t`tight`, large: t`too large` }[fit];
  return line(words, fit !== "large" && speed > 0 && t`about ${decimal(speed, speed < 10 ? 1 : 0)} tok/s`);
}
