// The settings: the form's fields carry the names of a request's, and its HTML the defaults.

import { keep, page, recall } from "./page.js";

const form = page.settingsForm;
const chosen = () => /** @type {[string, string][]} */ ([...new FormData(form)]).filter(([, value]) => value);
const keepChosen = () => keep("inpageSettings", JSON.stringify({ version: 1, chosen: chosen() }));

/** @returns {Partial<import("../inpage.d.ts").GenerationRequest>} */
export function requestOptions() {
  const request = chosen().filter(([name]) => name !== "theme");
  return Object.fromEntries(request.map(([name, value]) => [name, isNaN(Number(value)) ? value : Number(value)]));
}

form.oninput = () => { if (form.checkValidity()) keepChosen(); };
page.resetSettings.onclick = () => { form.reset(); keepChosen(); };
try {
  const found = JSON.parse(recall("inpageSettings") ?? "[]");
  for (const [name, value] of found.chosen ?? found) { // the first version was a list
    const field = /** @type {HTMLInputElement[]} */ ([...form.elements]).find((each) => name && each.name === name);
    const before = field?.value;
    if (field) field.value = value;
    if (field && (field.value !== value || !field.checkValidity())) field.value = before ?? "";
  }
} catch { /* an older page's, or anybody's: what is left stands */ }
