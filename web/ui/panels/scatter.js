// Points in a plane: they keep their size while one zooms and pans, and have labels where there is room for these.

import { draw } from "./room.js";

/**
 * How a point looks.
 * @typedef {object} Mark
 * @property {string} name what it is, for those who do not see it
 * @property {string} label beside it, where there is room
 * @property {string} colour
 * @property {number} shape
 * @property {boolean} [isDim] it is none of those that are looked for
 */

/**
 * What is told.
 * @typedef {object} Told
 * @property {(at: number) => void} look a point is pointed at; −1: none is
 * @property {(at: number) => void} choose a point is clicked, tapped or reached by keys; −1: none is
 * @property {(at: number) => void} enter it is clicked, or tapped again, or the Enter key is pressed
 */

// Around 0, 0, and as large to the eye as each other: colours are not all that tells kinds apart.
const SHAPES = ["M-4.6 0a4.6 4.6 0 1 0 9.2 0a4.6 4.6 0 1 0-9.2 0z", "M-4.1-4.1h8.2v8.2h-8.2z", "M0-5.4L5.2 3.9h-10.4z", "M0-5.8L5.8 0L0 5.8L-5.8 0z"];
const [MARGIN, NEAR, MOVED] = [26, 18, 4]; // pixels: around all points, to one that is pointed at, and of a hand that trembles
const [CELL, LINE, LETTER, WIDE_LETTER] = [4, 13, 6.3, 11]; // pixels: of the grid that shows what is free, and of labels
const [BESIDE, BESIDE_RING] = [8, 13]; // pixels from a point to its label
const BEFORE = { start: 0, middle: 0.5, end: 1 }; // of a label's length, by its anchor
const [MOST_LABELS, MOST_LETTERS] = [60, 28];
const MOST_ZOOM = 200;

/** The shape that stands for a kind. @param {number} kind */
export const shapeOf = (kind) => SHAPES[kind % SHAPES.length];

/**
 * Draws points.
 * @param {string} name of the drawing
 * @param {Told} told
 */
