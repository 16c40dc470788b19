// The settings: the form's fields carry the names of a request's. Those that nobody has set are the engine's to choose.

import { page, recall } from "./page.js";

export const fields = /** @type {HTMLInputElement[]} */ ([...page.settingsForm.elements]).filter(({ name }) => name);

/** What is chosen and can be: a value that is not sound yet is not taken. */
export const chosen = () => fields.filter((field) => field.value && field.checkValidity()).map(({ name, value }) => [name, value]);

/** @returns {Partial<import("../inpage.d.ts").GenerationRequest>} */
export function requestOptions() {
  const request = chosen().filter(([name]) => name !== "theme");
  /** @param {string} value */
  const read = (value) => (isNaN(Number(value)) ? value : Number(value));
  return Object.fromEntries(request.map(([name, value]) => [name, name === "stop" ? value.split("\n").filter(Boolean) : read(value)]));
}

const kept = recall("inpageSettings");
if (kept) await import("./kept_settings.js").then(({ fill }) => fill(fields, kept)).catch(() => {}); // the defaults stand
