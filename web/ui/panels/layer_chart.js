// A chart of values layer by layer: read layer by layer with the pointer or the arrow keys.

import { draw } from "./room.js";

/**
 * A line of the chart; it has gaps where values are not finite.
 * @typedef {object} Line
 * @property {ArrayLike<number>} values one for each layer
 * @property {string} [colour] without one it is one of many in the background
 * @property {string} [name] for the legend
 * @property {boolean} [isBold]
 */

const [LEFT, RIGHT, TOP, BELOW] = [40, 12, 8, 20]; // what stands around the lines
const LEGEND = 18; // above them

/**
 * @param {object} given
 * @param {string} given.label for those who cannot see it
 * @param {string[]} given.layers their names: some stand below
 * @param {Line[]} given.lines
 * @param {[number, number]} given.range of the values, from the bottom to the top
 * @param {{ at: number, text: string }[]} given.marks of the vertical axis
 * @param {[number, number]} given.size
 * @param {string} [given.kind] a class
 * @param {(layer: number) => void} [given.tell] shows what there is to say of a layer
 */
export function layerChart({ label, layers, lines, range, marks, size, kind = "", tell }) {
  const [width, height] = size;
  const named = lines.filter(({ name }) => name);
  const top = TOP + (named.length ? LEGEND : 0);
  const last = Math.max(1, layers.length - 1);
  const x = (/** @type {number} */ layer) => LEFT + (layer / last) * (width - LEFT - RIGHT);
  const y = (/** @type {number} */ value) => top + (1 - (value - range[0]) / (range[1] - range[0])) * (height - top - BELOW);
  const paths = lines.map(({ values, colour, isBold }) => draw("path", {
    d: pathOf(values), fill: "none", "stroke-linejoin": "round", class: !colour && "one-of-many", stroke: colour, "stroke-width": colour && (isBold ? 2.5 : 1.5),
  }));
  const axis = marks.flatMap(({ at, text }) => [
    draw("line", { x1: LEFT, x2: width - RIGHT, y1: y(at), y2: y(at), class: "grid" }),
    draw("text", { x: LEFT - 5, y: y(at) + 3.5, class: "axis" }, text),
  ]);
  const every = Math.ceil(layers.length / Math.max(2, Math.floor((width - LEFT) / 44)));
  const names = layers.map((name, layer) => layer % every === 0 && draw("text", { x: x(layer), y: height - 5, class: "axis-name" }, name));
  let from = LEFT;
  const legend = named.flatMap(({ name, colour }) => {
    const place = from;
    from += 24 + 6.2 * (name ?? "").length;
    return [draw("rect", { x: place, y: 4, width: 10, height: 10, rx: 2, fill: colour }), draw("text", { x: place + 14, y: 13, class: "layer" }, name)];
  });
  const cursor = draw("line", { y1: top, y2: height - BELOW, class: "cursor", visibility: "hidden" });
  let here = -1;
  return draw(
    "svg", {
      viewBox: `0 0 ${width} ${height}`, class: `inside-drawing inside-chart ${kind}`, role: "img", "aria-label": label,
      ...(tell ? { tabindex: 0, onpointermove: point, onpointerdown: point, onkeydown: move } : {}),
    },
    ...axis, ...names, ...paths, ...legend, cursor,
  );

  /** @param {ArrayLike<number>} values */
  function pathOf(values) {
    let isDrawn = false;
    return Array.from(values, (value, layer) => {
      const command = isDrawn ? "L" : "M";
      isDrawn = Number.isFinite(value);
      return isDrawn ? `${command}${x(layer).toFixed(1)},${y(value).toFixed(1)}` : "";
    }).join("");
  }

  /** @param {number} layer */
  function go(layer) {
    here = Math.min(Math.max(layer, 0), layers.length - 1);
    for (const end of ["x1", "x2"]) cursor.setAttribute(end, String(x(here)));
    cursor.setAttribute("visibility", "visible");
    tell?.(here);
  }

  /** @param {PointerEvent} event */
  function point({ clientX, currentTarget }) {
    const { left, width: shown } = /** @type {Element} */ (currentTarget).getBoundingClientRect();
    go(Math.round((((clientX - left) * (width / shown) - LEFT) / (width - LEFT - RIGHT)) * last));
  }

  /** @param {KeyboardEvent} event */
  function move(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }[event.key];
    if (!step) return;
    event.preventDefault();
    go(here + step);
  }
}
