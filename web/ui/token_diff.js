// What two lists of tokens have in common, and where they differ: Myers's algorithm.

/** @typedef {{ same: boolean, left: [from: number, to: number], right: [from: number, to: number] }} Hunk */

const MOST = 500; // tokens that differ: beyond, the rest counts as different

/**
 * Finds the hunks of two lists, in order: what both have, and what only one has.
 * @template Value
 * @param {Value[]} left
 * @param {Value[]} right
 */
export function differences(left, right) {
  let start = 0;
  let ends = 0;
  while (start < left.length && start < right.length && left[start] === right[start]) start++;
  while (ends < left.length - start && ends < right.length - start && left.at(-1 - ends) === right.at(-1 - ends)) ends++;
  const [a, b] = [left, right].map((each) => each.slice(start, each.length - ends));
  /** @type {Hunk[]} */
  const hunks = [];
  const add = (/** @type {boolean} */ same, /** @type {number} */ across, /** @type {number} */ down) => {
    if (!across && !down) return;
    const last = hunks.at(-1);
    const [x, y] = [last?.left[1] ?? 0, last?.right[1] ?? 0];
    if (last?.same === same) [last.left[1], last.right[1]] = [x + across, y + down];
    else hunks.push({ same, left: [x, x + across], right: [y, y + down] });
  };
  add(true, start, start);
  for (const [same, across, down] of steps(a, b)) add(same, across, down);
  add(true, ends, ends);
  return hunks;
}

/**
 * Gives the shortest way from one list to the other: steps along both, or along one of them.
 * @template Value
 * @param {Value[]} a
 * @param {Value[]} b
 * @returns {[same: boolean, across: number, down: number][]}
 */
function steps(a, b) {
  const far = new Map([[1, 0]]); // diagonal → how far along `a`
  /** @type {Map<number, number>[]} */
  const trace = [];
  for (let depth = 0; depth <= Math.min(MOST, a.length + b.length); depth++) {
    trace.push(new Map(far));
    for (let diagonal = -depth; diagonal <= depth; diagonal += 2) {
      let x = isDown(far, diagonal, depth) ? far.get(diagonal + 1) ?? 0 : (far.get(diagonal - 1) ?? 0) + 1;
      while (x < a.length && x - diagonal < b.length && a[x] === b[x - diagonal]) x++;
      far.set(diagonal, x);
      if (x >= a.length && x - diagonal >= b.length) return back(trace, a.length, b.length);
    }
  }
  return [[false, a.length, b.length]];
}

/** @type {(far: Map<number, number>, diagonal: number, depth: number) => boolean} */
const isDown = (far, diagonal, depth) => diagonal === -depth
  || (diagonal !== depth && (far.get(diagonal - 1) ?? -1) < (far.get(diagonal + 1) ?? -1));

/** @type {(trace: Map<number, number>[], x: number, y: number) => [same: boolean, across: number, down: number][]} */
function back(trace, x, y) {
  /** @type {[boolean, number, number][]} */
  const found = [];
  for (let depth = trace.length - 1; depth >= 0 && (x > 0 || y > 0); depth--) {
    const down = isDown(trace[depth], x - y, depth);
    const before = x - y + (down ? 1 : -1);
    const fromX = depth ? trace[depth].get(before) ?? 0 : 0;
    const fromY = depth ? fromX - before : 0;
    const along = depth ? Math.min(x - fromX - (down ? 0 : 1), y - fromY - (down ? 1 : 0)) : x;
    if (along) found.push([true, along, along]);
    if (depth) found.push([false, down ? 0 : 1, down ? 1 : 0]);
    [x, y] = [fromX, fromY];
  }
  return found.reverse();
}
