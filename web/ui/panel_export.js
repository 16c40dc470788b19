// What a panel shows, as files: pictures with the styles that they have in the page, data as JSON or CSV.

import { giveFile } from "./chat_files.js";

const STYLES = "color dominant-baseline fill fill-opacity font-family font-size font-style font-weight letter-spacing opacity paint-order shape-rendering stroke stroke-dasharray stroke-linecap stroke-linejoin stroke-opacity stroke-width text-anchor visibility".split(" ");
const DENSITY = 2; // pixels of a picture for one of the page

/** @type {(kind: string, name: string, given: any) => Promise<void>} */
export async function exportAs(kind, name, given) {
  if (!given) return;
  if (kind === "svg") giveFile(`${name}.svg`, svgText(given), "image/svg+xml");
  if (kind === "png") giveFile(`${name}.png`, await pngOf(given), "image/png");
  if (kind === "json") giveFile(`${name}.json`, JSON.stringify(given, plain, 1), "application/json");
  if (kind === "csv") giveFile(`${name}.csv`, csvOf(given), "text/csv");
}

/** Arrays of numbers are lists; what is not finite is a text. @type {(key: string, value: any) => any} */
function plain(key, value) {
  if (ArrayBuffer.isView(value)) return Array.from(/** @type {any} */ (value));
  return typeof value === "bigint" || (typeof value === "number" && !Number.isFinite(value)) ? String(value) : value;
}

/** @param {Record<string, any>[]} rows */
function csvOf(rows) {
  const names = [...new Set(rows.flatMap(Object.keys))];
  const cell = (/** @type {any} */ value) => {
    const text = typeof value === "object" && value ? JSON.stringify(value, plain) : String(value ?? "");
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return `${[names, ...rows.map((row) => names.map((name) => row[name]))].map((row) => row.map(cell).join(",")).join("\r\n")}\r\n`;
}

/** A drawing that stands alone, on the page's ground. @param {SVGSVGElement} drawing */
function svgText(drawing) {
  const copy = /** @type {SVGSVGElement} */ (drawing.cloneNode(true));
  const own = [drawing, ...drawing.querySelectorAll("*")];
  [copy, ...copy.querySelectorAll("*")].forEach((element, at) => {
    const computed = getComputedStyle(own[at]);
    for (const name of STYLES) element.setAttribute(name, computed.getPropertyValue(name));
    for (const name of ["class", "style", "tabindex"]) element.removeAttribute(name);
  });
  const { width, height } = drawing.getBoundingClientRect();
  const [x, y, w, h] = drawing.getAttribute("viewBox")?.split(/[\s,]+/) ?? ["0", "0", `${width}`, `${height}`];
  copy.setAttribute("viewBox", `${x} ${y} ${w} ${h}`);
  copy.setAttribute("width", `${width}`);
  copy.setAttribute("height", `${height}`);
  const ground = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  const place = { x, y, width: w, height: h, fill: getComputedStyle(document.body).backgroundColor };
  for (const [name, value] of Object.entries(place)) ground.setAttribute(name, value);
  copy.prepend(ground);
  return new XMLSerializer().serializeToString(copy);
}

/** @param {SVGSVGElement | HTMLCanvasElement} drawing */
async function pngOf(drawing) {
  const canvas = drawing instanceof HTMLCanvasElement ? drawing : await paintedOf(drawing);
  return new Promise((/** @type {(blob: any) => void} */ resolve) => { canvas.toBlob(resolve); });
}

/** @param {SVGSVGElement} drawing */
async function paintedOf(drawing) {
  const image = new Image();
  image.src = `data:image/svg+xml,${encodeURIComponent(svgText(drawing))}`;
  await image.decode();
  const { width, height } = drawing.getBoundingClientRect();
  const canvas = Object.assign(document.createElement("canvas"), { width: DENSITY * width, height: DENSITY * height });
  canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
  return canvas;
}
