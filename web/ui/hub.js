// Models of the Hugging Face Hub, in the panel of models. The Hub is asked once the user allows it, and nothing goes there
// before; they can take that back.

/** @import { HubChoice, HubFiles, InpageError } from "../inpage.js" */

import { copyOf, page, partOf } from "./elements.js";
import { emit } from "./events.js";
import { fitWords } from "./model_fit.js";
import { faultOf, inWords, line, t, tell } from "./wording.js";

const KEY = "inpageHub";

const { hubAccess, hubChoices, hubError, hubForm, hubLoad, hubLook, hubName, hubStatus, models: panel } = page;
/** @type {HubFiles | undefined} */
let found;
let looks = 0; // only what was asked for last is shown
/** @type {{ allowed: boolean, token: string | null, isKept: boolean }} */
let state = read(); // a token lasts as long as the page, unless it is to be kept
/** @type {Promise<boolean> | undefined} */
let asking;

// ---- a repository

page.hubRetry.onclick = () => look(hubName.value);
hubForm.onsubmit = (/** @type {SubmitEvent} */ event) => {
  event.preventDefault();
  look(hubName.value);
};

/** Shows which files a repository has. @param {string} where */
export async function look(where) {
  const mine = ++looks;
  hubName.value = where;
  hubChoices.hidden = true;
  hubError.textContent = "";
  page.hubRetry.hidden = true;
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
  const isUnreachable = error.code === "network_error" && !error.reason; // else the Hub has answered
  hubError.textContent = isUnreachable ? t`The Hugging Face Hub cannot be reached. Are you online?` : `${faultOf(error)}.`;
  page.hubRetry.hidden = !isUnreachable;
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
  partOf(row, "facts").textContent = line(tell(choice.messages), fitWords(choice.size ?? 0, choice.fits_gpu === false), isDefault && t`recommended`);
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
  if (choice) emit("modelchosen", { where: choice.address, name: choice.name, isFetched: !!choice.missing });
};

// ---- models worth trying

async function showShelf() {
  const shelf = await (await fetch("shelf.json")).json();
  page.shelf.replaceChildren(...shelf.map((/** @type {Record<string, string> & { size: number }} */ entry) => {
    const row = copyOf(page.shelfRow);
    const button = partOf(row, "choose");
    partOf(row, "name").textContent = entry.name;
    partOf(row, "facts").textContent = line(t`about ${inWords(entry.size)}`, fitWords(entry.size), t`licence: ${entry.licence}`);
    partOf(row, "words").textContent = t`Good at: ${tell({ code: entry.good_at, facts: {} }) ?? ""}`;
    button.ariaLabel = t`Choose ${entry.name}`;
    button.onclick = () => {
      hubName.scrollIntoView({ block: "center" });
      look(entry.address);
    };
    return row;
  }));
}

// ---- consent

function read() {
  try {
    const { allowed, token } = JSON.parse(localStorage.getItem(KEY) ?? "{}");
    const isKept = typeof token === "string";
    return { allowed: allowed === true, token: isKept ? token : null, isKept };
  } catch {
    return { allowed: false, token: null, isKept: false };
  }
}

/** @param {Partial<typeof state>} changes */
function change(changes) {
  state = { ...state, ...changes };
  const { allowed, token, isKept } = state;
  try {
    if (allowed || isKept) localStorage.setItem(KEY, JSON.stringify({ allowed, ...(isKept && { token }) }));
    else localStorage.removeItem(KEY);
  } catch { /* switched off: it lasts as long as the page */ }
}

/** Gives what the engine may ask with; asks the user where they have not said. Null: nothing. */
export async function permission() {
  if (!state.allowed) {
    asking ??= ask().finally(() => { asking = undefined; });
    if (!await asking) return null;
    change({ allowed: true });
  }
  return { token: state.token };
}

/** @returns {Promise<boolean>} */
async function ask() {
  const { hub } = await inpage.ready;
  if (!hub) return true; // the engine says that this site has none
  page.hubHost.textContent = new URL(hub).host;
  page.hubAsk.returnValue = "";
  page.hubAsk.showModal();
  return new Promise((resolve) => {
    page.hubAsk.addEventListener("close", () => resolve(page.hubAsk.returnValue === "allow"), { once: true });
  });
}

// ---- access and storage

async function showAccess() {
  const { allowed } = state;
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
  change({ allowed: false, token: null, isKept: false });
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
  const token = page.hubToken.value.trim();
  change({ token: token || null, isKept: page.hubTokenKept.checked && token !== "" });
  hubError.textContent = "";
  hubStatus.textContent = page.hubToken.value ? t`The token is used from now on.` : t`No token is used from now on.`;
  if (hubName.value) look(hubName.value);
};

page.hubTokenKept.checked = state.isKept;
inpage.ready.then(({ hub: address }) => {
  page.hubSection.hidden = !address;
  if (address) showShelf().catch(() => {});
}, () => {}); // the page tells why there is no engine
new MutationObserver(() => {
  if (panel.open) showAccess();
}).observe(panel, { attributeFilter: ["open"] });
