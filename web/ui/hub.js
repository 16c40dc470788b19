// Models that can be had: files of the user's, and those of the Hugging Face Hub, which is asked once the user allows it.
// Fetched with the panel of models, or when a script wants a model of the Hub.

/** @import { HubChoice, HubFiles, InpageError } from "../inpage.js" */

import { askFirst, hasKeptToken, isAllowed, permission, useToken } from "./hub_consent.js";
import { forget, ownFiles, readAgain } from "./local_files.js";
import { loadModel } from "./model_rows.js";
import { copyOf, faultOf, inWords, line, page, partOf, t, tell } from "./page.js";
import { openFiles } from "./opening.js";

export { permission };

const { hubAccess, hubChoices, hubError, hubForm, hubLoad, hubLook, hubName, hubStatus, models: panel } = page;
/** @type {HubFiles | undefined} */
let found;
let looks = 0; // only what was asked for last is shown

// ---- the user's own files

async function showOwn() {
  page.ownFiles.replaceChildren(...(await ownFiles()).map((own) => {
    const row = copyOf(page.ownRow);
    const [open, drop] = ["open", "forget"].map((name) => partOf(row, name));
    partOf(row, "words").textContent = own.name;
    open.ariaLabel = t`Open ${own.name}`;
    drop.ariaLabel = t`Forget ${own.name}`;
    open.onclick = async () => {
      try {
        const files = await readAgain(own);
        panel.close();
        openFiles(files);
      } catch (error) {
        partOf(row, "words").textContent = line(own.name, faultOf(error));
      }
    };
    drop.onclick = async () => {
      await forget(own.name);
      showOwn();
      panel.focus();
    };
    return row;
  }));
}

// ---- a repository

hubForm.onsubmit = (/** @type {SubmitEvent} */ event) => {
  event.preventDefault();
  look(hubName.value);
};

/** @param {string} where */
async function look(where) {
  const mine = ++looks;
  hubName.value = where;
  hubChoices.hidden = true;
  hubError.textContent = "";
  hubStatus.textContent = t`Contacting the Hub…`;
  hubLook.disabled = true;
  try {
    const answer = await inpage.hubFiles(where);
    if (mine === looks) showFound(answer);
  } catch (error) {
    if (mine === looks) showFault(/** @type {InpageError} */ (error));
  }
  if (mine !== looks) return;
  hubStatus.textContent = "";
  hubLook.disabled = false;
  showAccess();
}

/** @param {InpageError} error */
function showFault(error) {
  hubError.textContent = `${faultOf(error)}.`;
  if (error.code === "hub_access") {
    hubAccess.open = true;
    page.hubToken.focus();
  }
}

/** @param {HubFiles} answer */
function showFound(answer) {
  found = answer;
  page.hubFound.textContent = line(answer.name, t`licence: ${answer.licence}`, answer.gated && t`gated`, t`commit ${answer.commit.slice(0, 7)}`);
  page.hubFiles.replaceChildren(...answer.files.map((choice) => rowOf(choice, choice.address === answer.default)));
  hubError.textContent = answer.error ? `${(typeof answer.fault === "object" && tell(answer.fault)) || answer.error}.` : "";
  hubChoices.hidden = !answer.files.length;
  showChosen();
  if (answer.files.length) hubChoices.scrollIntoView({ block: "nearest" });
}

/**
 * @param {HubChoice} choice
 * @param {boolean} isDefault
 */
function rowOf(choice, isDefault) {
  const row = copyOf(page.hubRow);
  const radio = /** @type {HTMLInputElement} */ (row.querySelector("input"));
  Object.assign(radio, { value: choice.address, checked: isDefault });
  partOf(row, "kind").textContent = choice.quantisation || "GGUF";
  partOf(row, "facts").textContent = line(tell(choice.messages), isDefault && t`recommended`);
  partOf(row, "name").textContent = choice.name;
  partOf(row, "fit").textContent = (choice.unfit && tell(choice.unfit)) ?? "";
  return row;
}

const chosen = () => found?.files.find(({ address }) => address === new FormData(hubChoices).get("address"));

function showChosen() {
  const choice = chosen();
  hubLoad.disabled = !choice || !choice.fits_storage;
  if (choice) hubLoad.textContent = choice.missing ? t`Download and load (${tell(choice.messages) ?? ""})` : t`Load from this browser's storage`;
}

hubChoices.onchange = showChosen;
hubChoices.onsubmit = (/** @type {SubmitEvent} */ event) => {
  event.preventDefault();
  const choice = chosen();
  if (choice) loadModel(choice.address, choice.name, !!choice.missing);
};

// ---- models worth trying

async function showShelf() {
  const shelf = await (await fetch("shelf.json")).json();
  page.shelf.replaceChildren(...shelf.map((/** @type {Record<string, string> & { size: number }} */ entry) => {
    const row = copyOf(page.shelfRow);
    const button = partOf(row, "choose");
    partOf(row, "name").textContent = entry.name;
    partOf(row, "facts").textContent = line(t`about ${inWords(entry.size)}`, t`licence: ${entry.licence}`);
    partOf(row, "words").textContent = t`Good at: ${tell({ code: entry.good_at, facts: {} }) ?? ""}`;
    button.ariaLabel = t`Choose ${entry.name}`;
    button.onclick = () => {
      hubName.scrollIntoView({ block: "center" });
      look(entry.address);
    };
    return row;
  }));
}

// ---- access and storage

async function showAccess() {
  const allowed = isAllowed();
  page.hubConsent.textContent = allowed
    ? t`You have allowed this page to contact the Hub. It learns the address of this machine, and which models you view and download.`
    : t`This page has not contacted the Hub: you will be asked first.`;
  page.hubWithdraw.hidden = !allowed;
  const { usage = 0, quota = 0 } = await navigator.storage.estimate().catch(() => /** @type {StorageEstimate} */ ({}));
  const isKept = await navigator.storage.persisted();
  page.hubStorage.textContent = line(
    t`This browser's storage: ${inWords(usage)} used, ${inWords(Math.max(quota - usage, 0))} left`,
    isKept ? t`stored until you delete it` : t`the browser may clear it when it runs short of space`,
  );
  page.hubPersist.hidden = isKept;
}

page.hubWithdraw.onclick = () => {
  askFirst();
  page.hubToken.value = "";
  page.hubTokenKept.checked = false;
  showAccess();
  panel.focus();
};
page.hubPersist.onclick = async () => {
  if (!await navigator.storage.persist()) hubStatus.textContent = t`The browser declined: it may agree once you have used this page more.`;
  showAccess();
};
page.hubTokenForm.onsubmit = async (event) => {
  event.preventDefault();
  useToken(page.hubToken.value.trim(), page.hubTokenKept.checked);
  hubError.textContent = "";
  hubStatus.textContent = page.hubToken.value ? t`The token is used from now on.` : t`No token is used from now on.`;
  if (hubName.value) look(hubName.value);
};

page.hubTokenKept.checked = hasKeptToken();
inpage.ready.then(({ hub: address }) => {
  page.hubSection.hidden = !address;
  if (address) showShelf().catch(() => {});
}, () => {}); // the page tells why there is no engine
new MutationObserver(() => {
  page.ownFiles.replaceChildren(); // rows of the last time would take a click, and its answer, along when they go
  if (!panel.open) return;
  showOwn();
  showAccess();
}).observe(panel, { attributeFilter: ["open"] });
