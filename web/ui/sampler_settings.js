// The samplers that can be chosen in the settings: the engine's, and those that the user's Python registered. What is
// chosen, with its parameters, stands as JSON in a field of the form.

import { page } from "./elements.js";
import { t } from "./wording.js";

/** @import { SamplerKind } from "../inpage.js" */

const { sampler: picker, samplerAbout: about, samplerChosen: field, samplerFields: parameters } = page;

/** @type {SamplerKind[]} */
let kinds = [];

/** Gives the words for those that come with the engine: [what it does, then for each parameter]. @returns {Record<string, Record<string, string>>} */
const words = () => ({
  contrast: {
    title: t`Contrast`, about: t`Steers away from what another system prompt would bring. Each word takes twice as long.`,
    negative: t`the system prompt to stay away from`, strength: t`1 changes nothing`, share: t`of the best word's probability, that a word needs`,
  },
  dry: {
    title: t`DRY`, about: t`Avoids repeating whole phrases.`,
    multiplier: t`strength`, base: t`growth with each repeated word`, allowed_length: t`words that may repeat`, range: t`tokens looked back on; 0 for all`,
  },
  mirostat: {
    title: t`Mirostat 2`, about: t`Keeps the surprise of words at one level.`,
    tau: t`surprise aimed at, in bits`, eta: t`how fast it is corrected`,
  },
  typical: {
    title: t`Typical`, about: t`Takes words that are about as surprising as expected.`,
    mass: t`of the probability that is kept`,
  },
  xtc: {
    title: t`XTC`, about: t`Sometimes leaves out the most likely words.`,
    threshold: t`probability from which a word counts as likely`, probability: t`how often they are left out`,
  },
});

/** Offers the samplers, once the engine has told which there are; what was chosen stays. */
export async function showSamplers() {
  show();
  kinds = await inpage.samplers().catch(() => kinds);
  show();
}

/** @returns {Record<string, any>} */
const chosen = () => (field.value ? JSON.parse(field.value) : { name: "" });

function show() {
  const { name } = chosen();
  const known = kinds.map((kind) => new Option(words()[kind.name]?.title ?? kind.title, kind.name));
  if (name && !kinds.some((kind) => kind.name === name)) known.push(new Option(name, name));
  picker.replaceChildren(new Option(t`None`, ""), ...known);
  picker.value = name;
  showParameters();
}

function showParameters() {
  const values = chosen();
  const kind = kinds.find(({ name }) => name === values.name);
  const own = kind && words()[kind.name];
  about.textContent = kind ? `${own?.about ?? kind.about} ${t`Words are then chosen one by one by Python, which is slower.`}` : "";
  parameters.replaceChildren(...(kind?.parameters ?? []).map(({ name, default: usual, least, most, about: told, is_whole: isWhole }) => {
    const input = document.createElement(least === null ? "textarea" : "input");
    input.value = String(values[name] ?? usual);
    input.dir = "auto";
    if (input instanceof HTMLInputElement) Object.assign(input, { type: "number", min: least, max: most, step: isWhole ? "1" : "any", required: true });
    else input.rows = 2;
    input.oninput = () => {
      if (!input.checkValidity()) return;
      field.value = JSON.stringify({ ...chosen(), [name]: least === null ? input.value : Number(input.value) });
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
