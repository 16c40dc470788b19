// Every panel of the dock, in the order of its tabs.

/** @import { Panel } from "../dock.js" */

import { lazy } from "../lazy.js";
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
  notebook: {
    title: () => t`Notebook`,
    look: () => t`Python beside the live model: look at model, graph, engine and chat, or try an experiment.`,
    load: lazy(() => import("./notebook.js")),
  },
};
