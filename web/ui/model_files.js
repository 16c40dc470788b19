// Models in files of the user's: told about, loaded, and found again the next time where they want it. What is remembered
// is where they are, not what they hold: the browser asks again before it lets the page read them.

import { areAutoencoder } from "./autoencoder_files.js";
import { copyOf, page, partOf } from "./elements.js";
import { emit } from "./events.js";
import { library } from "./lazy.js";
import { markdownIn } from "./markdown.js";
import { listModels, loadFrom } from "./models.js";
import { faultOf, line, t, tell } from "./wording.js";

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
