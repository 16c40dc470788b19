// The text of PDF files, by pdf.js in a worker of its own, which is ended whatever the file does to it.

import { library, siteFacts } from "./lazy.js";
import { t } from "./wording.js";

/** What is read of a file. Tests have less. */
export const max = { pages: 1000, characters: 5_000_000, milliseconds: 60_000 };

const loadPdf = library("pdf.js");

/** @typedef {{ text: string, starts: number[], pages: number }} Found with where in it each page that was read begins, and how many there are */

/**
 * As much as the bounds let; rejects in words.
 * @param {File} file
 * @param {AbortSignal} signal
 */
export async function textOfPdf(file, signal) {
  const pdf = await loadPdf();
  const { vendor } = await siteFacts();
  const name = new URL(`${vendor}pdf-worker.js`, document.baseURI).href;
  const port = new Worker(new URL("../pdf_worker.js", import.meta.url), { type: "module", name });
  /** @type {Found} */
  const found = { text: "", starts: [], pages: 0 };
  const ended = Promise.withResolvers();
  const timer = setTimeout(ended.resolve, max.milliseconds);
  signal.addEventListener("abort", ended.resolve);
  try {
    await Promise.race([readIn(pdf, port, file, found), ended.promise]);
  } catch (error) {
    throw inWords(/** @type {Error} */ (error));
  } finally {
    clearTimeout(timer);
    port.terminate();
  }
  if (!found.text.trim()) throw new Error(found.starts.length ? t`it has no text: perhaps it is a scan, and inpage reads no pictures` : t`reading it takes too long`);
  return found;
}

/**
 * Reads the file in the worker, once pdf.js has arrived there.
 * @type {(pdf: typeof import("pdfjs-dist"), port: Worker, file: File, found: Found) => Promise<void>}
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
 * @param {Found} found
 */
async function read(document, found) {
  found.pages = document.numPages;
  for (let number = 1; number <= Math.min(document.numPages, max.pages) && found.text.length < max.characters; number++) {
    const room = max.characters - found.text.length;
    const text = await document.getPage(number).then((page) => textOf(page, room)).catch(() => ""); // one that is broken hides no other
    found.starts.push(found.text.length);
    found.text += `${text.slice(0, room)}\n\n`;
  }
}

/**
 * @param {import("pdfjs-dist").PDFPageProxy} page
 * @param {number} room
 */
async function textOf(page, room) {
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
