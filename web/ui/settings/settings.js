// The user's settings, and other short texts that survive a reload: drafts, and which chat and model were used last.

/** @import { GenerationRequest } from "../../inpage.js" */

import { page } from "../elements.js";

/** @type {Map<string, string>} */
const memory = new Map(); // of this page, also where storage is switched off or full

/** Gives what was kept by this tab, or else by the last one. @param {string} name */
export function recall(name) {
  try {
    return memory.get(name) ?? sessionStorage.getItem(name) ?? localStorage.getItem(name);
  } catch {
    return null;
  }
}

/** Keeps a text; an empty one leaves nothing behind. @type {(name: string, text: string) => void} */
export function keep(name, text) {
  memory.set(name, text);
  try {
    for (const storage of [sessionStorage, localStorage]) {
      if (text) storage.setItem(name, text);
      else storage.removeItem(name);
    }
  } catch { /* switched off, or full: it lasts as long as the page */ }
}

// ---- the settings: the form's fields carry the names of a request's; those that nobody has set are the engine's to choose

export const fields = /** @type {HTMLInputElement[]} */ ([...page.settingsForm.elements]).filter(({ name }) => name);

const OF_THE_PAGE = new Set(["theme", "certainty", "kv"]); // not of a request

/** Gives how the next model is to keep its context, where that is chosen. @returns {import("../../inpage.js").KvType | null} */
export const keptContext = () => /** @type {any} */ (fields.find(({ name }) => name === "kv")?.value || null);

/** Lists what is chosen and can be: a value that is not sound yet is not taken. */
export const chosen = () => fields.filter((field) => field.value && field.checkValidity()).map(({ name, value }) => [name, value]);

/** Gives the settings as a request has them. @returns {Partial<GenerationRequest>} */
export function requestOptions() {
  const request = chosen().filter(([name]) => !OF_THE_PAGE.has(name));
  /** @param {string} value */
  const read = (value) => (isNaN(Number(value)) ? value : Number(value));
  const reading = { stop: (/** @type {string} */ value) => value.split("\n").filter(Boolean), sampler: JSON.parse };
  return Object.fromEntries(request.map(([name, value]) => [name, (reading[/** @type {"stop"} */ (name)] ?? read)(value)]));
}

/**
 * Fills in what an earlier visit kept, perhaps with an older page: what cannot be stays as it is.
 * @param {string} kept
 */
function fill(kept) {
  const found = JSON.parse(kept);
  for (const [name, value] of found.chosen ?? found) { // the first version was a list
    const field = fields.find((each) => each.name === name);
    const before = field?.value;
    if (field) field.value = value;
    if (field && (field.value !== value || !field.checkValidity())) field.value = before ?? "";
  }
}

try {
  fill(recall("inpageSettings") || "[]");
} catch { /* it is none of ours: the defaults stand */ }
