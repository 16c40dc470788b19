// A sparkline of surprise: −log p of each token along a text. It leads to the token.

/** @import { ScoredToken } from "./token_scores.js" */

import { surpriseOf, visible } from "./token_scores.js";
import { decimal, t } from "./wording.js";

const [WIDTH, HEIGHT] = [600, 40]; // of the picture, in its own units
const [LEAST_BITS, MOST_BITS] = [6, 16]; // at its top: what is rarer still ends there
const SVG = "http://www.w3.org/2000/svg";

/**
 * Draws the surprise along a text. Gives what marks the token that is looked at.
 * @type {(element: HTMLElement, tokens: ScoredToken[], goTo: (at: number) => void) => { mark: (at: number) => void }}
 */
export function sparkline(element, tokens, goTo) {
  const count = tokens.length;
  const bits = tokens.map(surpriseOf);
  const top = Math.min(MOST_BITS, bits.reduce((most, each) => Math.max(most, each), LEAST_BITS));
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("aria-hidden", "true");
  const columns = Math.min(count, WIDTH);
  const heights = Array.from({ length: columns }, (_, column) => Math.min(top, bits[mostIn(column)]) / top * (HEIGHT - 2));
  const step = WIDTH / columns;
  const area = heights.map((height, at) => `L${(at * step).toFixed(1)} ${(HEIGHT - height).toFixed(1)}h${step.toFixed(2)}`).join("");
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", `M0 ${HEIGHT}${area}L${WIDTH} ${HEIGHT}z`);
  const line = document.createElementNS(SVG, "rect");
  line.setAttribute("class", "here");
  line.setAttribute("height", String(HEIGHT));
  svg.append(path, line);
  element.replaceChildren(svg);
  element.ariaValueMax = String(count);
  mark(0);
  delete element.dataset.marked;

  /** The most surprising token of a column. @param {number} column */
  function mostIn(column) {
    const [from, to] = [column, column + 1].map((each) => Math.floor(each * count / columns));
    let most = from;
    for (let at = from; at < to; at++) if (bits[at] > bits[most]) most = at;
    return most;
  }

  /** @param {number} at */
  function mark(at) {
    const width = Math.max(WIDTH / count, 2);
    line.setAttribute("x", String(Math.min(at / count * WIDTH, WIDTH - width)));
    line.setAttribute("width", String(width));
    element.dataset.marked = "";
    element.ariaValueNow = String(at + 1);
    element.ariaValueText = t`${visible(tokens[at])}: ${decimal(bits[at], 1)} bits`;
  }

  element.onclick = ({ clientX }) => {
    const { left, width } = element.getBoundingClientRect();
    const column = Math.floor((clientX - left) / width * columns);
    goTo(mostIn(Math.max(0, Math.min(columns - 1, column))));
  };
  element.onkeydown = (event) => {
    const at = Number(element.ariaValueNow) - 1;
    const steps = /** @type {Record<string, number>} */ ({ ArrowLeft: at - 1, ArrowDown: at - 1, ArrowRight: at + 1, ArrowUp: at + 1, Home: 0, End: count - 1, PageUp: at + 10, PageDown: at - 10 });
    if (event.key === "Enter") goTo(at);
    else if (event.key in steps) mark(Math.max(0, Math.min(count - 1, steps[event.key])));
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return { mark };
}