export function scatter(name, told) {
  /** @type {Mark[]} */
  let marks = [];
  /** @type {ArrayLike<number>} */
  let places = []; // x and y of each
  /** @type {[number, number][]} */
  let seen = []; // the same, in pixels
  let [width, height, zoom] = [0, 0, 1];
  let centre = [0, 0]; // what is in the middle
  let chosen = -1;
  let pointed = -1;
  let isTouch = false;
  const labels = draw("g", { class: "labels", "aria-hidden": "true" });
  const ring = draw("circle", { r: 8.5, class: "ring", "aria-hidden": "true" });
  /** @type {SVGElement[]} */
  let shapes = [];
  const drawing = draw("svg", { class: "map-drawing", role: "listbox", tabindex: 0, "aria-label": name, onkeydown, onwheel, onpointerdown, onpointermove, onpointerleave, onclick, ondblclick });

  /** Pixels a unit, before zooming, and the middle of all. */
  function fitted() {
    const sides = [0, 1].map((side) => {
      let [least, most] = [Infinity, -Infinity];
      for (let at = side; at < places.length; at += 2) [least, most] = [Math.min(least, places[at]), Math.max(most, places[at])];
      return { middle: (least + most) / 2, length: most - least };
    });
    const [x, y] = sides;
    const scale = Math.min((width - 2 * MARGIN) / (x.length || 1e-9), (height - 2 * MARGIN) / (y.length || 1e-9));
    return { scale: Math.min(scale, 1e9), middle: [x.middle, y.middle] };
  }

  function paint() {
    if (!width || !marks.length) return;
    const scale = fitted().scale * zoom;
    seen = marks.map((_, at) => [width / 2 + (places[2 * at] - centre[0]) * scale, height / 2 - (places[2 * at + 1] - centre[1]) * scale]);
    shapes.forEach((shape, at) => {
      shape.setAttribute("transform", `translate(${seen[at].map((side) => side.toFixed(1)).join(" ")})`);
      shape.classList.toggle("dim", !!marks[at].isDim);
      shape.setAttribute("fill", marks[at].colour);
      shape.setAttribute("d", shapeOf(marks[at].shape));
      shape.setAttribute("aria-selected", String(at === chosen));
      shape.setAttribute("aria-label", marks[at].name);
    });
    label();
    showRing();
    drawing.toggleAttribute("data-zoomed", zoom > 1);
  }

  function showRing() {
    const at = pointed >= 0 ? pointed : chosen;
    ring.setAttribute("visibility", at >= 0 ? "visible" : "hidden");
    if (at >= 0) ring.setAttribute("transform", `translate(${seen[at].join(" ")})`);
  }

  /** Writes labels, those of the chosen and first ones first, where nothing else is. */
  function label() {
    const columns = Math.ceil(width / CELL);
    const taken = new Uint8Array(columns * Math.ceil(height / CELL));
    const cells = (/** @type {number} */ left, /** @type {number} */ top, /** @type {number} */ right, /** @type {number} */ bottom) => {
      if (left < 0 || top < 0 || right > width || bottom > height) return null;
      const found = [];
      for (let row = Math.floor(top / CELL); row * CELL < bottom; row++) {
        for (let column = Math.floor(left / CELL); column * CELL < right; column++) found.push(row * columns + column);
      }
      return found;
    };
    const take = (/** @type {number[]} */ found) => { for (const cell of found) taken[cell] = 1; };
    seen.forEach(([x, y], at) => { if (!marks[at].isDim) take(cells(x - 4, y - 4, x + 4, y + 4) ?? []); });
    const texts = [];
    const order = [...marks.keys()].filter((at) => !marks[at].isDim);
    if (chosen >= 0) order.unshift(chosen);
    for (const at of new Set(order)) {
      const { label: whole } = marks[at];
      const text = whole.length > MOST_LETTERS ? `${whole.slice(0, MOST_LETTERS - 1).trimEnd()}…` : whole;
      const long = [...text].reduce((sum, letter) => sum + (letter > "\u2e80" ? WIDE_LETTER : LETTER), 0);
      const [x, y] = seen[at];
      const away = at === chosen ? BESIDE_RING : BESIDE;
      const sides = [["start", x + away, y], ["end", x - away, y], ["middle", x, y - away - 4], ["middle", x, y + away + 4]];
      for (const [anchor, from, middle] of /** @type {[keyof typeof BEFORE, number, number][]} */ (sides)) {
        const left = from - BEFORE[anchor] * long;
        const free = cells(left + 2, middle - LINE / 2, left + long - 2, middle + LINE / 2); // not the point's own place
        if (!free || free.some((cell) => taken[cell])) continue;
        take(free);
        texts.push(draw("text", { x: from, y: middle + 4, "text-anchor": anchor }, text));
        break;
      }
      if (texts.length >= MOST_LABELS) break;
    }
    labels.replaceChildren(...texts);
  }

  // ---- where one looks

  /** Zooms around a place; without one, around what is chosen, or a point near the middle. @type {(by: number, place?: number[]) => void} */
  function zoomBy(by, place) {
    if (!marks.length) return;
    const [x, y] = place ?? seen[chosen] ?? seen.reduce((best, each) => (fromMiddle(each) < fromMiddle(best) ? each : best));
    const next = Math.min(Math.max(zoom * by, 1), MOST_ZOOM);
    const { scale, middle } = fitted();
    const [left, up] = [(x - width / 2) / scale, (height / 2 - y) / scale];
    centre = next === 1 ? middle : [centre[0] + left / zoom - left / next, centre[1] + up / zoom - up / next];
    zoom = next;
    paint();
  }

  /** @param {number[]} place */
  const fromMiddle = ([x, y]) => Math.hypot(x - width / 2, y - height / 2);

  /** @type {(x: number, y: number) => void} */
  function pan(x, y) {
    const scale = fitted().scale * zoom;
    centre = [centre[0] - x / scale, centre[1] + y / scale];
    paint();
  }

  /** The point that is near a place; else −1. @param {MouseEvent} event */
  function pointAt(event) {
    const { left, top } = drawing.getBoundingClientRect();
    let [found, least] = [-1, NEAR ** 2];
    seen.forEach(([x, y], at) => {
      const away = (x - event.clientX + left) ** 2 + (y - event.clientY + top) ** 2 + (marks[at].isDim ? NEAR : 0);
      if (away < least) [found, least] = [at, away];
    });
    return found;
  }

  /** @param {number} at */
  function choose(at) {
    chosen = at;
    pointed = -1;
    const [x, y] = seen[at] ?? [0, 0];
    if (at >= 0 && (x < 0 || y < 0 || x > width || y > height)) centre = [places[2 * at], places[2 * at + 1]];
    if (at >= 0) drawing.setAttribute("aria-activedescendant", `spot-${at}`);
    else drawing.removeAttribute("aria-activedescendant");
    paint();
    told.choose(at);
  }

  // ---- hands and keys

  /** @type {Map<number, PointerEvent>} */
  const down = new Map(); // pointers, where they were last
  let hasMoved = false;

  /** @param {PointerEvent} event */
  function onpointerdown(event) {
    if (event.button) return;
    isTouch = event.pointerType === "touch";
    if (!down.size) hasMoved = false;
    down.set(event.pointerId, event);
    const end = (/** @type {PointerEvent} */ { pointerId, type }) => {
      if (pointerId !== event.pointerId) return;
      if (type === "pointercancel") hasMoved = true;
      down.delete(pointerId);
      for (const each of ["pointerup", "pointercancel"]) removeEventListener(each, /** @type {EventListener} */ (end));
      removeEventListener("pointermove", drag);
    };
    for (const each of ["pointerup", "pointercancel"]) addEventListener(each, /** @type {EventListener} */ (end));
    addEventListener("pointermove", drag);

    /** @param {PointerEvent} moved */
    function drag(moved) {
      if (moved.pointerId !== event.pointerId) return;
      const last = /** @type {PointerEvent} */ (down.get(moved.pointerId));
      const [x, y] = [moved.clientX - last.clientX, moved.clientY - last.clientY];
      if (!hasMoved && Math.hypot(x, y) < MOVED) return;
      hasMoved = true;
      down.set(moved.pointerId, moved);
      const other = [...down.values()].find(({ pointerId }) => pointerId !== moved.pointerId);
      if (!other) return pan(x, y);
      const { left, top } = drawing.getBoundingClientRect();
      const apart = (/** @type {PointerEvent} */ one) => Math.max(Math.hypot(one.clientX - other.clientX, one.clientY - other.clientY), 1);
      zoomBy(apart(moved) / apart(last), [(moved.clientX + other.clientX) / 2 - left, (moved.clientY + other.clientY) / 2 - top]);
    }
  }

  /** @param {PointerEvent} event */
  function onpointermove(event) {
    if (down.size || event.pointerType === "touch") return;
    const at = pointAt(event);
    if (at === pointed) return;
    pointed = at;
    drawing.toggleAttribute("data-pointing", at >= 0);
    showRing();
    told.look(at);
  }

  function onpointerleave() {
    if (pointed < 0) return;
    pointed = -1;
    showRing();
    told.look(-1);
  }

  /** @param {MouseEvent} event */
  function onclick(event) {
    if (hasMoved) return;
    const at = pointAt(event);
    const isNew = at !== chosen;
    choose(at);
    if (at >= 0 && !(isTouch && isNew)) told.enter(at);
  }

  /** @param {MouseEvent} event */
  function ondblclick(event) {
    const { left, top } = drawing.getBoundingClientRect();
    if (pointAt(event) < 0) zoomBy(2, [event.clientX - left, event.clientY - top]);
  }

  /** @param {WheelEvent} event */
  function onwheel(event) {
    if (!event.ctrlKey && !event.metaKey) return; // the page scrolls
    event.preventDefault();
    const { left, top } = drawing.getBoundingClientRect();
    zoomBy(1.002 ** -event.deltaY, [event.clientX - left, event.clientY - top]);
  }

  /** The next point that is looked for, in a direction. @type {(x: number, y: number) => number} */
  function towards(x, y) {
    if (chosen < 0) return marks.findIndex(({ isDim }) => !isDim);
    const [fromX, fromY] = seen[chosen];
    let [found, least] = [chosen, Infinity];
    seen.forEach(([toX, toY], at) => {
      const ahead = (toX - fromX) * x + (toY - fromY) * y;
      const aside = Math.abs((toX - fromX) * y) + Math.abs((toY - fromY) * x);
      const cost = ahead + 2 * aside;
      if (ahead > 0.5 && aside <= 2 * ahead && cost < least && !marks[at].isDim) [found, least] = [at, cost];
    });
    return found;
  }

  /** @param {KeyboardEvent} event */
  function onkeydown(event) {
    const next = (/** @type {number} */ step, /** @type {number} */ from) => {
      for (let at = from; at >= 0 && at < marks.length; at += step) if (!marks[at].isDim) return at;
      return chosen;
    };
    /** @type {Record<string, () => void>} */
    const keys = {
      ArrowRight: () => choose(towards(1, 0)),
      ArrowLeft: () => choose(towards(-1, 0)),
      ArrowUp: () => choose(towards(0, -1)),
      ArrowDown: () => choose(towards(0, 1)),
      Home: () => choose(next(1, 0)),
      End: () => choose(next(-1, marks.length - 1)),
      Enter: () => { if (chosen >= 0) told.enter(chosen); },
      "+": () => zoomBy(1.5),
      "=": () => zoomBy(1.5),
      "-": () => zoomBy(1 / 1.5),
      0: () => zoomBy(0),
    };
    if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    keys[event.key]();
  }

  return {
    drawing,
    zoomBy,
    /** Shows other points, or the same ones elsewhere. @type {(next: Mark[], at: ArrayLike<number>) => void} */
    show(next, at) {
      if (next.length !== marks.length) chosen = pointed = -1;
      [marks, places, zoom] = [next, at, 1];
      centre = fitted().middle;
      shapes = marks.map((_, place) => draw("path", { id: `spot-${place}`, role: "option", class: "spot" }));
      drawing.replaceChildren(...shapes, ring, labels);
      paint();
    },
    /** Changes how they look. @param {Mark[]} next */
    mark(next) {
      marks = next;
      paint();
    },
    /** @type {(wide: number, high: number) => void} */
    resize(wide, high) {
      [width, height] = [wide, high];
      for (const [side, value] of Object.entries({ width, height, viewBox: `0 0 ${width} ${height}` })) drawing.setAttribute(side, String(value));
      paint();
    },
  };
}
