// Folders that are attached: their texts, one after the other, as one file that knows where each begins.

/** @typedef {{ path: string, file: File }} Found */
/** @typedef {{ text: string, starts: number[], names: string[], bytes: number, left: number }} Folder with how many of its files are left out */

const LEFT_OUT = new Set([ // folders of what others wrote, or programs made
  "node_modules", "bower_components", "vendor", "site-packages", "venv", "env", "target", "dist", "build", "out", "coverage", "__pycache__",
]);
const OTHERS = /^(?:package-lock\.json|yarn\.lock|pnpm-lock\.yaml|Cargo\.lock|poetry\.lock|uv\.lock|.*\.min\.(?:js|css)|.*\.map)$/;

/** What is read of a folder. Tests have less. */
export const max = { files: 5000, bytes: 1_000_000, characters: 5_000_000 };

/** Lists the files in a folder that was dropped. @param {FileSystemDirectoryEntry} entry @returns {Promise<Found[]>} */
export async function filesIn(entry) {
  /** @type {Found[]} */
  const found = [];
  /** @type {FileSystemDirectoryEntry[]} */
  const left = [entry];
  for (let folder; (folder = left.pop()) && found.length < max.files;) {
    const reader = folder.createReader();
    for (let some; (some = await new Promise((resolve, reject) => { reader.readEntries(resolve, reject); })).length;) {
      for (const each of /** @type {any[]} */ (some)) {
        const path = each.fullPath.slice(entry.fullPath.length + 1);
        if (each.isDirectory) {
          if (isWanted(path)) left.push(each);
        } else found.push({ path, file: await new Promise((resolve, reject) => { each.file(resolve, reject); }) });
      }
    }
  }
  return found;
}

/** Gives the files of a folder that was chosen, with its name. @type {(files: File[]) => { name: string, found: Found[] }} */
export function chosenFolder(files) {
  const name = files[0].webkitRelativePath.split("/")[0];
  return { name, found: files.map((file) => ({ path: file.webkitRelativePath.slice(name.length + 1), file })) };
}

/** Whether no part of a path is of a kind that is left out. @param {string} path */
const isWanted = (path) => !path.split("/").some((part) => LEFT_OUT.has(part) || part.startsWith("."));

/** Reads the texts of a folder, by their paths. @type {(found: Found[], signal: AbortSignal) => Promise<Folder>} */
export async function textOfFolder(found, signal) {
  const wanted = found.filter(({ path }) => isWanted(path) && !OTHERS.test(path.split("/").at(-1) ?? ""));
  wanted.sort((a, b) => (a.path < b.path ? -1 : 1));
  /** @type {Folder} */
  const folder = { text: "", starts: [], names: [], bytes: 0, left: 0 };
  for (const { path, file } of wanted) {
    if (signal.aborted) break;
    const text = file.size <= max.bytes && folder.names.length < max.files ? await textOf(file) : undefined;
    if (!text?.trim() || folder.text.length + text.length > max.characters) {
      folder.left++;
      continue;
    }
    folder.starts.push(folder.text.length);
    folder.names.push(path);
    folder.bytes += file.size;
    folder.text += text.endsWith("\n") ? text : `${text}\n`;
  }
  return folder;
}

/** Reads a file's text; undefined where it is none. @param {File} file */
export async function textOf(file) {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
    return text.includes("\0") ? undefined : text;
  } catch {
    return undefined;
  }
}
