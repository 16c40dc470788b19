// Charts over a model's layers, read with the pointer or the arrow keys: a heat map of layers × positions, cell by cell, and
// lines of values, layer by layer.

import { colourAt, draw, isLight } from "./room.js";

/** @typedef {{ text: string, isMarked?: boolean }} Head what stands above a column */
/** @typedef {{ share: number, text: string, words: string }} Cell its colour (a share is not finite where there is none), and what it says when it is pointed at */

const [WIDTH, HEIGHT, BESIDE, HEAD] = [58, 17, 30, 16]; // of a cell, and what stands beside and above them

/**
 * Draws the first row at the bottom, as layers are counted.
 * @param {object} given
 * @param {string} given.label for those who cannot see it
 * @param {string[]} given.rows
 * @param {Head[][]} given.heads lines of what stands above each column
 * @param {(row: number, column: number) => Cell} given.cell
 * @param {[number, number]} given.at where the arrow keys begin: row and column
 * @param {(words: string) => void} given.tell shows a cell's words
 * @param {(row: number, column: number) => void} [given.choose]
 */
export function heatMap({ label, rows, heads, cell, at, tell, choose }) {
  const columns = heads[0].length;
  const above = 4 + heads.length * HEAD;
  let [row, column] = at;
  const cells = rows.map((name, line) => heads[0].map((_, place) => {
    const { share, text, words } = cell(line, place);
    const [x, y] = [place * WIDTH, above + (rows.length - 1 - line) * HEIGHT];
    const isKnown = Number.isFinite(share);
    return draw(
      "g", { class: "cell", "data-at": line * columns + place },
      draw("rect", { x, y, width: WIDTH - 1, height: HEIGHT - 1, ...(isKnown ? { fill: colourAt(share) } : { class: "unknown" }) }),
      draw("text", { x: x + WIDTH / 2 - 0.5, y: y + 12, class: isKnown && (isLight(share) ? "on-light" : "on-dark") }, text),
      draw("title", {}, words),
    );
  }));
  const [width, height] = [columns * WIDTH + BESIDE, above + rows.length * HEIGHT];
  const names = rows.map((name, line) => draw("text", { x: columns * WIDTH + 5, y: above + (rows.length - 1 - line) * HEIGHT + 12, class: "layer" }, name));
  const titles = heads.flatMap((line, down) => line.map(({ text, isMarked }, place) => (
    draw("text", { x: place * WIDTH + WIDTH / 2, y: 13 + down * HEAD, class: isMarked ? "head chosen" : "head" }, text)
  )));
  return draw(
    "svg", {
      viewBox: `0 0 ${width} ${height}`, width, height, class: "inside-drawing", role: "img", tabindex: 0, "aria-label": label,
      onclick: (event) => { if (point(event)) pick(); },
      onpointermove: (event) => { if (point(event)) say(); },
      onkeydown: move,
    },
    ...titles, ...names, ...cells.flat(),
  );

  /** Goes to the cell that an event is about. @param {Event} event */
  function point(event) {
    const place = /** @type {Element} */ (event.target).closest(".cell")?.getAttribute("data-at");
    if (!place) return false;
    go(Math.floor(Number(place) / columns), Number(place) % columns);
    return true;
  }

  /** @param {number} line @param {number} place */
  function go(line, place) {
    cells[row][column].classList.remove("here");
    [row, column] = [line, place];
    cells[row][column].classList.add("here");
  }

  function say() {
    tell(cell(row, column).words);
  }

  function pick() {
    say();
    choose?.(row, column);
  }

  /** @param {KeyboardEvent} event */
  function move(event) {
    const steps = { ArrowUp: [1, 0], ArrowDown: [-1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    const [up, right] = steps[/** @type {keyof typeof steps} */ (event.key)] ?? [0, 0];
    const isChosen = event.key === "Enter" || event.key === " ";
    if (!up && !right && !isChosen) return;
    event.preventDefault();
    go(Math.min(Math.max(row + up, 0), rows.length - 1), Math.min(Math.max(column + right, 0), columns - 1));
    cells[row][column].scrollIntoView({ block: "nearest", inline: "nearest" });
    if (isChosen) pick();
    else say();
  }
}

// ---- lines of values

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
