// Images that go with messages: read, made smaller where they are large, and kept as data: addresses.

import { t } from "./wording.js";

export const KINDS = /^image\/(png|jpeg|webp|gif)$/;
const MOST_EDGE = 2048; // pixels: models see no more
const MOST_BYTES = 500_000; // of a file that is kept as it is: chats are to stay small
const QUALITY = 0.9;

/**
 * Gives an image as a data: address; rejects in words.
 * @param {File} file
 */
export async function imageOf(file) {
  const bitmap = await createImageBitmap(file).catch(() => { throw new Error(t`it is no image that this browser can show`); });
  const { width, height } = bitmap;
  const share = Math.min(1, MOST_EDGE / Math.max(width, height));
  if (share === 1 && file.size <= MOST_BYTES) {
    bitmap.close();
    return addressOf(file);
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
