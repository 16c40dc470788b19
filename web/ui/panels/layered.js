// A drawing of boxes in rows, each below what it follows from: a small layered layout.

/** @typedef {{ key: string, width: number, height: number }} Box */
/** @typedef {{ from: string, to: string }} Line */
/** @typedef {{ key: string, row: number, width: number, x: number, above: Cell[], below: Cell[] }} Cell */

const [SWEEPS, BEND] = [6, 14]; // how often rows are sorted; the width of a line that passes a row

/**
 * Gives the middle of each box and its top, and a path for each line.
 * @param {Box[]} boxes
 * @param {Line[]} lines
 * @param {{ row: number, gap: number }} sizes
 */
export function layers(boxes, lines, { row: rowHeight, gap }) {
  const heights = new Map(boxes.map(({ key, height }) => [key, height]));
  const rank = ranks(boxes, lines);
  /** @type {Map<string, Cell>} */
  const cells = new Map(boxes.map(({ key, width }) => [key, { key, row: rank.get(key) ?? 0, width, x: 0, above: [], below: [] }]));
  /** @type {Cell[][]} */
  const rows = [];
  for (const cell of cells.values()) (rows[cell.row] ??= []).push(cell);
  const chains = lines.map(({ from, to }) => chain(/** @type {Cell} */ (cells.get(from)), /** @type {Cell} */ (cells.get(to)), rows));
  const filled = Array.from(rows, (cellsOfRow) => cellsOfRow ?? []);
  for (let sweep = 0; sweep < SWEEPS; sweep++) sort(filled, sweep % 2 === 0);
  const width = place(filled, gap);
  const places = new Map([...cells].map(([key, { x, row }]) => [key, { x, y: gap + row * rowHeight }]));
  const paths = chains.map((found) => pathOf(found, heights, rowHeight, gap));
  return { places, paths, width, height: 2 * gap + (filled.length - 1) * rowHeight + Math.max(...(filled.at(-1) ?? []).map(({ key }) => heights.get(key) ?? 0), 0) };
}

/** The row of each box: below all that it follows from; what only begins a line stands right above its end. @param {Box[]} boxes @param {Line[]} lines */
function ranks(boxes, lines) {
  const found = new Map(boxes.map(({ key }) => [key, 0]));
  const at = (/** @type {string} */ key) => found.get(key) ?? 0;
  for (let round = 0; round < boxes.length; round++) {
    const moved = lines.filter(({ from, to }) => at(to) < at(from) + 1);
    for (const { from, to } of moved) found.set(to, Math.max(at(to), at(from) + 1));
    if (!moved.length) break;
  }
  const ends = new Set(lines.map(({ to }) => to));
  for (const { key } of boxes) {
    const followers = lines.filter(({ from }) => from === key).map(({ to }) => at(to));
    if (!ends.has(key) && followers.length) found.set(key, Math.min(...followers) - 1);
  }
  return found;
}

/** A line's cells from row to row, new ones where it passes a row. @type {(from: Cell, to: Cell, rows: Cell[][]) => Cell[]} */
function chain(from, to, rows) {
  const found = [from];
  for (let row = from.row + 1; row < to.row; row++) {
    /** @type {Cell} */
    const bend = { key: "", row, width: BEND, x: 0, above: [], below: [] };
    (rows[row] ??= []).push(bend);
    found.push(bend);
  }
  found.push(to);
  found.slice(1).forEach((cell, at) => { cell.above.push(found[at]); found[at].below.push(cell); });
  return found;
}

/** @type {(rows: Cell[][], isDown: boolean) => void} */
function sort(rows, isDown) {
  for (const cells of rows) cells.forEach((cell, at) => { cell.x = at - (cells.length - 1) / 2; });
  for (const cells of isDown ? rows : [...rows].reverse()) {
    const wanted = new Map(cells.map((cell) => [cell, mean(isDown ? cell.above : cell.below) ?? cell.x]));
    cells.sort((a, b) => (wanted.get(a) ?? 0) - (wanted.get(b) ?? 0));
    cells.forEach((cell, at) => { cell.x = at - (cells.length - 1) / 2; });
  }
}

/** @param {Cell[]} cells */
const mean = (cells) => (cells.length ? cells.reduce((sum, { x }) => sum + x, 0) / cells.length : undefined);

/** Puts each row around the middle, as near to its neighbours as its order allows. @type {(rows: Cell[][], gap: number) => number} */
function place(rows, gap) {
  for (const cells of rows) spread(cells, gap, () => 0);
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const isDown = sweep % 2 === 0;
    for (const cells of isDown ? rows : [...rows].reverse()) spread(cells, gap, (cell) => mean(isDown ? cell.above : cell.below) ?? mean(isDown ? cell.below : cell.above) ?? cell.x);
  }
  const every = rows.flat();
  const least = Math.min(...every.map(({ x, width }) => x - width / 2));
  for (const cell of every) cell.x += gap - least;
  return Math.max(...every.map(({ x, width }) => x + width / 2)) + gap;
}

/** @type {(cells: Cell[], gap: number, wantedOf: (cell: Cell) => number) => void} */
function spread(cells, gap, wantedOf) {
  const wanted = cells.map(wantedOf);
  const apart = (/** @type {number} */ at) => (cells[at - 1].width + cells[at].width) / 2 + gap;
  const right = [...wanted];
  for (let at = 1; at < cells.length; at++) right[at] = Math.max(right[at], right[at - 1] + apart(at));
  const left = [...wanted];
  for (let at = cells.length - 2; at >= 0; at--) left[at] = Math.min(left[at], left[at + 1] - apart(at + 1));
  cells.forEach((cell, at) => { cell.x = (left[at] + right[at]) / 2; });
}

/** @type {(cells: Cell[], heights: Map<string, number>, rowHeight: number, gap: number) => string} */
function pathOf(cells, heights, rowHeight, gap) {
  const top = (/** @type {Cell} */ { row }) => gap + row * rowHeight;
  let d = "";
  cells.slice(1).forEach((to, at) => {
    const from = cells[at];
    const [y1, y2] = [top(from) + (heights.get(from.key) ?? 0), top(to)];
    const bend = (y2 - y1) / 2;
    d += `${at ? "" : `M${from.x} ${y1}`}${from.key ? "" : `L${from.x} ${y1}`}C${from.x} ${y1 + bend} ${to.x} ${y2 - bend} ${to.x} ${y2}`;
  });
  return d;
}
