// Files that are attached, dropped or pasted: models and adapters are for models/files.js; what goes with a message, and chats,
// for attaching.js. A message is sent once it is known to fit.

import { shown } from "../chats.js";
import { files as attached, isNearLimit, send } from "../composer.js";
import { page } from "../elements.js";
import { on } from "../events.js";
import { script } from "../lazy.js";
import { arrived } from "../notices.js";

const MODEL = /\.(gguf|pte|ptd|safetensors|npz)$/i;

const { attachFiles, attachFolder, composer, draft, dropZone, takePhoto } = page;
const loadAttaching = script(() => import("./attaching.js"));
const loadViews = script(() => import("./views.js"));
const loadModelFiles = script(() => import("../models/files.js"));

/** @type {(files: File[], entries?: (FileSystemEntry | null)[]) => Promise<void>} */
const attach = async (files, entries) => (await arrived(loadAttaching()))?.attach(files, entries);

for (const chooser of [attachFiles, attachFolder, takePhoto]) {
  chooser.onchange = () => {
    attach([...chooser.files ?? []]); // the browser takes the list back
    chooser.value = "";
  };
}
page.attach.hidden = false;
on("fileschange", async () => (await arrived(loadAttaching()))?.showFiles());
on("answersearched", async (article) => (await arrived(loadViews()))?.showQuotes(article));
on("filesshown", async ({ article, files }) => (await arrived(loadViews()))?.show(article, files));

composer.onsubmit = async (/** @type {SubmitEvent} */ event) => {
  event.preventDefault();
  const chat = shown;
  const isRefused = isNearLimit() && (await (await arrived(loadAttaching()))?.isRefused() ?? attached.length > 0);
  if (!isRefused && chat === shown) send();
};

draft.onpaste = (/** @type {ClipboardEvent} */ event) => {
  const { files, types } = /** @type {DataTransfer} */ (event.clipboardData);
  const pasted = [...files].filter(({ type }) => !types.includes("text/plain") || !type.startsWith("image/")); // cells come as a picture, too
  if (!pasted.length) return;
  event.preventDefault();
  attach(pasted);
};

// ---- dropping

/** @param {DataTransfer | null} transfer */
const hasFiles = (transfer) => !!transfer?.types.includes("Files");

let inside = 0; // elements that a drag has entered and not left
addEventListener("dragenter", ({ dataTransfer }) => {
  if (hasFiles(dataTransfer)) inside++;
  dropZone.hidden = !inside;
});
addEventListener("dragleave", ({ dataTransfer }) => {
  if (hasFiles(dataTransfer)) inside = Math.max(0, inside - 1);
  dropZone.hidden = !inside;
});
addEventListener("dragover", (event) => { if (hasFiles(event.dataTransfer)) event.preventDefault(); });
addEventListener("drop", (event) => {
  inside = 0;
  dropZone.hidden = true;
  const { files, items } = /** @type {DataTransfer} */ (event.dataTransfer);
  const dropped = [...files]; // the browser takes the lists back
  if (!dropped.length || event.defaultPrevented) return; // but a text, say; or a panel took them
  event.preventDefault();
  if (!dropped.some(({ name }) => MODEL.test(name))) attach(dropped, [...items].map((item) => item.webkitGetAsEntry()));
  else openModelFiles(dropped, [...items].map((item) => /** @type {any} */ (item).getAsFileSystemHandle?.()));
});

/** Shows the adapters of the model, once it has some. */
function showAdapters() {
  const adapters = inpage.loaded?.adapters ?? [];
  if (adapters.length || !page.adapters.hidden) loadModelFiles().then((modelFiles) => modelFiles.showAdapters(adapters), () => {});
}

on("modelchange", () => {
  showAdapters();
  page.photograph.hidden = !inpage.loaded?.sees;
});

/** Opens models, by the script that knows them. @type {(files: File[], given?: Promise<FileSystemHandle | null>[]) => Promise<void>} */
async function openModelFiles(files, given) {
  const modelFiles = await arrived(loadModelFiles());
  await modelFiles?.openFiles(files, given);
}

page.files.onchange = () => {
  openModelFiles([...page.files.files ?? []]); // the browser takes the list back
  page.files.value = ""; // or the same file, chosen again, would be no change
};
