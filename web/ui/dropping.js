// Files that are dropped: chats are imported, text is attached to the message, models are opened.

import { take } from "./attaching.js";
import { lazy, page } from "./page.js";

const MODEL = /\.(gguf|pte|ptd|safetensors)$/i;
const opening = lazy(() => import("./opening.js"));
const { dropZone } = page;

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
  if (!dropped.length) return; // but a text, say
  event.preventDefault();
  if (!dropped.some(({ name }) => MODEL.test(name))) for (const file of dropped) take(file);
  else opening.openFiles(dropped, [...items].map((item) => /** @type {any} */ (item).getAsFileSystemHandle?.()));
});
page.files.onchange = () => {
  opening.openFiles([...page.files.files ?? []]); // the browser takes the list back
  page.files.value = ""; // or the same file, chosen again, would be no change
};
