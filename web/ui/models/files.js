// Models in files of the user's: told about, loaded, and found again the next time where they want it. What is remembered
// is where they are, not what they hold: the browser asks again before it lets the page read them. Adapters come as files,
// too: those of the loaded model have a chip each, with its strength.

/** @import { AppliedAdapter } from "../../inpage.js" */

import { copyOf, page, partOf } from "../elements.js";
import { emit } from "../events.js";
import { library } from "../lazy.js";
import { markdownIn } from "../markdown.js";
import { listModels, loadFrom } from "./models.js";
import { notify } from "../notices.js";
import { keep } from "../settings/settings.js";
import { decimal, faultOf, line, t, tell } from "../wording.js";

/**
 * @typedef {FileSystemFileHandle & Record<"queryPermission" | "requestPermission", () => Promise<PermissionState>>} Handle
 * @typedef {{ name: string, handles: Handle[], used: number }} OwnFile
 */

const { copyFile, keeping, keepingText, models: panel, rememberFile } = page;
const GGUF = /\.gguf$/i;
const loadIdb = library("idb.js");
const COPIES = () => t`Next time you will have to open it again, unless you keep a copy in this browser, which takes as much of its storage as the file.`;
const REMEMBERS = () => t`Next time you will have to open it again, unless this browser remembers where it is (it is then read in place, after you allow it) or keeps a copy.`;

/**
 * The files that the model in use was opened from, and the address of their copy, once there is one.
 * @type {{ name: string, files: File[], handles: FileSystemFileHandle[], copy: string | null } | undefined}
 */
let opened;

/** Whether the model in use is one of the user's files, which can be copied into this browser. */
export const canKeep = () => !!openedNow();

const openedNow = () => (opened && inpage.loaded?.path === null && inpage.loaded.name === opened.name ? opened : undefined);

/** Gives the address of the model in use: of a copy, where it was opened from a file that has one. */
export const addressOfLoaded = () => inpage.loaded?.path ?? openedNow()?.copy;

/**
 * Opens files: a line says that a model is ready; what else they hold is told in a dialog.
 * @param {File[]} files
 * @param {(Promise<FileSystemHandle | null> | undefined)[]} [given] their handles, where the browser has some
 */
export async function openFiles(files, given = []) {
  const names = files.map(({ name }) => name).join(", ");
  const handles = handlesOf(given); // at once: they are given to the event alone
  if (await areAutoencoder(files)) return emit("panelwanted", { name: "features", settings: { files } });
  keeping.hidden = true;
  const { about, isLoaded } = await loadFrom(files, names);
  markdownIn(page.about).finish(about ?? page.loadError.textContent ?? "");
  const { loaded } = inpage; // after a fault perhaps the model before, which was put back
  if (!loaded || !isLoaded || !files.some(({ name }) => GGUF.test(name))) return showDetails();
  opened = { name: loaded.name, files, handles: /** @type {FileSystemFileHandle[]} */ (await handles), copy: null };
  offerKeeping(opened);
  announce(loaded.name);
}

/** Shows what the files hold. */
function showDetails() {
  if (!page.opened.open) page.opened.showModal();
}

/** Says in a line that a model is ready, and offers what can be done. @param {string} name */
function announce(name) {
  const toast = copyOf(page.ready);
  const [copy, details, dismiss] = /** @type {HTMLButtonElement[]} */ (["keep", "details", "dismiss"].map((part) => partOf(toast, part)));
  const words = partOf(toast, "words");
  words.textContent = t`${name} is ready.`;
  copy.onclick = async () => {
    copy.disabled = true;
    copy.hidden = await keepCopy((told) => { words.textContent = told; });
    copy.disabled = false;
  };
  const end = () => {
    toast.remove();
    page.draft.focus();
  };
  details.onclick = () => {
    end();
    showDetails();
  };
  dismiss.onclick = end;
  for (const old of page.notices.querySelectorAll(".ready")) old.remove(); // of the model before
  page.notices.prepend(toast);
}

/** Copies the files of the model in use into this browser, and says whether that went well; `say` hears how it goes. @param {(words: string) => void} say */
export async function keepCopy(say) {
  const own = openedNow();
  if (!own) return false;
  try {
    own.copy = await inpage.keepFiles(own.files, { onProgress: ({ messages }) => say(t`Copying: ${tell(messages) ?? ""}`) });
    if (inpage.loaded?.is_encoder) keep("inpageEncoder", own.copy);
    await listModels();
    say(t`This browser keeps a copy of ${own.name}.`);
    return true;
  } catch (error) {
    say(t`That did not work: ${faultOf(error)}.`);
    return false;
  }
}

