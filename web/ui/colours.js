// Colours for numbers, told apart by all kinds of sight and in grey: points of matplotlib's viridis.

const POINTS = [[68, 1, 84], [71, 45, 123], [59, 82, 139], [44, 114, 142], [33, 145, 140], [40, 174, 128], [94, 201, 98], [173, 220, 48], [253, 231, 37]];

/** Gives the colour of a share from 0 to 1. @param {number} share */
export function colourAt(share) {
  const place = Math.min(Math.max(share || 0, 0), 1) * (POINTS.length - 1);
  const at = Math.min(Math.floor(place), POINTS.length - 2);
  const mixed = POINTS[at].map((from, channel) => Math.round(from + (place - at) * (POINTS[at + 1][channel] - from)));
  return `rgb(${mixed.join(" ")})`;
}

/** Whether dark letters can be read on the colour of a share; else light ones can. @param {number} share */
export const isLight = (share) => share > 0.55;

/** Gives a colour of a scale with a middle: blue below zero, orange above, for shares from −1 to 1. @param {number} share */
export function colourAround(share) {
  const strength = Math.min(Math.abs(share) || 0, 1);
  const [red, green, blue] = share < 0 ? [33, 102, 172] : [200, 90, 10];
  return `rgb(${[red, green, blue].map((channel) => Math.round(247 + strength * (channel - 247))).join(" ")})`;
}
