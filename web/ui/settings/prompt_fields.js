// Fields in saved prompts: {{language}} stands for a text that is asked for when the prompt is chosen.

import { page } from "../elements.js";

const FIELD = /\{\{([^{}\n]{1,60})\}\}/g;

const { promptFields, promptFieldsForm, promptFieldsRows } = page;

/** Lists the fields of a prompt, each once. @param {string} prompt */
const fieldsOf = (prompt) => [...new Set(Array.from(prompt.matchAll(FIELD), ([, name]) => name.trim()))].filter(Boolean);

/** Makes a row in which a field is filled in. @param {string} name */
function rowOf(name) {
  const label = document.createElement("label");
  const input = Object.assign(document.createElement("textarea"), { name, rows: 1, dir: "auto", required: true, placeholder: " " }); // shown as wrong only once something was there
  label.dir = "auto";
  label.append(name, input);
  return label;
}

/**
 * Gives a prompt with its fields filled in, which the user is asked for; undefined where they would rather not.
 * @param {string} prompt
 * @returns {Promise<string | undefined>}
 */
export async function filledIn(prompt) {
  const names = fieldsOf(prompt);
  if (!names.length) return prompt;
  promptFieldsRows.replaceChildren(...names.map(rowOf));
  const { promise, resolve } = Promise.withResolvers();
  promptFields.returnValue = "";
  promptFields.onclose = resolve;
  promptFields.showModal();
  promptFieldsRows.querySelector("textarea")?.focus();
  await promise;
  if (promptFields.returnValue !== "use") return undefined;
  const given = new FormData(promptFieldsForm);
  return prompt.replace(FIELD, (whole, name) => String(given.get(name.trim()) ?? whole));
}
