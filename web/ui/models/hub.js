// Models of the Hugging Face Hub, in the panel of models: found by words, and the files of one to choose from. The Hub is asked
// once the user allows it, and nothing goes there before; they can take that back.

/** @import { HubChoice, HubFiles, HubFound, InpageError } from "../../inpage.js" */

import { copyOf, page, partOf } from "../elements.js";
import { emit, on } from "../events.js";
import { fitWords } from "./fit.js";
import { models } from "./models.js";
import { decimal, faultOf, inWords, line, t, tell } from "../wording.js";

const KEY = "inpageHub";

const ADDRESS = /^(?:hf:|https?:\/\/)|^[\w.-]+\/[\w.-]/i; // else it is words to search for
const BYTES_PER_PARAMETER = 0.61; // of a model at Q4_K_M, which is chosen first

const { hubAccess, hubChoices, hubError, hubForm, hubLoad, hubLook, hubName, hubResults, hubStatus, models: panel } = page;
/** @type {HubFiles | undefined} */
let found;
let looks = 0; // only what was asked for last is shown
/** @type {{ allowed: boolean, token: string | null, isKept: boolean }} */
let state = read(); // a token lasts as long as the page, unless it is to be kept
/** @type {Promise<boolean> | undefined} */
let asking;

// ---- a repository

/** Goes to where the field leads: to a model, or to those that are found by its words. */
const go = () => (ADDRESS.test(hubName.value.trim()) ? look(hubName.value) : search(hubName.value));

page.hubRetry.onclick = go;
hubForm.onsubmit = (/** @type {SubmitEvent} */ event) => {
  event.preventDefault();
  go();
};

/** Shows which files a repository has. @param {string} where */
export function look(where) {
  hubName.value = where;
  return ask(() => inpage.hubFiles(where), showFiles);
}

/** Shows which models are found by words. @param {string} words */
function search(words) {
  hubResults.replaceChildren();
  return ask(() => inpage.hubSearch(words), showResults);
}

/** @type {<Answer>(question: () => Promise<Answer>, show: (answer: Answer) => void) => Promise<void>} */
async function ask(question, show) {
  const mine = ++looks;
  hubChoices.hidden = true;
  hubError.textContent = "";
  page.hubRetry.hidden = page.hubGate.hidden = true;
  hubStatus.textContent = t`Contacting the Hub…`;
  hubLook.disabled = true;
  try {
    const answer = await question();
    if (mine === looks) show(answer);
  } catch (error) {
    if (mine === looks) showFault(/** @type {InpageError} */ (error));
  }
  if (mine !== looks) return;
  hubStatus.textContent = "";
  hubLook.disabled = false;
  showAccess();
}

/** @param {InpageError} error */
async function showFault(error) {
  const isUnreachable = error.code === "network_error" && !error.reason; // else the Hub has answered
  hubError.textContent = isUnreachable ? t`The Hugging Face Hub cannot be reached. Are you online?` : `${faultOf(error)}.`;
  page.hubRetry.hidden = !isUnreachable;
  if (error.code !== "hub_access") return;
  hubAccess.open = true;
  page.hubToken.focus();
  page.hubGate.href = await pageOf(repositoryOf(hubName.value));
  page.hubGate.hidden = false;
}

