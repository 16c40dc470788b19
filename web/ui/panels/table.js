// Every panel of the dock, in the order of its tabs.

/** @import { Panel } from "../dock.js" */

import { t } from "../wording.js";

/**
 * A panel before its script is here.
 * @typedef {object} PanelEntry
 * @property {() => string} title a word or two, for its tab and its heading
 * @property {() => string} look the sentence that says what to look for
 * @property {() => Promise<Panel>} load
 */

/** @type {Record<string, PanelEntry>} */
export const table = {
  steering: {
    title: () => t`Steering`,
    look: () => t`Move a slider while an answer is being written, and see where its words turn.`,
    load: () => import("./steering.js"),
  },
};
