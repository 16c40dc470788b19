// Models in files of the user's: told about, loaded, and found again the next time where they want it. What is remembered
// is where they are, not what they hold: the browser asks again before it lets the page read them. Adapters come as files,
// too: those of the loaded model have a chip each, with its strength.

/** @import { AppliedAdapter } from "../inpage.js" */

import { copyOf, page, partOf } from "./elements.js";
import { emit } from "./events.js";
import { library } from "./lazy.js";
import { markdownIn } from "./markdown.js";
import { listModels, loadFrom } from "./models.js";
import { notify } from "./notices.js";
import { decimal, faultOf, line, t, tell } from "./wording.js";

/**
 * @typedef {FileSystemFileHandle & Record<"queryPermission" | "requestPermission", () => Promise<PermissionState>>} Handle
 * @typedef {{ name: string, handles: Handle[], used: number }} OwnFile
 */

const { copyFile, keeping, keepingText, models: panel, rememberFile } = page;
const loadIdb = library("idb.js");
const COPIES = () => t`Next time it has to be opened again, unless this browser keeps a copy: that takes as much of its storage.`;
const REMEMBERS = () => t`Next time it has to be opened again, unless this browser remembers where it is (it is read in place, after you allow it), or keeps a copy.`;

/**
 * Tells what files hold; a decoder beside its tokenizer can be talked to at once.
 * @param {File[]} files
 * @param {(Promise<FileSystemHandle | null> | undefined)[]} [given] their handles, where the browser has some
 */
export async function openFiles(files, given = []) {
  const names = files.map(({ name }) => name).join(", ");
  const handles = handlesOf(given); // at once: they are given to the event alone
  if (await areAutoencoder(files)) return emit("panelwanted", { name: "features", settings: { files } });
  page.about.textContent = t`Reading ${names}…`;
  keeping.hidden = true;
  if (!page.opened.open) page.opened.showModal();
  const before = inpage.loaded;
  markdownIn(page.about).finish(await loadFrom(files, names) ?? page.loadError.textContent);
  if (inpage.loaded && inpage.loaded !== before && files.some(({ name }) => /\.gguf$/i.test(name))) {
    offerKeeping(files, /** @type {FileSystemFileHandle[]} */ (await handles));
  }
}

/**
 * @param {File[]} files
 * @param {FileSystemFileHandle[]} handles
 */
function offerKeeping(files, handles) {
  const name = inpage.loaded?.name ?? "";
  rememberFile.hidden = handles.length !== files.length;
  rememberFile.disabled = copyFile.disabled = false;
  keepingText.textContent = rememberFile.hidden ? COPIES() : REMEMBERS();
  rememberFile.onclick = () => attempt(async () => {
    await remember(name, handles);
    return t`${name} is now listed under “Models”.`;
  });
  copyFile.onclick = () => attempt(async () => {
    await inpage.keepFiles(files, { onProgress: ({ messages }) => { keepingText.textContent = t`Copying: ${tell(messages) ?? ""}`; } });
    await listModels();
    return t`This browser keeps a copy of ${name}.`;
  });
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

/** @param {() => Promise<string>} work */
async function attempt(work) {
  rememberFile.disabled = copyFile.disabled = true;
  try {
    keepingText.textContent = await work();
  } catch (error) {
    keepingText.textContent = t`That did not work: ${faultOf(error)}.`;
    rememberFile.disabled = copyFile.disabled = false;
  }
}

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
