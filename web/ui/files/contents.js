// What attached files hold: pictures, made smaller where they are large; the text of PDF files, by pdf.js in a worker of its
// own, which is ended whatever the file does to it; and the texts of folders, one after the other, as one file.

import { library, siteFacts } from "../lazy.js";
import { t } from "../wording.js";

// ---- images

const MOST_EDGE = 2048; // pixels: models see no more
const MOST_BYTES = 500_000; // of a file that is kept as it is: chats are to stay small
const QUALITY = 0.9;

/**
 * Gives an image as a data: address; rejects in words.
 * @param {File} file
 */
export async function imageOf(file) {
  const bitmap = await createImageBitmap(file).catch(() => { throw new Error(t`this browser cannot show it as an image`); });
  const { width, height } = bitmap;
  const share = Math.min(1, MOST_EDGE / Math.max(width, height));
  if (share === 1 && file.size <= MOST_BYTES) {
    bitmap.close();
    const type = file.type || `image/${file.name.split(".").at(-1)?.toLowerCase().replace("jpg", "jpeg")}`;
    return addressOf(new Blob([file], { type }));
  }
  const canvas = new OffscreenCanvas(Math.max(1, Math.round(width * share)), Math.max(1, Math.round(height * share)));
  const context = /** @type {OffscreenCanvasRenderingContext2D} */ (canvas.getContext("2d"));
  context.imageSmoothingQuality = "high";
  context.fillStyle = "white"; // behind what is transparent
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  bitmap.close();
  return addressOf(await canvas.convertToBlob({ type: "image/jpeg", quality: QUALITY }));
}

/** @type {(blob: Blob) => Promise<string>} */
const addressOf = (blob) => new Promise((resolve, reject) => {
  const reader = new FileReader();
  reader.onload = () => resolve(/** @type {string} */ (reader.result));
  reader.onerror = () => reject(reader.error);
  reader.readAsDataURL(blob);
});

// ---- PDF files

/** What is read of a file. Tests have less. */
export const pdfLimits = { pages: 1000, characters: 5_000_000, milliseconds: 60_000 };

const loadPdf = library("pdf.js");

/** @typedef {{ text: string, starts: number[], pages: number }} PdfText with where in it each page that was read begins, and how many there are */

/**
 * As much as the bounds let; rejects in words.
 * @param {File} file
 * @param {AbortSignal} signal
 */
export async function textOfPdf(file, signal) {
  const pdf = await loadPdf();
  const { vendor } = await siteFacts();
  const name = new URL(`${vendor}pdf-worker.js`, document.baseURI).href;
  const port = new Worker(new URL("../../pdf_worker.js", import.meta.url), { type: "module", name });
  /** @type {PdfText} */
  const found = { text: "", starts: [], pages: 0 };
  const ended = Promise.withResolvers();
  const timer = setTimeout(ended.resolve, pdfLimits.milliseconds);
  signal.addEventListener("abort", ended.resolve);
  try {
    await Promise.race([readIn(pdf, port, file, found), ended.promise]);
  } catch (error) {
    throw inWords(/** @type {Error} */ (error));
  } finally {
    clearTimeout(timer);
    port.terminate();
  }
  if (!found.text.trim()) throw new Error(found.starts.length ? t`it contains no text: it may be a scan, and inpage cannot read scanned pages` : t`reading it takes too long`);
  return found;
}

/**
 * Reads the file in the worker, once pdf.js has arrived there.
 * @type {(pdf: typeof import("pdfjs-dist"), port: Worker, file: File, found: PdfText) => Promise<void>}
 */
async function readIn(pdf, port, file, found) {
  const isMissing = await new Promise((resolve) => {
    port.onmessage = ({ data }) => resolve(data.isMissing);
    port.onerror = () => resolve(true);
  });
  port.onmessage = null;
  if (isMissing) throw new Error(t`the PDF reader could not be loaded: check the connection to this site, then attach it again`);
  const worker = new pdf.PDFWorker({ port: /** @type {any} */ (port), verbosity: 0 });
  const data = new Uint8Array(await file.arrayBuffer());
  const { promise } = pdf.getDocument({ data, worker, verbosity: 0, isEvalSupported: false, disableFontFace: true, useSystemFonts: false, useWorkerFetch: false });
  await read(await promise, found);
}

