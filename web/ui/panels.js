// The dock's panels for scripts that open one: a panel's own script, and the dock's, come only then.

import { emit } from "./events.js";

/**
 * Opens a panel beside the chat; without a name, the last one, or closes it. Settings are the panel's to read: as they come from a
 * link they are texts.
 * @param {string} name in the table of panels/table.js
 * @param {Record<string, any>} [settings]
 */
export const openPanel = (name, settings = {}) => emit("panelwanted", { name, settings });

export const closePanel = () => emit("panelunwanted");

/** Opens what a link names: `#panel=lens&layer=3`. */
export function openLinkedPanel() {
  const { panel, ...settings } = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
  if (panel) openPanel(panel, settings);
}
