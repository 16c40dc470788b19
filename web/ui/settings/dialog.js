// The panel of settings: what is typed counts at once, if it can; what cannot be says so where it stands.

/** @import { SamplerKind } from "../../inpage.js" */

import { store } from "../chat_storage.js";
import { shown } from "../chats.js";
import { showChat } from "../conversation.js";
import { page } from "../elements.js";
import { emit } from "../events.js";
import { siteFacts } from "../lazy.js";
import { notify } from "../notices.js";
import { filledIn } from "./prompt_fields.js";
import { chosen, fields, keep, recall } from "./settings.js";
import { speak, t } from "../wording.js";

const MAX_STOPS = 16; // as a request has them
const PROMPTS = "inpagePrompts";
const [MAX_PROMPTS, MAX_LENGTH, MAX_NAME] = [100, 20_000, 60];

const { forgetPrompt, keepPrompt, language, prompts, settings, settingsForm: form, system } = page;
const { stop } = /** @type {{ stop: HTMLTextAreaElement }} */ (/** @type {unknown} */ (form.elements));
const presets = /** @type {NodeListOf<HTMLButtonElement>} */ (form.querySelectorAll("[data-preset]"));

/** @param {string} name */
const fieldOf = (name) => /** @type {HTMLInputElement} */ (fields.find((field) => field.name === name));

/** @type {import("../../calls.d.ts").Site["defaults"]} */
let defaults = {}; // the engine's
const sound = new Map(fields.map((field) => [field, field.value])); // the last values that could be

/** Fills in the engine's defaults before the panel is shown; rejects where they did not arrive. */
export async function prepare() {
  ({ defaults } = await siteFacts());
  for (const [name, value] of Object.entries(defaults)) {
    const field = fieldOf(name);
    field.required = true; // until now an empty one was the engine's to choose
    field.defaultValue = String(value);
    field.value ||= String(value);
  }
  takeIn();
  showSamplers(); // they may take as long as the engine takes to start
}

/** Opens what hides a field. @param {Element} field */
function reveal(field) {
  const hiding = field.closest("details");
  if (hiding) hiding.open = true;
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
  const faulty = fields.find((field) => !field.checkValidity());
  if (faulty) reveal(faulty);
  faulty?.focus();
};
for (const button of presets) {
  button.onclick = () => {
    for (const [name, value] of presetOf(button)) fieldOf(name).value = String(value);
    takeIn();
  };
}
page.resetSettings.onclick = () => {
  form.reset();
  showSamplers();
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
  else emit("chatschange");
};

// ---- system prompts to choose from: those that the user keeps, and some to begin with


const examples = () => [
  t`Answer in plain words and short sentences. Say so where you are not sure.`,
  t`Correct the spelling and grammar of what I write. Keep its meaning and tone, then list what you changed.`,
  t`Translate what I write into English. Give the translation alone.`,
  t`You are a careful programmer. Give working code first, then a short explanation.`,
  t`Explain step by step, as to somebody who is new to it. End with a question that shows whether it was understood.`,
];

/** Another tab may have changed it, and anything may stand there. @returns {string[]} */
function keptPrompts() {
  try {
    const { version, texts } = JSON.parse(localStorage.getItem(PROMPTS) ?? "{}");
    const isText = (/** @type {unknown} */ text) => typeof text === "string" && !!text && text.length <= MAX_LENGTH;
    return version === 1 ? [...new Set(texts.filter(isText))].slice(0, MAX_PROMPTS) : [];
  } catch {
    return [];
  }
}

/** @param {string[]} texts */
function keepPrompts(texts) {
  try {
    localStorage.setItem(PROMPTS, JSON.stringify({ version: 1, texts }));
  } catch {
    notify(t`The prompt was not saved: this browser's storage is full or turned off.`, { stays: true });
  }
  showPrompts();
}

function showPrompts() {
  const text = system.value.trim();
  const kept = keptPrompts();
  prompts.replaceChildren(new Option(t`Choose a saved prompt…`, ""), ...groupOf(t`Your prompts`, kept), ...groupOf(t`Examples`, examples()));
  prompts.value = text;
  if (prompts.selectedIndex < 0) prompts.value = "";
  keepPrompt.hidden = !text || !!prompts.value || text.length > MAX_LENGTH || kept.length >= MAX_PROMPTS;
  forgetPrompt.hidden = !kept.includes(text);
}

/** @type {(label: string, texts: string[]) => HTMLElement[]} */
function groupOf(label, texts) {
  if (!texts.length) return [];
  const group = Object.assign(document.createElement("optgroup"), { label });
  group.append(...texts.map((text) => Object.assign(new Option(nameOf(text), text), { dir: "auto" })));
  return [group];
}

/** Whole words, if there are several. @param {string} text */
function nameOf(text) {
  const start = text.slice(0, MAX_NAME);
  return start === text ? text : `${/^[^]*\S(?=\s)/.exec(start)?.[0] ?? start}…`;
}

