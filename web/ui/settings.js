// The settings: the form's fields carry the names of a request's, and its HTML the defaults.

import { kept, page } from "./page.js";

const form = page.settingsForm;
const chosen = () => [...new FormData(form)].filter(([, value]) => value);
const keep = () => { kept.inpageSettings = JSON.stringify(chosen()); };

export function requestOptions() {
  const { theme, ...options } = Object.fromEntries(chosen().map(([name, value]) => [name, isNaN(value) ? value : +value]));
  return options;
}

form.oninput = () => { if (form.checkValidity()) keep(); };
page.resetSettings.onclick = () => { form.reset(); keep(); };
for (const [name, value] of JSON.parse(kept.inpageSettings ?? "[]")) form.elements[name].value = value;
