// Model and machine: what is loaded, whether this GPU computes it right, what is kept. Fetched when somebody opens it.

import { markdownIn } from "./markdown.js";
import { listModels, stored } from "./model.js";
import "./opening.js"; // whose dialog chooses files
import { copyOf, line, page, partOf } from "./page.js";

const { layers, verdict, verify } = page;

function showLoaded() {
  const { loaded } = inpage;
  page.loadedFacts.textContent = loaded && line(loaded.name, loaded.facts);
  layers.replaceChildren();
  verdict.textContent = "";
}

function showStored() {
  page.stored.replaceChildren(...stored.map(({ name, url, facts }) => {
    const row = copyOf(page.storedRow);
    const button = partOf(row, "delete");
    partOf(row, "words").textContent = facts;
    button.ariaLabel = `Delete ${name}`;
    button.onclick = async () => {
      await inpage.deleteStored(url);
      page.machine.focus();
      await listModels();
    };
    return row;
  }));
}

page.unload.onclick = async () => {
  await inpage.unload();
  page.machine.close();
  page.load.focus();
};

verify.onclick = async () => {
  verify.disabled = true;
  verdict.textContent = "Verifying…";
  try {
    const { summary, table } = await inpage.verify();
    verdict.textContent = summary;
    markdownIn(layers).finish(table);
  } catch (error) {
    verdict.textContent = /** @type {Error} */ (error).message;
  }
  verify.disabled = false;
};

addEventListener("modelchange", showLoaded);
addEventListener("modelslisted", showStored);
showLoaded();
showStored();
