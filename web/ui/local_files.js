// Files of the user's that this browser remembers: where they are, not what they hold. The browser asks again
// before it lets the page read them. Fetched with the dialogs that show them.

import { library, t } from "./page.js";

/**
 * @typedef {FileSystemFileHandle & Record<"queryPermission" | "requestPermission", () => Promise<PermissionState>>} Handle
 * @typedef {{ name: string, handles: Handle[], used: number }} OwnFile
 */

async function files() {
  const { openDB } = await library("idb.js");
  return openDB("inpage-files", 1, {
    upgrade: (fresh) => { fresh.createObjectStore("files", { keyPath: "name" }); },
  });
}

/** @returns {Promise<OwnFile[]>} the last used first; none where the browser keeps nothing */
export async function ownFiles() {
  try {
    const database = await files();
    const all = await database.getAll("files");
    database.close();
    return all.sort((a, b) => b.used - a.used);
  } catch {
    return [];
  }
}

/**
 * @param {string} name
 * @param {FileSystemFileHandle[]} handles all parts of one model
 */
export async function remember(name, handles) {
  const database = await files();
  await database.put("files", { name, handles, used: Date.now() });
  database.close();
}

/** @param {string} name */
export async function forget(name) {
  const database = await files();
  await database.delete("files", name);
  database.close();
}

/**
 * The files themselves, after a click: the browser may ask the user. Rejects in words.
 * @param {OwnFile} own
 */
export async function readAgain({ name, handles }) {
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
 * What a drop or the browser's own dialog gave; fewer than there are files where it gives none.
 * @param {(Promise<FileSystemHandle | null> | undefined)[]} given
 */
export async function handlesOf(given) {
  const settled = await Promise.allSettled(given);
  return settled.flatMap((each) => (each.status === "fulfilled" && each.value?.kind === "file" ? [each.value] : []));
}
