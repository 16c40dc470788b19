// A larger model that this machine could run, which is suggested until the user wants no more of that.

/** @import { ChatMessage } from "./chats.js" */

import { copyOf, page, partOf } from "./elements.js";
import { script } from "./lazy.js";
import { fitOf, kind, note, speedOf } from "./model_fit.js";
import { arrived } from "./notices.js";
import { keep, recall } from "./settings.js";
import { inWords, t } from "./wording.js";

/** @typedef {{ name: string, address: string, size: number }} ShelfEntry a model of shelf.json */

const SILENT = "inpageNoSuggestions";
const LEAST_SPEED = 8; // tokens a second: what people read
const LARGER = 1.8; // times the size of the model in use: less is no other model

const loadHub = script(() => import("./hub.js"));

let isMade = false; // in this visit

/** Finds the largest model of the shelf that would run well here, and is clearly larger than the one in use. @returns {Promise<ShelfEntry | undefined>} */
async function better() {
  const { hub } = await inpage.ready;
  const size = inpage.loaded?.size;
  if (!hub || !size || document.body.hasAttribute("data-software")) return undefined;
  const shelf = /** @type {ShelfEntry[]} */ (await (await fetch("shelf.json")).json());
  return shelf.filter((each) => each.size > size * LARGER && fitOf(each.size) === "fits" && speedOf(each.size) >= LEAST_SPEED)
    .sort((a, b) => b.size - a.size)[0];
}

/** Shows the suggestion in a line, unless there is none to make. @type {(row: HTMLElement) => Promise<void>} */
async function fill(row) {
  const found = await better().catch(() => undefined); // the shelf did not arrive
  row.hidden = !found || recall(SILENT) === "1";
  if (!found) return;
  const [name, size] = [found.name, inWords(found.size)];
  partOf(row, "words").textContent = kind() === "cpu" ? t`Your processor can run ${name} (${size}) for better answers.` : t`Your graphics card can run ${name} (${size}) for better answers.`;
  partOf(row, "look").onclick = async () => {
    row.hidden = true;
    if (!page.models.open) /** @type {HTMLElement} */ (document.querySelector("#modelChip")).click();
    (await arrived(loadHub()))?.look(found.address);
  };
  partOf(row, "never").onclick = () => {
    keep(SILENT, "1");
    for (const each of document.querySelectorAll(".suggestion")) /** @type {HTMLElement} */ (each).hidden = true;
    page.draft.focus();
  };
}

/** Takes in an answer that was written; after the first one, a better model may be suggested. @param {ChatMessage} message */
export async function consider(message) {
  note(message);
  if (recall(SILENT) || isMade || message.error) return;
  isMade = true;
  const row = copyOf(page.suggestion);
  await fill(row);
  if (!row.hidden) page.notices.prepend(row);
}

/** Shows the suggestion in the panel of models. */
export const showInPanel = () => fill(page.suggested);
