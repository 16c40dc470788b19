// The adapters of the loaded model: a chip for each, with its strength.

import { copyOf, page, partOf } from "./elements.js";
import { notify } from "./notices.js";
import { decimal, faultOf, t } from "./wording.js";

/** @import { AppliedAdapter } from "../inpage.js" */

/** @type {Map<string, HTMLElement>} */
let chips = new Map(); // by the adapters' names
/** @type {Map<string, number>} */
const wanted = new Map(); // strengths that the engine is still to hear of
let isTelling = false;

/** Shows what is applied; a slider that the user holds stays as it is. @param {AppliedAdapter[]} adapters */
export function showAdapters(adapters) {
  chips = new Map(adapters.map(({ name, strength }) => [name, chips.get(name) ?? chipOf(name, strength)]));
  const shown = [...chips.values()];
  for (const gone of [...page.adapters.children].filter((each) => !shown.includes(/** @type {HTMLElement} */ (each)))) gone.remove();
  for (const chip of shown) if (!chip.isConnected) page.adapters.append(chip);
  for (const { name, strength } of adapters) if (!wanted.has(name)) fill(/** @type {HTMLElement} */ (chips.get(name)), strength);
  page.adapters.hidden = !shown.length;
}

/** @param {HTMLElement} chip */
const sliderOf = (chip) => /** @type {HTMLInputElement} */ (chip.querySelector("input"));

/** @type {(chip: HTMLElement, strength: number) => void} */
function fill(chip, strength) {
  const slider = sliderOf(chip);
  slider.min = String(Math.min(-1, strength));
  slider.max = String(Math.max(2, strength));
  slider.value = String(strength);
  /** @type {HTMLOutputElement} */ (chip.querySelector("output")).value = decimal(strength, 2);
}

/** @type {(name: string, strength: number) => HTMLElement} */
function chipOf(name, strength) {
  const chip = copyOf(page.adapterChip);
  const [slider, button] = [sliderOf(chip), /** @type {HTMLButtonElement} */ (chip.querySelector("button"))];
  partOf(chip, "name").textContent = chip.title = name;
  slider.ariaLabel = t`Strength of ${name}`;
  button.ariaLabel = button.title = t`Remove ${name}`;
  fill(chip, strength);
  slider.oninput = () => {
    wanted.set(name, Number(slider.value));
    fill(chip, Number(slider.value));
    tell();
  };
  button.onclick = async () => {
    button.disabled = true;
    try {
      await inpage.adapters.remove(name);
      page.draft.focus();
    } catch (error) {
      button.disabled = false;
      notify(t`${name} could not be removed: ${faultOf(error)}.`);
    }
  };
  return chip;
}

/** Tells the engine the newest strengths, one after the other: a slider gives more than it can take. */
async function tell() {
  if (isTelling) return;
  isTelling = true;
  for (const [name, strength] of wanted) {
    try {
      await inpage.adapters.setStrength(name, strength);
    } catch (error) {
      notify(faultOf(error));
    }
    if (wanted.get(name) === strength) wanted.delete(name);
  }
  isTelling = false;
  if (wanted.size) tell();
}
