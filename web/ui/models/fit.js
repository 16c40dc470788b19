// How well models fit this machine: its memory, as far as the browser tells, and its speed, which answers have shown. A larger
// model that it could run is suggested, until the user wants no more of that.

/** @import { ChatMessage } from "../chats.js" */

import { copyOf, page, partOf } from "../elements.js";
import { emit } from "../events.js";
import { keep, recall } from "../settings/settings.js";
import { decimal, inWords, line, t } from "../wording.js";

const SPEED = "inpageBandwidth"; // bytes of weights a second, of each kind of device
const PROCESSOR_BYTES = 3.5e9; // that a WebAssembly memory has for a model
const SHARE = 0.5; // of the machine's memory, for a model
const TIGHT = 0.7; // of that
const OVERHEAD = 1.2; // times its size: what a model takes with its cache

/** Gives the kind of device that models run on. */
const kind = () => inpage.loaded?.device.kind ?? (document.body.dataset.device === "cpu" ? "cpu" : "gpu");

/** Notes how fast an answer was written: each token reads all weights once. @param {ChatMessage} message */
function note({ made }) {
  const { loaded } = inpage;
  const rate = made?.decode_tokens_per_s;
  if (!rate || !loaded?.size || made.model !== loaded.name) return;
  keep(`${SPEED} ${kind()}`, String(Math.round(rate * loaded.size)));
}

/** Gives the tokens a second that a model of so many bytes would write, or 0 where nothing is known. @param {number} size */
const speedOf = (size) => (size ? Number(recall(`${SPEED} ${kind()}`) ?? 0) / size : 0);

/** Says whether a model of so many bytes fits: the browser knows roughly how much memory there is. @param {number} size @returns {"fits" | "tight" | "large"} */
function fitOf(size) {
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

// ---- suggestions

/** @typedef {{ name: string, address: string, size: number }} ShelfEntry a model of shelf.json */

const SILENT = "inpageNoSuggestions";
const LEAST_SPEED = 8; // tokens a second: what people read
const LARGER = 1.8; // times the size of the model in use: less is no other model

let isMade = false; // in this visit

/** Finds the largest model of the shelf that would run well here, and is clearly larger than the one in use. @returns {Promise<ShelfEntry | undefined>} */
async function better() {
  const { hub } = await inpage.ready;
  const size = inpage.loaded?.size;
  if (!hub || !size || document.body.hasAttribute("data-software")) return undefined;
  const shelf = /** @type {ShelfEntry[]} */ (await (await fetch("shelf.json")).json());
  return shelf.filter((each) => each.size > size * LARGER && fitOf(each.size) === "fits" && speedOf(each.size) >= LEAST_SPEED)
    .sort((a, b) => b.size - a.size)[0];
}

/** Shows the suggestion in a line, unless there is none to make. @type {(row: HTMLElement) => Promise<void>} */
async function fill(row) {
  const found = await better().catch(() => undefined); // the shelf did not arrive
  row.hidden = !found || recall(SILENT) === "1";
  if (!found) return;
  const [name, size] = [found.name, inWords(found.size)];
  partOf(row, "words").textContent = kind() === "cpu" ? t`Your processor can run ${name} (${size}) for better answers.` : t`Your graphics card can run ${name} (${size}) for better answers.`;
  partOf(row, "look").onclick = () => {
    row.hidden = true;
    emit("hubmodelwanted", found.address);
  };
  partOf(row, "never").onclick = () => {
    keep(SILENT, "1");
    for (const each of document.querySelectorAll(".suggestion")) /** @type {HTMLElement} */ (each).hidden = true;
    page.draft.focus();
  };
}

/** Takes in an answer that was written; after the first one, a better model may be suggested. @param {ChatMessage} message */
export async function consider(message) {
  note(message);
  if (recall(SILENT) || isMade || message.error) return;
  isMade = true;
  const row = copyOf(page.suggestion);
  await fill(row);
  if (!row.hidden) page.notices.prepend(row);
}

/** Shows the suggestion in the panel of models. */
export const showInPanel = () => fill(page.suggested);
