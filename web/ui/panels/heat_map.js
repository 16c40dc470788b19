// A heat map of layers × positions: read cell by cell with the pointer or the arrow keys.

import { colourAt, isLight } from "../colours.js";
import { draw } from "./room.js";

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