/**
 * @param {import("pdfjs-dist").PDFDocumentProxy} document
 * @param {PdfText} found
 */
async function read(document, found) {
  found.pages = document.numPages;
  for (let number = 1; number <= Math.min(document.numPages, pdfLimits.pages) && found.text.length < pdfLimits.characters; number++) {
    const room = pdfLimits.characters - found.text.length;
    const text = await document.getPage(number).then((page) => textOfPage(page, room)).catch(() => ""); // one that is broken hides no other
    found.starts.push(found.text.length);
    found.text += `${text.slice(0, room)}\n\n`;
  }
}

/**
 * @param {import("pdfjs-dist").PDFPageProxy} page
 * @param {number} room
 */
async function textOfPage(page, room) {
  const reader = page.streamTextContent().getReader();
  let text = "";
  for (let chunk; text.length < room && !(chunk = await reader.read()).done;) {
    for (const { str = "", hasEOL } of chunk.value.items) text += hasEOL ? `${str}\n` : str;
  }
  reader.cancel(new Error("enough")).catch(() => {});
  return text.trim();
}

/** @param {Error} error */
function inWords(error) {
  if (error.name === "PasswordException") return new Error(t`it is protected by a password: save it without one, then attach it`);
  return /Exception$/.test(error.name) ? new Error(t`it is damaged, or not a PDF file`) : error;
}

// ---- folders

/** @typedef {{ path: string, file: File }} FolderFile */
/** @typedef {{ text: string, starts: number[], names: string[], bytes: number, left: number }} Folder with how many of its files are left out */

const LEFT_OUT = new Set([ // folders of what others wrote, or programs made
  "node_modules", "bower_components", "vendor", "site-packages", "venv", "env", "target", "dist", "build", "out", "coverage", "__pycache__",
]);
const OTHERS = /^(?:package-lock\.json|yarn\.lock|pnpm-lock\.yaml|Cargo\.lock|poetry\.lock|uv\.lock|.*\.min\.(?:js|css)|.*\.map)$/;

/** What is read of a folder. Tests have less. */
export const folderLimits = { files: 5000, bytes: 1_000_000, characters: 5_000_000 };

/** Lists the files in a folder that was dropped. @param {FileSystemDirectoryEntry} entry @returns {Promise<FolderFile[]>} */
export async function filesIn(entry) {
  /** @type {FolderFile[]} */
  const found = [];
  /** @type {FileSystemDirectoryEntry[]} */
  const left = [entry];
  for (let folder; (folder = left.pop()) && found.length < folderLimits.files;) {
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

/** Gives the files of a folder that was chosen, with its name. @type {(files: File[]) => { name: string, found: FolderFile[] }} */
export function chosenFolder(files) {
  const name = files[0].webkitRelativePath.split("/")[0];
  return { name, found: files.map((file) => ({ path: file.webkitRelativePath.slice(name.length + 1), file })) };
}

/** Whether no part of a path is of a kind that is left out. @param {string} path */
const isWanted = (path) => !path.split("/").some((part) => LEFT_OUT.has(part) || part.startsWith("."));

/** Reads the texts of a folder, by their paths. @type {(found: FolderFile[], signal: AbortSignal) => Promise<Folder>} */
export async function textOfFolder(found, signal) {
  const wanted = found.filter(({ path }) => isWanted(path) && !OTHERS.test(path.split("/").at(-1) ?? ""));
  wanted.sort((a, b) => (a.path < b.path ? -1 : 1));
  /** @type {Folder} */
  const folder = { text: "", starts: [], names: [], bytes: 0, left: 0 };
  for (const { path, file } of wanted) {
    if (signal.aborted) break;
    const text = file.size <= folderLimits.bytes && folder.names.length < folderLimits.files ? await textOf(file) : undefined;
    if (!text?.trim() || folder.text.length + text.length > folderLimits.characters) {
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
