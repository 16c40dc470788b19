// The settings: the form's fields carry the names of a request's, and its HTML the defaults.

import { kept, page } from "./page.js";

const form = page.settingsForm;
const chosen = () => /** @type {[string, string][]} */ ([...new FormData(form)]).filter(([, value]) => value);
const keep = () => { kept.inpageSettings = JSON.stringify(chosen()); };

/** @returns {Partial<import("../inpage.d.ts").GenerationRequest>} */
export function requestOptions() {
  const request = chosen().filter(([name]) => name !== "theme");
  return Object.fromEntries(request.map(([name, value]) => [name, isNaN(Number(value)) ? value : Number(value)]));
}

form.oninput = () => { if (form.checkValidity()) keep(); };
page.resetSettings.onclick = () => { form.reset(); keep(); };
for (const [name, value] of JSON.parse(kept.inpageSettings ?? "[]")) {
  /** @type {HTMLInputElement} */ (form.elements.namedItem(name)).value = value;
}