/** What was filled in: it is made again from its prompt, and need not be saved. @type {Set<string>} */
const filled = new Set();

prompts.onchange = async () => {
  if (!prompts.value) return;
  const wanted = await filledIn(prompts.value);
  if (wanted === undefined) return showPrompts();
  const [text, kept] = [system.value.trim(), keptPrompts()];
  if (wanted !== prompts.value) filled.add(wanted);
  if (text && ![...kept, ...examples(), ...filled].includes(text)) { // nothing that was written is lost
    if (text.length > MAX_LENGTH || kept.length >= MAX_PROMPTS) {
      notify(t`The prompt of this chat cannot be saved: copy it before you choose another.`);
      return showPrompts();
    }
    keepPrompts([...kept, text]);
  }
  system.value = wanted;
  system.dispatchEvent(new Event("change")); // the chat takes it
  showPrompts();
};
keepPrompt.onclick = () => {
  keepPrompts([...keptPrompts(), system.value.trim()]);
  prompts.focus();
};
// The field still has it: to keep it again is one click.
forgetPrompt.onclick = () => {
  keepPrompts(keptPrompts().filter((text) => text !== system.value.trim()));
  prompts.focus();
};
system.addEventListener("input", showPrompts);
new MutationObserver(() => { if (settings.open) showPrompts(); }).observe(settings, { attributeFilter: ["open"] });
addEventListener("storage", ({ key }) => { if (key === PROMPTS) showPrompts(); });
showPrompts();

// ---- the samplers that can be chosen: the engine's, and those that the user's Python registered. What is chosen, with its
// parameters, stands as JSON in a field of the form.

const { sampler: picker, samplerAbout: about, samplerChosen: field, samplerFields: parameters } = page;

/** @type {SamplerKind[]} */
let kinds = [];

/** Gives the words for those that come with the engine: [what it does, then for each parameter]. @returns {Record<string, Record<string, string>>} */
const samplerWords = () => ({
  contrast: {
    title: t`Contrast`, about: t`Steers away from what the model would write with another system prompt. Each word takes twice as long.`,
    negative: t`the system prompt to stay away from`, strength: t`1 changes nothing`, share: t`share of the best word's probability that a word needs`,
  },
  dry: {
    title: t`DRY`, about: t`Avoids repeating whole phrases.`,
    multiplier: t`strength`, base: t`growth with each repeated word`, allowed_length: t`words that may repeat freely`, range: t`tokens to look back over; 0 for all`,
  },
  mirostat: {
    title: t`Mirostat 2`, about: t`Keeps words equally surprising.`,
    tau: t`target surprise, in bits`, eta: t`learning rate`,
  },
  typical: {
    title: t`Typical`, about: t`Takes words that are about as surprising as expected.`,
    mass: t`share of the probability to keep`,
  },
  xtc: {
    title: t`XTC`, about: t`Sometimes leaves out the most likely words.`,
    threshold: t`probability from which a word counts as likely`, probability: t`how often they are left out`,
  },
});

/** Offers the samplers, once the engine has told which there are; what was chosen stays. */
async function showSamplers() {
  listSamplers();
  kinds = await inpage.samplers().catch(() => kinds);
  listSamplers();
}

/** @returns {Record<string, any>} */
const chosenSampler = () => (field.value ? JSON.parse(field.value) : { name: "" });

function listSamplers() {
  const { name } = chosenSampler();
  const known = kinds.map((kind) => new Option(samplerWords()[kind.name]?.title ?? kind.title, kind.name));
  if (name && !kinds.some((kind) => kind.name === name)) known.push(new Option(name, name));
  picker.replaceChildren(new Option(t`None`, ""), ...known);
  picker.value = name;
  showParameters();
}

function showParameters() {
  const values = chosenSampler();
  const kind = kinds.find(({ name }) => name === values.name);
  const own = kind && samplerWords()[kind.name];
  about.textContent = kind ? `${own?.about ?? kind.about} ${t`Python then picks every word, which is slower.`}` : "";
  parameters.replaceChildren(...(kind?.parameters ?? []).map(({ name, default: usual, least, most, about: told, is_whole: isWhole }) => {
    const input = document.createElement(least === null ? "textarea" : "input");
    input.value = String(values[name] ?? usual);
    input.dir = "auto";
    if (input instanceof HTMLInputElement) Object.assign(input, { type: "number", min: least, max: most, step: isWhole ? "1" : "any", required: true });
    else input.rows = 2;
    input.oninput = () => {
      if (!input.checkValidity()) return;
      field.value = JSON.stringify({ ...chosenSampler(), [name]: least === null ? input.value : Number(input.value) });
    };
    const label = document.createElement("label");
    label.append(`${name.replaceAll("_", " ")} `, input, Object.assign(document.createElement("small"), { textContent: own?.[name] ?? told }));
    return label;
  }));
}

picker.onchange = () => {
  field.value = picker.value && JSON.stringify({ name: picker.value });
  showParameters();
  field.dispatchEvent(new Event("input", { bubbles: true }));
};
