// The panel of settings: what is typed counts at once, if it can; what cannot be says so where it stands. Fetched when
// somebody opens it.

import { store } from "./chat_store.js";
import { showChat, shown } from "./conversation.js";
import { chosen, fields } from "./options.js";
import { keep, notify, page, recall, siteFacts, t } from "./page.js";
import { showPrompts } from "./system_prompts.js";
import { speak } from "./wording.js";

const MAX_STOPS = 16; // as a request has them

const { language, settings, settingsForm: form, system } = page;
const { stop } = /** @type {{ stop: HTMLTextAreaElement }} */ (/** @type {unknown} */ (form.elements));
const presets = /** @type {NodeListOf<HTMLButtonElement>} */ (form.querySelectorAll("[data-preset]"));

/** @param {string} name */
const fieldOf = (name) => /** @type {HTMLInputElement} */ (fields.find((field) => field.name === name));

/** @type {import("../calls.d.ts").Site["defaults"]} */
let defaults = {}; // the engine's
const sound = new Map(fields.map((field) => [field, field.value])); // the last values that could be

/** Before it is shown; rejects where that cannot be. */
export async function prepare() {
  ({ defaults } = await siteFacts());
  for (const [name, value] of Object.entries(defaults)) {
    const field = fieldOf(name);
    field.required = true; // until now an empty one was the engine's to choose
    field.defaultValue = String(value);
    field.value ||= String(value);
  }
  takeIn();
  return true;
}

/** @param {HTMLButtonElement} button */
const presetOf = (button) => /** @type {[string, number][]} */ (Object.entries(button.dataset.preset ? JSON.parse(button.dataset.preset) : defaults));

/** Says beside a field what is wrong with it. @param {HTMLInputElement} field */
function check(field) {
  const isSound = field.checkValidity();
  const label = /** @type {HTMLElement} */ (field.closest("label"));
  const fault = label.querySelector(".fault") ?? label.appendChild(Object.assign(document.createElement("small"), { className: "fault", role: "alert" }));
  if (isSound) sound.set(field, field.value);
  field.ariaInvalid = String(!isSound);
  fault.textContent = field.validationMessage;
}

function takeIn() {
  const most = stop.value.split("\n").filter(Boolean).length > MAX_STOPS;
  stop.setCustomValidity(most ? t`Enter at most ${MAX_STOPS} stop strings.` : "");
  fields.forEach(check);
  for (const button of presets) {
    button.ariaPressed = String(presetOf(button).every(([name, value]) => Number(fieldOf(name).value) === value));
  }
  keep("inpageSettings", JSON.stringify({ version: 1, chosen: chosen() }));
}

form.oninput = takeIn;
form.noValidate = true; // what is wrong is said beside its field, where the browser's bubble would cover it
form.onsubmit = (/** @type {SubmitEvent} */ event) => {
  if (/** @type {HTMLButtonElement | null} */ (event.submitter)?.formNoValidate || form.checkValidity()) return;
  event.preventDefault();
  fields.find((field) => !field.checkValidity())?.focus();
};
for (const button of presets) {
  button.onclick = () => {
    for (const [name, value] of presetOf(button)) fieldOf(name).value = String(value);
    takeIn();
  };
}
page.resetSettings.onclick = () => {
  form.reset();
  system.value = shown.system; // is the chat's own
  takeIn();
  changeLanguage();
};
/** At once, in all that stands in the page. */
async function changeLanguage() {
  keep("inpageLanguage", language.value);
  try {
    await speak(language.value);
    showChat();
    showPrompts();
  } catch {
    notify(t`This language could not be loaded: check the connection to this site, then choose it again.`, { stays: true });
  }
}

language.value = recall("inpageLanguage") ?? "";
language.onchange = changeLanguage;
settings.onclose = () => {
  for (const [field, value] of sound) if (!field.checkValidity()) field.value = value;
  takeIn();
};
system.oninput = () => { shown.system = system.value.trim(); }; // whatever shows the chat anew keeps it
system.onchange = () => {
  shown.system = system.value.trim();
  shown.set.system = Date.now();
  if (shown.messages.length) store(shown);
};