/** Offers, in the dialog, to have the files found again. @param {NonNullable<typeof opened>} own */
function offerKeeping({ name, files, handles }) {
  rememberFile.hidden = handles.length !== files.length;
  rememberFile.disabled = copyFile.disabled = false;
  keepingText.textContent = rememberFile.hidden ? COPIES() : REMEMBERS();
  rememberFile.onclick = async () => {
    rememberFile.disabled = true;
    keepingText.textContent = await remember(name, handles).then(() => t`${name} is now listed under “Models”.`, (error) => t`That did not work: ${faultOf(error)}.`);
  };
  copyFile.onclick = async () => {
    copyFile.disabled = true;
    await keepCopy((words) => { keepingText.textContent = words; });
  };
  keeping.hidden = false;
}

// The browser's newer dialog gives handles, by which files can be found again.
page.files.onclick = async (event) => {
  const { showOpenFilePicker: choose } = /** @type {any} */ (globalThis);
  if (!choose) return;
  event.preventDefault();
  /** @type {FileSystemFileHandle[]} */
  const handles = await choose({ multiple: true }).catch(() => []); // the user has thought better of it
  if (handles.length) openFiles(await Promise.all(handles.map((each) => each.getFile())), handles.map((each) => Promise.resolve(each)));
};

// ---- what this browser remembers

async function openDatabase() {
  const { openDB } = await loadIdb();
  return openDB("inpage-files", 1, {
    upgrade: (fresh) => { fresh.createObjectStore("files", { keyPath: "name" }); },
  });
}

/** Lists what is remembered. @returns {Promise<OwnFile[]>} the last used first; none where the browser keeps nothing */
async function ownFiles() {
  try {
    const database = await openDatabase();
    const all = await database.getAll("files");
    database.close();
    return all.sort((a, b) => b.used - a.used);
  } catch {
    return [];
  }
}

/**
 * Remembers where a model is.
 * @param {string} name
 * @param {FileSystemFileHandle[]} handles all its parts
 */
export async function remember(name, handles) {
  const database = await openDatabase();
  await database.put("files", { name, handles, used: Date.now() });
  database.close();
}

/** @param {string} name */
async function forget(name) {
  const database = await openDatabase();
  await database.delete("files", name);
  database.close();
}

/**
 * Gives the files themselves, after a click: the browser may ask the user. Rejects in words.
 * @param {OwnFile} own
 */
async function readAgain({ name, handles }) {
  for (const handle of handles) {
    if (await handle.queryPermission() !== "granted" && await handle.requestPermission() !== "granted") {
      throw new Error(t`the browser was not allowed to read ${name}`);
    }
  }
  return Promise.all(handles.map((handle) => handle.getFile().catch(() => {
    throw new Error(t`${handle.name} is no longer where it was: open it again`);
  })));
}

/**
 * Gives the handles that came with a drop, or of the browser's own dialog; fewer than there are files where it gives none.
 * @param {(Promise<FileSystemHandle | null> | undefined)[]} given
 */
async function handlesOf(given) {
  const settled = await Promise.allSettled(given);
  return settled.flatMap((each) => (each.status === "fulfilled" && each.value?.kind === "file" ? [each.value] : []));
}

// ---- their list, in the panel of models

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

new MutationObserver(() => {
  page.ownFiles.replaceChildren(); // rows of the last time would take a click, and its answer, along when they go
  if (panel.open) showOwn();
}).observe(panel, { attributeFilter: ["open"] });

// ---- sparse autoencoders among the files that are dropped, told from models by the names of their tensors

const MAX_HEADER_BYTES = 16 << 20;
const MAX_DIRECTORY_BYTES = 64 << 10; // of an .npz file, at its end
const WEIGHTS = /\.(safetensors|npz)$/i;
const OTHER = /\.(gguf|pte|ptd)$|^adapter_config\.json$/i;

/** Whether files are a sparse autoencoder with, perhaps, its configuration. @param {File[]} files */
async function areAutoencoder(files) {
  const weights = files.filter(({ name }) => WEIGHTS.test(name));
  if (weights.length !== 1 || files.some(({ name }) => OTHER.test(name))) return false;
  return (await tensorsOf(weights[0])).some((name) => name.toLowerCase() === "w_dec");
}

/** The names of a file's tensors; none where it is not as it should be, which the engine tells. @param {File} file */
async function tensorsOf(file) {
  try {
    if (/\.npz$/i.test(file.name)) {
      const directory = await file.slice(-MAX_DIRECTORY_BYTES).text();
      return directory.toLowerCase().includes("w_dec.npy") ? ["w_dec"] : [];
    }
    const length = new DataView(await file.slice(0, 8).arrayBuffer()).getBigUint64(0, true);
    if (length > MAX_HEADER_BYTES) return [];
    return Object.keys(JSON.parse(await file.slice(8, 8 + Number(length)).text()));
  } catch {
    return [];
  }
}

// ---- the adapters of the loaded model

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
    tellStrengths();
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
async function tellStrengths() {
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
  if (wanted.size) tellStrengths();
}