/** Gives the owner/name that an address has. @param {string} where */
const repositoryOf = (where) => where.trim().replace(/^hf:|^https?:\/\/[^/]+\//, "").split(/[/@]/, 2).join("/");

/** Gives the address of a model's page on the Hub. @param {string} name */
const pageOf = async (name) => `${(await inpage.ready).hub}/${name}`;

/** @param {HubFound[]} results */
function showResults(results) {
  hubResults.replaceChildren(...results.map(({ name, downloads, licence, gated, parameters }) => {
    const size = parameters * BYTES_PER_PARAMETER;
    const words = line(size > 0 && t`about ${inWords(size)}`, fitWords(size), t`${decimal(downloads)} downloads`);
    return entryOf({ name, words, facts: line(t`licence: ${licence}`, gated && t`gated: its owner asks you to accept terms first`), address: name });
  }));
  if (!results.length) hubError.textContent = t`The Hub has no model with GGUF files by that name.`;
  else hubResults.scrollIntoView({ block: "nearest" });
}

/** Makes the row of a model whose files can be shown. @type {(entry: Record<"name" | "words" | "facts" | "address", string>) => HTMLElement} */
function entryOf({ name, words, facts, address }) {
  const row = copyOf(page.shelfRow);
  const button = partOf(row, "choose");
  partOf(row, "name").textContent = name;
  partOf(row, "words").textContent = words;
  partOf(row, "facts").textContent = facts;
  button.ariaLabel = t`Choose ${name}`;
  button.onclick = () => {
    hubName.scrollIntoView({ block: "center" });
    look(address);
  };
  return row;
}

/** @param {HubFiles} answer */
async function showFiles(answer) {
  found = answer;
  page.hubFound.textContent = line(answer.name, t`licence: ${answer.licence}`, answer.gated && t`gated`, t`commit ${answer.commit.slice(0, 7)}`);
  page.hubTerms.textContent = answer.gated ? t`Its owner asks you to accept the terms first: sign in on the model's page, accept them there, then enter your access token below.`
    : t`The licence says what you may do with the model and its answers.`;
  page.hubPage.href = await pageOf(answer.name);
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
  partOf(row, "facts").textContent = line(tell(choice.messages), choice.sees && t`sees images`, fitWords(choice.size ?? 0, choice.fits_gpu === false), isDefault && t`recommended`);
  partOf(row, "name").textContent = choice.name;
  partOf(row, "fit").textContent = (choice.unfit && tell(choice.unfit)) ?? "";
  return row;
}

const chosen = () => found?.files.find(({ address }) => address === new FormData(hubChoices).get("address"));

function showChosen() {
  const choice = chosen();
  hubLoad.disabled = !choice || !choice.fits_storage;
  if (choice) hubLoad.textContent = choice.missing ? t`Use (${inWords(choice.missing)} download)` : t`Use`;
}

hubChoices.onchange = showChosen;
hubChoices.onsubmit = (/** @type {SubmitEvent} */ event) => {
  event.preventDefault();
  const choice = chosen();
  if (choice) emit("modelchosen", { where: choice.address, name: choice.name, isFetched: !!choice.missing });
};

// ---- models worth trying

/** @type {(Record<"name" | "address" | "licence" | "good_at", string> & { size: number })[]} */
let shelf = [];

/** Shows those of the shelf that are not in this panel already. */
function showShelf() {
  const others = shelf.filter((entry) => !models.some((model) => isSame(model, entry)));
  page.shelf.replaceChildren(...others.map(({ name, address, size, licence, good_at: goodAt }) => entryOf({
    name, address,
    words: line(t`about ${inWords(size)}`, fitWords(size)),
    facts: line(t`Good at: ${tell({ code: goodAt, facts: {} }) ?? ""}`, t`licence: ${licence}`),
  })));
}

/** Whether a model is the one that an entry recommends, perhaps from elsewhere. @type {(model: Record<"name" | "path", string>, entry: Record<"name" | "address", string>) => boolean} */
const isSame = (model, { name, address }) => model.path.startsWith(`hf:${address}/`) || plain(model.name).startsWith(plain(name));

/** @param {string} name */
const plain = (name) => name.toLowerCase().replace(/[^a-z0-9.]/g, "");

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
    asking ??= askUser().finally(() => { asking = undefined; });
    if (!await asking) return null;
    change({ allowed: true });
  }
  return { token: state.token };
}

/** @returns {Promise<boolean>} */
async function askUser() {
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
  if (!address) return;
  fetch("shelf.json").then((answer) => answer.json()).then((entries) => {
    shelf = entries;
    showShelf();
  }).catch(() => {});
}, () => {}); // the page tells why there is no engine
on("modelslisted", showShelf);
on("modelchange", showShelf);
new MutationObserver(() => {
  if (panel.open) showAccess();
}).observe(panel, { attributeFilter: ["open"] });
