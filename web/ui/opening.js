// Files of the user's: told about, loaded, and kept for the next time where they want it. Fetched when somebody
// drops or chooses some.

import { handlesOf, remember } from "./local_files.js";
import { markdownIn } from "./markdown.js";
import { listModels, loadFrom } from "./model.js";
import { faultOf, page, t, tell } from "./page.js";

const { copyFile, keeping, keepingText, rememberFile } = page;
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
